"""Messages: what was said in a user's sessions, word for word, governed as all of a user's memory is.

A message is a record of its owner's: isolation, expiry on every read, erasure, holds, export and the log are those of
the memory. No search recalls it, and upkeep does nothing to it but to remove it when its time is over: what
conversations leave behind for recall is made of them by `meve.memory.turns`.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from meve.errors import DuplicateIdError, PassageError, UnknownIdError, ValidationError
from meve.memory._feedback.reflector import Reflector
from meve.memory._recall.searcher import Searcher
from meve.memory._runtime import Kit
from meve.memory._write.provenance import one
from meve.memory._write.record_factory import NAME_LENGTH, end_of_life
from meve.memory._write.writer import Erased, Writer, held
from meve.memory.items.item import canonical
from meve.memory.policy import PolicyClass
from meve.memory.records import (
    MemoryRecord,
    Message,
    StoredRecord,
    UserId,
    checked_id,
    checked_metadata,
    checked_text,
    user_key,
)
from meve.memory.stores.protocol import Stretch, Transaction
from meve.memory.stores.sqlite._messages import ARCHIVED

_CLASS: PolicyClass = "factual"
"""Messages live as long as it and turns of a conversation may, whichever is shorter."""


@dataclass(frozen=True, slots=True)
class Messages:
    """The messages of a memory's users. Safe to share between threads; several processes may have the file open.

    Args are parts of a `GovernedMemory`, whose `messages` this is.
    """

    _kit: Kit
    _searcher: Searcher
    _reflector: Reflector

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
        """Keep messages at the end of a session, all or none; when this returns, they survive a power cut.

        Args:
            session_id: of which conversation.
            values: in the order in which they were said; JSON-plain.
            user_id: whose.
            archived: whether they are put away at once.
            ttl: how long they live; as turns of a conversation do, if None.
            ids: their names among the user's records; of a message that the session holds already nothing is kept anew,
                and of two of one id the first. None for new ones.
            reason: for the audit log; holds no content.

        Returns:
            Their ids.

        Raises:
            ValidationError: an argument that can't be; nothing is kept.
            DuplicateIdError: what an id names is no message of this session, or is over and on hold; nothing is kept.
            StorageError: the file can't be written.
        """
        user, drafts = self._drafted(session_id, values, user_id, archived, ttl, ids)
        if drafts:
            first: dict[str, StoredRecord] = {}
            for each in drafts:
                first.setdefault(each.record.id, each)
            with self._kit.store.writing() as transaction:
                new = [each for each in first.values() if not self._known(transaction, user, each)]
                self._insert(transaction, user, new, reason)
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
        """Keep these messages as a session, and erase all that it held, at once.

        Args are those of `add`.

        Raises:
            ValidationError, StorageError: as for `add`.
            HoldError: one that it held is on hold; nothing is changed.
        """
        return self.become(session_id, values, user_id=user_id, archived=archived, ttl=ttl, anew=True, reason=reason)[0]

    def become(
        self,
        session_id: str,
        values: Sequence[Mapping[str, Any]],
        *,
        user_id: UserId,
        archived: bool = False,
        ttl: timedelta | None = None,
        anew: bool = False,
        reason: str = "on request",
    ) -> tuple[list[str], list[Message]]:
        """Let these be a session's messages, at once. If they begin with all that it holds, that stays; else it goes.

        Args are those of `add`, and `anew`: whether it is erased in any case.

        Returns:
            Their ids, and what the session held until then.

        Raises:
            ValidationError, StorageError, HoldError: as for `replace`.
        """
        user, drafts = self._drafted(session_id, values, user_id, archived, ttl)
        asked = Stretch(session=_session(session_id), archived=None)
        with self._kit.store.writing() as transaction:
            found = transaction.messages(user, asked, self._kit.clock.now())
            before = [(place, stored) for place, stored in found if (stored.record.tags == (ARCHIVED,)) is archived]
            staying = not anew and _begins(drafts, before)
            gone = () if staying else self._erase(transaction, user, [s.record for _, s in found], reason)
            new = drafts[len(before) :] if staying else drafts
            self._insert(transaction, user, new, reason)
        self._let_go(user, gone)
        kept = [stored for _, stored in before] if staying else []
        return [each.record.id for each in (*kept, *new)], [_message(place, stored.record) for place, stored in before]

    def page(
        self,
        session_id: str,
        *,
        user_id: UserId,
        archived: bool | None = False,
        after: int | None = None,
        before: int | None = None,
        limit: int | None = None,
        offset: int = 0,
        newest: bool = False,
    ) -> list[Message]:
        """Messages of a session that aren't expired, in the order in which they were added.

        What a page costs grows with what stands on it and is passed over, and not with the session, unless `archived`
        is None.

        Args:
            session_id: of which conversation.
            user_id: whose.
            archived: only those that are put away, or only the others; None for either.
            after: only those of a place above this one.
            before: only those of a place below this one.
            limit: how many at most; None for all.
            offset: how many are passed over.
            newest: whether `limit` and `offset` count from the newest one back.

        Raises:
            ValidationError: an argument that can't be.
        """
        stretch = Stretch(
            session=_session(session_id), archived=archived, after=after, before=before, limit=_whole(limit, "limit"),
            offset=_whole(offset, "offset") or 0, newest=newest,
        )  # fmt: skip
        return self._kit.store.messages(user_key(user_id), stretch, self._kit.clock.now())

    def count(self, session_id: str, *, user_id: UserId, archived: bool | None = False) -> int:
        """How many messages of a session aren't expired.

        Raises:
            ValidationError: a user or a session that can't be.
        """
        stretch = Stretch(session=_session(session_id), archived=archived)
        return self._kit.store.count_messages(user_key(user_id), stretch, self._kit.clock.now())

    def sessions(self, *, user_id: UserId) -> list[str]:
        """The sessions that hold a message of the user's that isn't expired, sorted.

        Raises:
            ValidationError: a user that can't be.
        """
        return self._kit.store.sessions(user_key(user_id), self._kit.clock.now())

    def archive(self, session_id: str, ids: Sequence[str], *, user_id: UserId, reason: str = "on request") -> None:
        """Put messages away, where they stand.

        Raises:
            UnknownIdError: the session has none of an id; nothing is changed.
            HoldError: one is on hold; nothing is changed.
        """
        self.take(session_id, user_id=user_id, ids=ids, archive=True, reason=reason)

    def delete(self, session_id: str, ids: Sequence[str], *, user_id: UserId, reason: str = "on request") -> Erased:
        """Erase messages, and what was made of them, for good.

        Raises:
            UnknownIdError: the session has none of an id; nothing is changed.
            HoldError: one is on hold; nothing is changed.
        """
        return self.take(session_id, user_id=user_id, ids=ids, reason=reason)[1]

    def take(
        self,
        session_id: str,
        *,
        user_id: UserId,
        ids: Sequence[str] | None = None,
        archived: bool | None = False,
        limit: int | None = None,
        offset: int = 0,
        newest: bool = False,
        archive: bool = False,
        reason: str = "on request",
    ) -> tuple[list[Message], Erased]:
        """Take a page out of a session: erase what stands on it for good, or put it away. Nobody takes it twice.

        Args:
            session_id: of which conversation.
            user_id: whose.
            ids: these, wherever they stand, instead of a page.
            archived: as for `page`, and so are `limit`, `offset` and `newest`.
            limit: how many at most; None for all.
            offset: how many are passed over.
            newest: whether they count from the newest one back.
            archive: put away, and not erase.
            reason: for the audit log.

        Returns:
            The messages, and what was erased.

        Raises:
            ValidationError: an argument that can't be.
            UnknownIdError: the session has none of an id; nothing is changed.
            HoldError: one is on hold; nothing is changed.
        """
        user, now = user_key(user_id), self._kit.clock.now()
        asked = Stretch(session=_session(session_id), archived=None, ids=tuple(ids or ()))
        if ids is None:
            limit, offset = _whole(limit, "limit"), _whole(offset, "offset") or 0
            asked = replace(asked, archived=archived, ids=None, limit=limit, offset=offset, newest=newest)
        with self._kit.store.writing() as transaction:
            found = transaction.messages(user, asked, now)
            _none_missing(found, ids or ())
            records = [stored.record for _, stored in found]
            if archive:
                self._put_away(transaction, user, [stored for _, stored in found], reason)
                gone: tuple[str, ...] = ()
            else:
                gone = self._erase(transaction, user, records, reason)
        scrubbed = self._let_go(user, gone)
        return [_message(place, s.record) for place, s in found], Erased(erased=gone, held={}, scrubbed=scrubbed)

    def _drafted(
        self,
        session_id: str,
        values: Sequence[Mapping[str, Any]],
        user_id: UserId,
        archived: bool,
        ttl: timedelta | None,
        ids: Sequence[str | None] | None = None,
    ) -> tuple[str, list[StoredRecord]]:
        kit, now = self._kit, self._kit.clock.now()
        names = [None] * len(values) if ids is None else list(ids)
        if len(names) != len(values):
            raise ValidationError(f"{len(names)} ids for {len(values)} messages: give one each, None for a new one")
        user, session = user_key(user_id), _session(session_id)
        end = end_of_life(kit.policy, _CLASS, "message", now, ttl)
        records = [
            MemoryRecord(
                id=uuid.uuid4().hex if name is None else checked_id(name),
                user_id=user_id,
                text="",
                source="message",
                policy_class=_CLASS,
                created_at=now,
                expires_at=end,
                session_id=session,
                tags=(ARCHIVED,) if archived else (),
                metadata=_checked(value),
                reflection=kit.policy.reflection.chat_start,
            )
            for name, value in zip(names, values, strict=True)
        ]
        return user, kit.stored_all(records)

    def _known(self, transaction: Transaction, user: str, draft: StoredRecord) -> bool:
        """Whether the session holds a message of that id; one that is over makes room."""
        record, now = draft.record, self._kit.clock.now()
        Writer(self._kit).clear_expired(transaction, user, record.id, now)
        found = one(transaction, user, record.id)
        if found is None:
            return False
        here = found.record.source == "message" and found.record.session_id == record.session_id
        if not here or found.record.expired(now):
            raise DuplicateIdError(f"the id {record.id!r:.80} is taken, and not by a message of this session")
        return True

    def _insert(self, transaction: Transaction, user: str, drafts: Sequence[StoredRecord], reason: str) -> None:
        for each in drafts:
            transaction.insert(user, each)
            self._log(transaction, user, each.record, "add", reason, source="message")

    def _put_away(self, transaction: Transaction, user: str, found: Sequence[StoredRecord], reason: str) -> None:
        for stored in found:
            if stored.record.hold:
                raise held(stored.record)
            made = replace(stored.record, tags=(ARCHIVED,), version=stored.record.version + 1)
            transaction.replace(user, replace(stored, record=made))
            self._log(transaction, user, made, "update", reason, changed=["tags"])

    def _erase(
        self, transaction: Transaction, user: str, records: Sequence[MemoryRecord], reason: str
    ) -> tuple[str, ...]:
        """These, and what was made of them."""
        if not records:
            return ()
        found = transaction.holding(user, *(each.id for each in records))
        for stored in found:
            if stored.record.hold:
                raise held(stored.record)
        return Writer(self._kit).erase(transaction, user, found, reason, self._kit.clock.now())[0]

    def _let_go(self, user: str, gone: Sequence[str]) -> bool:
        """Nothing in memory and in no file holds what is gone; whether that is so of the files."""
        if not gone:
            return True
        self._reflector.forget(user, gone)
        self._searcher.cache.forget(user)
        self._searcher.shelves.freshen(user)
        return self._kit.store.scrub()

    def _log(
        self,
        transaction: Transaction,
        user: str,
        record: MemoryRecord,
        action: Any,  # noqa: ANN401
        reason: str,
        **detail: Any,  # noqa: ANN401
    ) -> None:
        content = self._kit.chain.hash_content(canonical(record.metadata))
        transaction.log(self._kit.event(user, record, action, reason, self._kit.clock.now(), content=content, **detail))


def _session(session_id: object) -> str:
    return checked_text(session_id, "session_id", NAME_LENGTH)


def _whole(value: int | None, name: str) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise ValidationError(f"{name} is {value!r:.40}: give a whole number, 0 or more")
    return value


def _checked(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise PassageError(f"a message is {value!r:.80}: give a mapping from names to values")
    return checked_metadata(value)


def _begins(drafts: Sequence[StoredRecord], before: Sequence[tuple[int, StoredRecord]]) -> bool:
    """Whether messages begin with those that a session holds."""
    first = [canonical(each.record.metadata) for each in drafts[: len(before)]]
    return first == [canonical(stored.record.metadata) for _, stored in before]


def _none_missing(found: Sequence[tuple[int, StoredRecord]], ids: Sequence[str]) -> None:
    missing = sorted(set(ids) - {stored.record.id for _, stored in found})
    if missing:
        raise UnknownIdError(f"no message {missing[0]!r:.80} in this session: page() tells which there are")


def _message(place: int, record: MemoryRecord) -> Message:
    return Message(
        id=record.id,
        session_id=record.session_id or "",
        value=dict(record.metadata),
        place=place,
        archived=record.tags == (ARCHIVED,),
        added_at=record.created_at,
        expires_at=record.expires_at,
    )
