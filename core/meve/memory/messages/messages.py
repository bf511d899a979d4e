"""Messages: a user's conversations word for word, governed like all other records of the user.

Isolation, expiry, erasure, holds, export and the audit log are those of the memory. No search returns messages, and
maintenance only removes expired ones. `meve.memory.turns` stores the facts of a conversation, which searches return.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Unpack

from meve._repeating import repeat_rolled_back
from meve._telemetry import reported
from meve.errors import DuplicateIdError, UnknownIdError, ValidationError, show
from meve.memory._async_runner import as_async
from meve.memory._audit.chain import Action
from meve.memory._expiry import expiry_of, has_passed, remove_expired
from meve.memory._reports import describe_list
from meve.memory._runtime import MemoryRuntime
from meve.memory._write.eraser import ErasureReport, check_not_held
from meve.memory._write.writer import RecordWriter
from meve.memory.items.item import canonical, named_texts
from meve.memory.messages.message import Message, PageOptions
from meve.memory.policy import PolicyClass
from meve.memory.records import (
    NAME_LENGTH,
    VALUE_LENGTH,
    MemoryRecord,
    StoredRecord,
    UserId,
    check_count,
    check_flag,
    check_id,
    check_ids,
    check_metadata,
    check_text,
    user_key,
)
from meve.memory.stores._record_transaction import RecordTransaction
from meve.memory.stores.protocol import RecordQuery

_MAX_COUNT = 2**31
"""A number above that of any session's messages; larger limits mean no limit."""
_CLASS: PolicyClass = "factual"
"""The class of messages. They live as long as this class or `chat_ttl` allows, whichever is shorter."""


@dataclass(frozen=True, slots=True)
class Messages:
    """Adds, pages through and removes the messages of a memory's users. Safe to share between threads.

    Several processes may have the store open. A `GovernedMemory` makes it: `memory.messages`.
    """

    _runtime: MemoryRuntime
    _writer: RecordWriter

    @reported("create_memory", describe_list)
    @repeat_rolled_back
    def add(
        self,
        session_id: str,
        values: Sequence[Mapping[str, Any]],
        *,
        user_id: UserId,
        archived: bool = False,
        ttl: timedelta | None = None,
        ids: Sequence[str | None] | None = None,
        reason: str = "on request",
    ) -> list[str]:
        """Add messages at the end of a session, all or none. When this returns, they survive a power cut.

        Args:
            session_id: the conversation.
            values: the messages in order; JSON-plain.
            user_id: the owner.
            archived: whether they are archived at once.
            ttl: how long they live; None for as long as turns of a conversation.
            ids: their ids among the user's records, None for new ones. A message whose id the session contains isn't
                added again; different messages with one id are an error.
            reason: for the audit log; must hold no content.

        Returns:
            The ids of the messages.

        Raises:
            ValidationError: an argument is invalid; nothing is written.
            DuplicateIdError: an id is that of another record, or of an expired message on hold; nothing is written.
            StorageError: the store can't be written.
        """
        user, drafts = self._drafts(session_id, values, user_id, archived, ttl, ids)
        if drafts:
            new: dict[str, StoredRecord] = {}
            for each in drafts:
                first = new.setdefault(each.record.id, each).record
                if first.metadata != each.record.metadata:
                    raise ValidationError(f"ids must name each message once, got {first.id!r:.80} for different ones")
            with self._runtime.store.writing() as transaction:
                for known in transaction.records(RecordQuery(user=user, archived=None, ids=tuple(new))):
                    if self._find_in_session(transaction, user, known.record, drafts[0].record):
                        del new[known.record.id]
                self._insert(transaction, user, tuple(new.values()), reason)
        return [each.record.id for each in drafts]

    def replace(
        self,
        session_id: str,
        values: Sequence[Mapping[str, Any]],
        *,
        user_id: UserId,
        archived: bool = False,
        ttl: timedelta | None = None,
        reason: str = "on request",
    ) -> list[str]:
        """Replace all messages of a session at once. Args are those of `add`.

        Raises:
            ValidationError, StorageError: as for `add`.
            HoldError: a message of the session is on hold; nothing is changed.
        """
        return self.sync(
            session_id, values, user_id=user_id, archived=archived, ttl=ttl, replace_all=True, reason=reason
        )[0]

    @repeat_rolled_back
    def sync(
        self,
        session_id: str,
        values: Sequence[Mapping[str, Any]],
        *,
        user_id: UserId,
        archived: bool = False,
        ttl: timedelta | None = None,
        replace_all: bool = False,
        reason: str = "on request",
    ) -> tuple[list[str], list[Message]]:
        """Make these the messages of a session at once: add those at the end, or replace all if the beginning differs.

        Args are those of `add`, and `replace_all`: whether to replace all in any case.

        Returns:
            The ids of the messages, and the messages of the session before.

        Raises:
            ValidationError, StorageError, HoldError: as for `replace`.
        """
        user, drafts = self._drafts(session_id, values, user_id, archived, ttl)
        check_flag(replace_all, "replace_all")
        query = self._query(user, session_id, archived=None)
        with self._runtime.store.writing() as transaction:
            everything = transaction.records(query)
            before = [stored for stored in everything if stored.record.archived is archived]
            stays = not replace_all and _begins_with(drafts, before)
            self._erase(transaction, user, [] if stays else everything, reason)
            kept, new = (before, drafts[len(before) :]) if stays else ([], drafts)
            self._insert(transaction, user, new, reason)
        return [each.record.id for each in (*kept, *new)], [_message(stored) for stored in before]

    def page(self, session_id: str, *, user_id: UserId, **options: Unpack[PageOptions]) -> list[Message]:
        """Return messages of a session that haven't expired, in the order in which they were added.

        Its time depends on the number of messages returned and skipped, not on the session, unless `archived` is None.

        Args:
            session_id: the conversation.
            user_id: the owner.
            options: see `PageOptions`.

        Raises:
            ValidationError: an argument is invalid.
        """
        query = self._query(user_key(user_id), session_id, **options)
        rows = self._runtime.store.select(query, "id", "metadata", "row", "archived", "created_at", "expires_at")
        if query.newest_first:
            rows.reverse()
        now = self._runtime.clock.now()
        return [Message(row[0], session_id, *row[1:]) for row in rows if not has_passed(row[-1], now)]

    def count(self, session_id: str, *, user_id: UserId, archived: bool | None = False) -> int:
        """Return the number of messages of a session that haven't expired.

        Raises:
            ValidationError: the user or the session is invalid.
        """
        return self._runtime.store.count(self._query(user_key(user_id), session_id, archived=archived))

    def sessions(self, *, user_id: UserId) -> list[str]:
        """Return the sessions that hold a message of the user that hasn't expired, sorted.

        Raises:
            ValidationError: the user is invalid.
        """
        now = self._runtime.clock.now()
        query = RecordQuery(user=user_key(user_id), kind="message", archived=None, alive_at=now)
        return sorted(session_id for (session_id,) in self._runtime.store.select(query, "session_id"))

    @repeat_rolled_back
    def pop(
        self,
        session_id: str,
        *,
        user_id: UserId,
        ids: Sequence[str] | None = None,
        archive: bool = False,
        reason: str = "on request",
        **options: Unpack[PageOptions],
    ) -> tuple[list[Message], ErasureReport]:
        """Return messages of a session, and erase them for good with the records derived from them, or archive them.

        Concurrent callers never get the same message.

        Args:
            session_id: the conversation.
            user_id: the owner.
            ids: ids of messages of the session; None for the page that `options` describe.
            archive: whether to archive the messages, which keep their places, instead of erasing them.
            reason: for the audit log.
            options: see `PageOptions`; without effect with `ids`.

        Returns:
            The messages, and what was erased.

        Raises:
            ValidationError: an argument is invalid.
            UnknownIdError: the session has no message of an id; nothing is changed.
            HoldError: a message is on hold; nothing is changed.
        """
        user = user_key(user_id)
        check_flag(archive, "archive")
        if ids is None:
            query = self._query(user, session_id, **options)
        else:
            query = replace(self._query(user, session_id, archived=None), ids=check_ids(ids, "ids"))
        with self._runtime.store.writing() as transaction:
            popped = transaction.records(query)
            missing = set(ids or ()) - {stored.record.id for stored in popped}
            if missing:
                raise UnknownIdError(f"no message {min(missing)!r:.80} in this session: page() returns all messages")
            change = self._archive if archive else self._erase
            report = change(transaction, user, popped, reason)
        if query.newest_first:
            popped.reverse()
        return [_message(each) for each in popped], report

    aadd, areplace, apop = as_async(add), as_async(replace), as_async(pop)
    apage, acount = as_async(page, is_read=True), as_async(count, is_read=True)
    asessions = as_async(sessions, is_read=True)

    def _query(
        self,
        user: str,
        session_id: str,
        *,
        archived: bool | None = False,
        limit: int | None = None,
        offset: int | None = None,
        newest: bool = False,
        after: int | None = None,
        before: int | None = None,
    ) -> RecordQuery:
        return RecordQuery(
            user=user,
            kind="message",
            session_id=_session(session_id),
            alive_at=self._runtime.clock.now(),
            archived=None if archived is None else check_flag(archived, "archived"),
            limit=None if limit is None else min(check_count(limit, "limit"), _MAX_COUNT),
            offset=0 if offset is None else min(check_count(offset, "offset"), _MAX_COUNT),
            newest_first=check_flag(newest, "newest"),
            after=_place(after, "after"),
            before=_place(before, "before"),
        )

    def _drafts(
        self,
        session_id: str,
        values: Sequence[Mapping[str, Any]],
        user_id: UserId,
        archived: bool,
        ttl: timedelta | None,
        ids: Sequence[str | None] | None = None,
    ) -> tuple[str, list[StoredRecord]]:
        if isinstance(values, str | Mapping) or not isinstance(values, Sequence):
            raise ValidationError(f"values must be a list of messages, got {show(values, 80)}")
        runtime, now = self._runtime, self._runtime.clock.now()
        check_flag(archived, "archived")
        if isinstance(ids, str) or not isinstance(ids, Iterable | None):
            raise ValidationError(f"ids must be a list of ids, got {show(ids, 80)}")
        names = [None] * len(values) if ids is None else list(ids)
        if len(names) != len(values):
            raise ValidationError(f"ids must hold one id for each of the {len(values)} messages, got {len(names)}")
        user, session = user_key(user_id), _session(session_id)
        expires_at = expiry_of(runtime.policy, _CLASS, "message", now, ttl)
        records = [
            MemoryRecord(
                id=uuid.uuid4().hex if name is None else check_id(name),
                kind="message",
                user_id=user_id,
                text="",
                source="message",
                policy_class=runtime.gate.admit(named_texts(value), "message", _CLASS)[0],
                created_at=now,
                expires_at=expires_at,
                session_id=session,
                metadata=value,
                reflection=runtime.policy.reflection.chat_start,
                archived=archived,
            )
            for name, value in zip(
                names, (check_metadata(each, "a message", VALUE_LENGTH) for each in values), strict=True
            )
        ]
        return user, runtime.stored_all(records)

    def _find_in_session(
        self, transaction: RecordTransaction, user: str, known: MemoryRecord, draft: MemoryRecord
    ) -> bool:
        """Return whether the draft is already in its session. Removes an expired record with its id."""
        now = self._runtime.clock.now()
        if known.expired(now) and not known.hold:
            remove_expired(self._runtime, transaction, user, known.id, now)
            return False
        is_here = known.kind == "message" and known.session_id == draft.session_id
        if not is_here or known.expired(now):
            raise DuplicateIdError(f"id {known.id!r:.80} is taken by another record of this user: choose another id")
        return True

    def _insert(self, transaction: RecordTransaction, user: str, drafts: Sequence[StoredRecord], reason: str) -> None:
        transaction.insert(user, *drafts)
        for each in drafts:
            self._log(transaction, user, each.record, "add", reason, source="message")

    def _archive(
        self, transaction: RecordTransaction, user: str, messages: Sequence[StoredRecord], reason: str
    ) -> ErasureReport:
        for stored in messages:
            check_not_held(stored.record)
            record = replace(stored.record, archived=True, version=stored.record.version + 1)
            transaction.replace(user, replace(stored, record=record))
            self._log(transaction, user, record, "update", reason, changed=["archived"])
        return ErasureReport(erased=(), held={})

    def _erase(
        self, transaction: RecordTransaction, user: str, messages: Sequence[StoredRecord], reason: str
    ) -> ErasureReport:
        """Erase messages and the records derived from them."""
        records = transaction.with_derived(user, [stored.record.id for stored in messages]) if messages else []
        for stored in records:
            check_not_held(stored.record)
        return self._writer.erase(transaction, user, records, reason, self._runtime.clock.now())

    def _log(
        self,
        transaction: RecordTransaction,
        user: str,
        record: MemoryRecord,
        action: Action,
        reason: str,
        **detail: Any,  # noqa: ANN401
    ) -> None:
        content = self._runtime.content_hash("content", canonical(record.metadata), user)
        now = self._runtime.clock.now()
        transaction.log(self._runtime.event(user, record, action, reason, now, **content, **detail))


def _place(value: int | None, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValidationError(f"{name} must be the place of a message, a whole number, got {value!r:.40}")
    return max(-1, min(value, 2**62))


def _session(session_id: object) -> str:
    return check_text(session_id, "session_id", NAME_LENGTH)


def _begins_with(drafts: Sequence[StoredRecord], before: Sequence[StoredRecord]) -> bool:
    first = [canonical(each.record.metadata) for each in drafts[: len(before)]]
    return first == [canonical(stored.record.metadata) for stored in before]


def _message(stored: StoredRecord) -> Message:
    r = stored.record
    return Message(r.id, r.session_id or "", dict(r.metadata), stored.row, r.archived, r.created_at, r.expires_at)
