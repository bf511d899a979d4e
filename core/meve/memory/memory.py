"""Governed memory: what an agent may remember, for how long, and what of it may enter a prompt."""

import builtins
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack

from meve.conversation.turn import TurnRecord
from meve.errors import ConfigurationError
from meve.memory._async_runner import AsyncRunner
from meve.memory._audit.audit_log import AuditLog
from meve.memory._audit.subject_access import Explanation, explain_recall, export_user
from meve.memory._feedback.reflector import ReflectionResult, Reflector
from meve.memory._maintenance.maintenance import Background, Maintainer
from meve.memory._maintenance.plan import MaintenanceReport
from meve.memory._recall.cache import RecallCache, drop_changed
from meve.memory._recall.prompt import (
    Prompt,
    PromptBudget,
    compose_prompt,
    count_room,
    fit_wishes,
    parse_history,
    summarise_turns,
)
from meve.memory._recall.query import SearchOptions, SentenceHashes, make_query
from meve.memory._recall.searcher import Load, Recall, Searcher
from meve.memory._recall.user_index import UserIndexes
from meve.memory._runtime import MemoryOptions, MemoryRuntime
from meve.memory._write.record_factory import RecordOptions
from meve.memory._write.writer import ErasureReport, RecordWriter, UpdateOptions, unknown
from meve.memory.items._writer import ItemWriter
from meve.memory.items.items import Items
from meve.memory.messages.messages import Messages
from meve.memory.records import NAME_LENGTH, SHARED, MemoryRecord, MemoryStats, UserId, check_id, check_text, user_key
from meve.memory.stores.protocol import MemoryStore, RecordQuery
from meve.memory.stores.sqlite.store import SqliteStore


class GovernedMemory:
    """The memory of an agent's users. Safe to share between threads; several processes may have one file open.

    `open` makes it.
    """

    def __init__(self, runtime: MemoryRuntime, *, file: Path | None = None) -> None:
        self.file = file
        """The absolute path of its file; None with a store of your own."""
        self.policy = runtime.policy
        self.clock = runtime.clock
        self.audit = AuditLog(runtime.store, runtime.clock)
        self._runtime = runtime
        self._writer = RecordWriter(runtime)
        load = Load(runtime.policy.limits.busy)
        self._reflector = Reflector(runtime, load)
        indexes = UserIndexes(runtime.store, runtime.embedder.dimension, runtime.policy.limits.vectors)
        recalls = RecallCache(runtime.policy.limits.recalls)
        self._searcher = Searcher(runtime=runtime, indexes=indexes, cache=recalls, load=load)
        runtime.store.subscribe(partial(drop_changed, recalls=recalls, indexes=indexes, reflector=self._reflector))
        self.items = Items(runtime, self._searcher, ItemWriter(runtime, self._writer))
        self.messages = Messages(runtime, self._writer)
        self._maintainer = Maintainer(runtime)
        self._background: builtins.list[Background] = []
        self._sentences = SentenceHashes()
        self.closed = False
        self.run_async = AsyncRunner()
        """For async callers: `await memory.run_async(memory.search, …)` runs it in a thread."""

    @classmethod
    def open(
        cls,
        file: str | Path | None = None,
        *,
        store: MemoryStore | None = None,
        **options: Unpack[MemoryOptions],
    ) -> Self:
        """Open the memory in a file, or in a store of your own.

        Args:
            file: the path of an SQLite file, created if it doesn't exist; while it is open, SQLite's `-wal` and `-shm`
                stand beside it.
            store: a back end to use instead of a file; the memory closes it.
            options: see `MemoryOptions`.

        Raises:
            ConfigurationError: not exactly one of `file` and `store`, an invalid component, or another embedder than
                the memory was made with.
            StorageError: the file can't be opened, is damaged, or of a newer version.
            AuditError: another key signs the audit log.
        """
        if (file is None) == (store is None):
            raise ConfigurationError(f"give exactly one of file and store, got {'neither' if file is None else 'both'}")
        backend = SqliteStore.open(file) if store is None and file is not None else store
        if backend is None or not hasattr(backend, "writing"):
            raise ConfigurationError(
                f"store must be a MemoryStore (meve.memory.stores.protocol), got {backend!r:.60}; pass a path as file"
            )
        try:
            return cls(MemoryRuntime.open(backend, **options), file=None if file is None else Path(file).resolve())
        except BaseException:
            backend.close()
            raise

    def add(
        self,
        text: str,
        *,
        user_id: UserId,
        derived_from: Iterable[str] = (),
        reason: str = "on request",
        **options: Unpack[RecordOptions],
    ) -> MemoryRecord:
        """Remember a text of a user. When this returns, it survives a power cut.

        Args:
            text: what to remember.
            user_id: the owner; a string or an int.
            derived_from: ids of the user's records that it is derived from. It expires no later than any of them, and
                is erased with any of them.
            reason: for the audit log; must hold no content.
            options: see `RecordOptions`.

        Raises:
            ValidationError: an argument is invalid; nothing is stored.
            DuplicateIdError: the id is taken.
            UnknownIdError: the user has no record of an id in `derived_from`.
            ModelError: the embedder failed; nothing is stored.
            StorageError: the store can't be written.
        """
        return self._writer.add(user_key(user_id), user_id, text, reason, derived_from=derived_from, **options)

    def add_shared(self, text: str, *, reason: str = "on request", **options: Unpack[RecordOptions]) -> MemoryRecord:
        """Remember a text for all users, of a class that the policy lets be shared.

        Raises:
            PolicyError: records of its class may not be shared.
            ValidationError: as for `add`.
        """
        shared: RecordOptions = {"source": "doc", "policy_class": "canonical"}
        shared.update(options)
        return self._writer.add(SHARED, None, text, reason, **shared)

    def search(self, query: str, *, user_id: UserId, **options: Unpack[SearchOptions]) -> Recall:
        """Return the memories that answer a query: numbered, within a token budget, with the reasons for each.

        Args:
            query: the query.
            user_id: whose memory.
            options: see `SearchOptions`.

        Raises:
            QueryError: the query is blank.
            ValidationError: an argument is invalid.
        """
        checked = make_query(query, user_id, policy=self.policy, now=self.clock.now(), cache=self._sentences, **options)
        return self._searcher.search(checked)

    def reflect(self, recall: Recall, *, answer: str) -> ReflectionResult:
        """Raise or lower the scores of recalled memories that an answer used, didn't use, or contradicted.

        If more searches are running than the policy's `limits.busy`, this is deferred (`ReflectionResult.deferred`). It
        runs with the next call when fewer are running, with `maintain`, or with `close`.

        Args:
            recall: the result of `search`.
            answer: the answer that was given with it.

        Raises:
            ValidationError: an argument is invalid.
        """
        return self._reflector.reflect(recall, answer)

    def update(
        self, id: str, *, user_id: UserId, reason: str = "on request", **options: Unpack[UpdateOptions]
    ) -> MemoryRecord:
        """Change values of a record. Owner, id, source and creation stay.

        A derived record expires no later than its origins; so does a record that others were merged into.

        Args:
            id: the record's id.
            user_id: its owner.
            reason: for the audit log; must hold no content.
            options: see `UpdateOptions`.

        Raises:
            UnknownIdError: the user has no record of that id.
            HoldError: the record is on hold.
            ValidationError: a value is invalid, or the record has another version than `if_version`.
        """
        return self._writer.update(user_key(user_id), id, reason, **options)

    def delete(self, id: str, *, user_id: UserId, reason: str = "on request", dry_run: bool = False) -> ErasureReport:
        """Erase a record, those derived from it and those they replaced for good, from files, indexes and caches.

        Args:
            id: the record's id.
            user_id: its owner.
            reason: for the audit log; must hold no content.
            dry_run: only list the records.

        Raises:
            UnknownIdError: the user has no record of that id.
        """
        return self._writer.delete(user_key(user_id), id, reason, dry_run=dry_run)

    def forget_user(self, *, user_id: UserId, reason: str = "on request", dry_run: bool = False) -> ErasureReport:
        """Erase all records of a user except those on hold, which the report lists; `dry_run` only lists them.

        If nothing of the user is stored, `found` is False in the report; the int 5 and the string "5" are two users.
        """
        return self._writer.forget(user_key(user_id), reason, dry_run=dry_run)

    def forget_session(
        self, session_id: str, *, user_id: UserId, all_or_none: bool = False, reason: str = "on request"
    ) -> ErasureReport:
        """Erase all records of a user's session and those derived from them, except those on hold.

        If there are none, `found` is False in the report.

        Raises:
            HoldError: a record is on hold, with `all_or_none`; nothing is erased.
        """
        session = check_text(session_id, "session_id")
        return self._writer.forget(user_key(user_id), reason, session, all_or_none=all_or_none)

    def delete_shared(self, id: str, *, reason: str = "on request") -> ErasureReport:
        """Erase a shared record, and all users' scores of it.

        Raises:
            UnknownIdError: there is no such shared record.
        """
        return self._writer.delete(SHARED, id, reason)

    def hold(self, id: str, *, user_id: UserId, why: str = "held", reason: str = "on request") -> None:
        """Let nothing change or erase a record until `release`, not even `forget_user` or expiry.

        A record on hold is kept beyond its expiry, but no read returns it then.

        Raises:
            UnknownIdError: the user has no record of that id, or it has expired.
        """
        self._writer.hold(user_key(user_id), id, check_text(why, "why", NAME_LENGTH), reason)

    def release(self, id: str, *, user_id: UserId, reason: str = "on request") -> None:
        """End a hold.

        Raises:
            UnknownIdError: the user has no record of that id.
        """
        self._writer.hold(user_key(user_id), id, "", reason)

    def restore(self, id: str, *, user_id: UserId, reason: str = "on request") -> MemoryRecord:
        """Take back a record that was archived, merged, summarised or superseded.

        Maintenance doesn't hide it again for what it knows now: it and the record that replaced it both hold. A record
        that is added later can still replace it.

        Args:
            id: the record's id.
            user_id: its owner.
            reason: for the audit log; must hold no content.

        Returns:
            The record as it is now. Its expiry is the old one.

        Raises:
            UnknownIdError: the user has no record of that id, or it was erased or has expired.
            HoldError: the record is on hold.
        """
        return self._writer.restore(user_key(user_id), id, reason)

    def get(self, id: str, *, user_id: UserId) -> MemoryRecord:
        """Return a record of the user, or a shared one; also if it is archived, or another one replaced it.

        Raises:
            UnknownIdError: the user has no record of that id, or it has expired.
        """
        user, id = user_key(user_id), check_id(id)
        for key in (user, SHARED):
            stored = self._runtime.store.find(key, id)
            if stored is not None and not stored.record.expired(self.clock.now()):
                return stored.record
        raise unknown(id)

    def list(
        self,
        *,
        user_id: UserId,
        session_id: str | None = None,
        include_archived: bool = False,
        include_superseded: bool = False,
        include_messages: bool = False,
    ) -> builtins.list[MemoryRecord]:
        """Return the records of a user that hold and haven't expired, by id, without shared ones.

        Args:
            user_id: the owner.
            session_id: return only records of this conversation.
            include_archived: whether to return archived records, too.
            include_superseded: whether to return records that another one replaced, too.
            include_messages: whether to return the messages of `memory.messages`, too.

        Raises:
            ValidationError: an argument is invalid.
        """
        user = user_key(user_id)
        session = None if session_id is None else check_text(session_id, "session_id")
        query = RecordQuery(user=user, archived=None if include_archived else False, session_id=session)
        records = [stored.record for stored in self._runtime.store.records(query)]
        now = self.clock.now()
        shown = [
            r
            for r in records
            if not r.expired(now)
            and (include_superseded or not r.is_closed)
            and (include_messages or r.kind != "message")
        ]
        return sorted(shown, key=lambda r: r.id)

    def export(self, *, user_id: UserId) -> dict[str, Any]:
        """Return all data of a user, JSON-ready; expired and erased records aren't included.

        `records` hold now, `history` are those that another record replaced, and `archived` those in the archive.
        """
        return export_user(self._runtime, user_key(user_id), user_id)

    def explain(
        self, about: str, *, user_id: UserId, limit: int = 10, include_archived: bool = False
    ) -> builtins.list[Explanation]:
        """Return the memories about a topic, private ones included, each with its entries of the audit log.

        Args:
            about: the topic.
            user_id: whose memory.
            limit: the maximum number of records.
            include_archived: whether to return archived records and those that another one replaced, too.

        Raises:
            QueryError: `about` is blank.
        """
        query = make_query(
            about, user_id, policy=self.policy, now=self.clock.now(), include_private=True, limit=limit,
            max_tokens=1_000_000, include_superseded=include_archived,
        )  # fmt: skip
        archived = self._searcher.look_in_archive(query) if include_archived else None
        return explain_recall(self._runtime, query.user, self._searcher.look(query), archived)[:limit]

    def prompt(
        self,
        query: str,
        *,
        user_id: UserId,
        history: Sequence[TurnRecord] = (),
        system: str = "",
        max_tokens: int = 2_048,
        budget: PromptBudget | None = None,
        **search: Any,  # noqa: ANN401
    ) -> Prompt:
        """Return a prompt within a token budget: standing wishes, recalled facts, a summary, the last turns, the query.

        Instructions and pinned memories of the user stand in every prompt, within `PromptBudget.standing_tokens`.

        Args:
            query: the query.
            user_id: whose memory.
            history: the turns, oldest first: (role, text), {"role": …, "content": …}, or texts that alternate.
            system: the text at the top; never cut.
            max_tokens: the budget of the whole prompt.
            budget: how the tokens are divided; its own `max_tokens` is ignored.
            search: see `SearchOptions`; `max_tokens` follows from the budget.

        Raises:
            ConfigurationError: system text and query alone exceed the budget.
            ValidationError: a turn is invalid.
        """
        shared = replace(budget or PromptBudget(), max_tokens=max_tokens)
        turns, tokens = parse_history(history), self._runtime.tokens
        room = count_room(system, query, shared, tokens)
        summary = summarise_turns(turns, int(shared.summary_share * room), shared, tokens, self._runtime.summariser)
        recall = self.search(query, user_id=user_id, max_tokens=max(1, int(shared.facts_share * room)), **search)
        wishes = fit_wishes(recall.standing, min(shared.standing_tokens, room), tokens.count_many)
        return compose_prompt(
            recall, turns, wishes=wishes, summary=summary, system=system, query=query, budget=shared, tokens=tokens
        )

    def maintain(self, *, user_id: UserId | None = None, dry_run: bool = False) -> MaintenanceReport:
        """Erase expired records, close duplicates and contradicted records, and archive those beyond the cap.

        A policy can also let it prune, summarise and archive records of low scores. `restore` takes back whatever is
        closed or archived.

        Reads never wait for it, and never return expired records, with or without it.

        Args:
            user_id: whose records; None for everybody's.
            dry_run: only report what would be done, without running deferred reflections first.

        Raises:
            ModelError: a component that compares or summarises failed; everything else is done, for every user.
        """
        if not dry_run:
            self._reflector.run_deferred()
        return self._maintainer.maintain(None if user_id is None else [user_key(user_id)], dry_run=dry_run)

    def maintain_every(self, seconds: float) -> Background:
        """Run `maintain` in a thread, until `stop` is called or the memory is closed.

        Raises:
            ConfigurationError: `seconds` isn't positive, or longer than a thread can wait.
        """
        is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if not is_number or not 0 < seconds <= threading.TIMEOUT_MAX:
            raise ConfigurationError(
                f"seconds must be above 0 and at most {threading.TIMEOUT_MAX:.0f}, got {seconds!r:.40}"
            )
        background = Background(self.maintain, seconds)
        self._background.append(background)
        return background

    def find_damage(self) -> builtins.list[str]:
        """Return what is wrong with the pages of the file, as SQLite tells; empty for nothing.

        Reads the whole file; others may read and write meanwhile. `maintain` of all users does this, too. A change that
        keeps the pages intact is found by `audit.verify`, with a key.

        Raises:
            StoreCorruptError: the file is too damaged to be checked.
        """
        return self._runtime.store.find_damage()

    def stats(self) -> MemoryStats:
        """Return the size of the memory."""
        return self._runtime.store.counts()

    def close(self) -> None:
        """Stop background work, and close the store."""
        for each in self._background:
            each.stop()
        self.run_async.close()
        try:
            self._reflector.run_deferred()
        finally:
            self.closed = True
            self._sentences.clear()
            self._runtime.store.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close it."""
        self.close()
