"""Governed memory: what an agent may remember, for how long, and what of it may enter a prompt."""

import builtins
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self, Unpack

from meve.conversation.turn import TurnRecord
from meve.memory._async_runner import as_async
from meve.memory._audit.audit_log import AuditLog
from meve.memory._feedback.reflector import ReflectionResult, Reflector
from meve.memory._maintenance.maintenance import Maintainer
from meve.memory._operations import Operations
from meve.memory._recall.cache import RecallCache, drop_changed
from meve.memory._recall.memory_passage import FrameTokens
from meve.memory._recall.prompt import (
    LeftOutNote,
    Prompt,
    PromptBudget,
    choose_wishes,
    compose_prompt,
    count_room,
    parse_history,
    share_budget,
    summarise_turns,
)
from meve.memory._recall.query import SearchOptions, SentenceHashes, make_query
from meve.memory._recall.searcher import Load, Recall, Searcher
from meve.memory._recall.user_indexes import UserIndexes
from meve.memory._runtime import MemoryOptions, MemoryRuntime
from meve.memory._write.eraser import ErasureReport, unknown
from meve.memory._write.extraction_queue import ExtractionQueue
from meve.memory._write.fact_writer import FactWriter
from meve.memory._write.record_factory import RecordOptions
from meve.memory._write.writer import RecordWriter, UpdateOptions
from meve.memory.items._writer import ItemWriter
from meve.memory.items.items import Items
from meve.memory.messages.messages import Messages
from meve.memory.records import (
    SHARED,
    MemoryRecord,
    UserId,
    check_flag,
    check_id,
    check_scopes,
    check_tags,
    check_text,
    user_key,
)
from meve.memory.stores._opening import locate, open_store
from meve.memory.stores._sql.master_key import MasterKey
from meve.memory.stores.protocol import MemoryStore, RecordQuery


class GovernedMemory(Operations):
    """The memory of an agent's users. Safe to share between threads; several processes may have one file open.

    `open` makes it. Each method that reads or writes has an async form in front of whose name an `a` stands:
    `await memory.asearch(…)`. Async calls run one after the other, in the memory's thread; with PostgreSQL, reads have
    four threads of their own. A write is carried out even if the task that waits for it is cancelled.
    """

    def __init__(self, runtime: MemoryRuntime, *, location: Mapping[str, str] | None = None) -> None:
        self.location: Mapping[str, str] = location or {}
        """The arguments of `open` that name where it is, without a password; empty for a store of your own."""
        self.policy = runtime.policy
        self.clock = runtime.clock
        self.audit = AuditLog(runtime.store, runtime.clock)
        self._runtime = runtime
        self._writer = RecordWriter(runtime)
        load = Load(runtime.policy.limits.busy)
        self._reflector = Reflector(runtime, load)
        indexes = UserIndexes(runtime.store, runtime.embedder, runtime.policy.limits.vectors)
        recalls = RecallCache(runtime.policy.limits.recalls)
        frames = FrameTokens(runtime.tokens)
        self._searcher = Searcher(runtime=runtime, indexes=indexes, cache=recalls, load=load, frames=frames)
        runtime.store.subscribe(partial(drop_changed, recalls=recalls, indexes=indexes, reflector=self._reflector))
        self.items = Items(runtime, self._searcher, ItemWriter(runtime, self._writer))
        self.messages = Messages(runtime, self._writer)
        self._facts = FactWriter(runtime, self._writer, self._searcher)
        self._extractions: ExtractionQueue[Any] = ExtractionQueue()
        self._maintainer = Maintainer(runtime)
        self._background = []
        self._sentences = SentenceHashes()
        self._note_left_out = LeftOutNote()
        self._warned: set[str] = set()
        self.closed = False
        self.run_async = runtime.runner
        """For async callers: `await memory.run_async(record_turns, memory, …)` runs any call in the memory's thread."""

    @classmethod
    def open(
        cls,
        file: str | Path | None = None,
        *,
        store: MemoryStore | None = None,
        key_file: str | Path | None = None,
        tenant: str | None = None,
        master_key: MasterKey | None = None,
        accept_older: bool = False,
        **options: Unpack[MemoryOptions],
    ) -> Self:
        """Open the memory in a file, in a PostgreSQL database, or in a store of your own.

        Args:
            file: the path of an SQLite file, created if it doesn't exist; while it is open, SQLite's `-wal` and `-shm`
                stand beside it. Or `postgresql://user@host:port/database`.
            store: a back end to use instead of a file; the memory closes it.
            key_file: for PostgreSQL, the file with the keys of the records, created with the memory. All processes that
                use the memory need the same file. Or the URL of a database on another server, for processes on several
                machines; what is erased is gone then once that server has cleaned its files.
            tenant: for PostgreSQL, whose memory in the database; `default` by default.
            master_key: locks the key file, from then on: 16 bytes or more, the `Path` of a file that holds them, or a
                function that returns them. Each opening needs it then.
            accept_older: open a database that is older than its keys, such as a restored backup. Records that were
                erased since are removed, and the keys of those that were added since are destroyed.
            options: see `MemoryOptions`.

        Raises:
            ConfigurationError: not exactly one of `file` and `store`, no `key_file` for PostgreSQL, an invalid
                component, or another embedder than the memory was made with.
            StorageError: the file or database can't be used, is damaged, or of a newer version.
            KeyFileError: the key file is missing, belongs to another memory, is locked with another master key, or is
                older or newer than the database.
            AuditError: another key signs the audit log.
        """
        backend = open_store(
            file, store, key_file=key_file, tenant=tenant, master_key=master_key, accept_older=accept_older
        )
        try:
            return cls(MemoryRuntime.open(backend, **options), location=locate(file, key_file, tenant))
        except BaseException:
            backend.close()
            raise

    @property
    def file(self) -> Path | None:
        """The absolute path of its SQLite file; None without one."""
        return Path(self.location["file"]) if "file" in self.location and "tenant" not in self.location else None

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

    def search(self, query: str, *, user_id: UserId, **options: Unpack[SearchOptions]) -> Recall:
        """Return the memories that answer a query: by day, within a token budget, with the reasons for each.

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
        """Change values of a record. Owner, id, source and creation stay. Without values, nothing changes or is logged.

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

    def supersede(
        self,
        record_id: str,
        text: str,
        *,
        user_id: UserId,
        reason: str = "on request",
        **options: Unpack[RecordOptions],
    ) -> MemoryRecord:
        """Write a new text in place of a record, which stays in the history, closed.

        Source, class, session, tags, metadata and origins are those of the former record, and it expires no later,
        unless you give others.

        Args:
            record_id: the former record's id.
            text: the new text.
            user_id: the owner.
            reason: for the audit log; must hold no content.
            options: see `RecordOptions`; give `source="chat_user"` for what the user says in place of a document.

        Returns:
            The new record, with an id of its own.

        Raises:
            UnknownIdError: the user has no record of that id, or another one replaced it.
            HoldError: the former record is on hold.
            PolicyError: it is a standing wish, and the new text isn't what the user said; or the new text would be one,
                and the former wasn't what the user said.
            ValidationError: an argument is invalid, or the record is an item or a message.
            ModelError, StorageError: as for `add`.
        """
        return self._writer.supersede(user_key(user_id), user_id, record_id, text, reason, **options)

    def delete(
        self,
        id: str,
        *,
        user_id: UserId,
        include_superseded: bool = False,
        reason: str = "on request",
        dry_run: bool = False,
    ) -> ErasureReport:
        """Erase a record, its copies, its earlier versions and what is derived from them, from files and caches.

        Copies are records that were merged into it because they said the same. Records that a judge closed because
        this one replaced them are other statements: they stay closed, and the report lists them (`left_closed`).

        Args:
            id: the record's id.
            user_id: its owner.
            include_superseded: whether to erase those, too.
            reason: for the audit log; must hold no content.
            dry_run: only list the records.

        Raises:
            UnknownIdError: the user has no record of that id.
        """
        return self._writer.delete(
            user_key(user_id), id, reason, include_superseded=include_superseded, dry_run=dry_run
        )

    def forget_user(self, *, user_id: UserId, reason: str = "on request", dry_run: bool = False) -> ErasureReport:
        """Erase all records of a user except those on hold, which the report lists; `dry_run` only lists them.

        If nothing of the user is stored, `found` is False in the report; the int 5 and the string "5" are two users.
        """
        user = user_key(user_id)
        if not check_flag(dry_run, "dry_run"):
            self._extractions.forget(user)
        return self._writer.forget(user, reason, dry_run=dry_run)

    def forget_session(
        self, session_id: str, *, user_id: UserId, all_or_none: bool = False, reason: str = "on request"
    ) -> ErasureReport:
        """Erase all records of a user's session and those derived from them, except those on hold.

        If there are none, `found` is False in the report.

        Raises:
            HoldError: a record is on hold, with `all_or_none`; nothing is erased.
        """
        user, session = user_key(user_id), check_text(session_id, "session_id")
        self._extractions.forget(user)
        return self._writer.forget(user, reason, session, all_or_none=all_or_none)

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
        agent_id: str | None = None,
        run_id: str | None = None,
        tags: Iterable[str] | None = None,
        include_archived: bool = False,
        include_superseded: bool = False,
        include_messages: bool = False,
    ) -> builtins.list[MemoryRecord]:
        """Return the records of a user that hold and haven't expired, the oldest first, without shared ones.

        Records of one moment are in the order of their ids.

        Args:
            user_id: the owner.
            session_id: return only records of this conversation.
            agent_id: return only records that were added with this agent's id.
            run_id: return only records that were added with this run's id.
            tags: return only records with any of these tags.
            include_archived: whether to return archived records, too.
            include_superseded: whether to return records that another one replaced, too.
            include_messages: whether to return the messages of `memory.messages`, too.

        Raises:
            ValidationError: an argument is invalid.
        """
        user = user_key(user_id)
        session = None if session_id is None else check_text(session_id, "session_id")
        scopes = check_scopes({"agent_id": agent_id, "run_id": run_id}).items()
        any_of = None if tags is None else set(check_tags(tags))
        check_flag(include_archived, "include_archived")
        check_flag(include_superseded, "include_superseded")
        check_flag(include_messages, "include_messages")
        query = RecordQuery(user=user, archived=None if include_archived else False, session_id=session)
        records = [stored.record for stored in self._runtime.store.records(query)]
        now = self.clock.now()
        shown = [
            r
            for r in records
            if not r.expired(now)
            and (include_superseded or not r.is_closed)
            and (include_messages or r.kind != "message")
            and all(r.metadata.get(name) == value for name, value in scopes)
            and (any_of is None or not any_of.isdisjoint(r.tags))
        ]
        return sorted(shown, key=lambda r: (r.created_at, r.id))

    def prompt(
        self,
        /,
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

        Instructions and pinned memories of the user stand in every prompt, within `PromptBudget.standing_tokens`. If
        some don't fit, `Prompt.standing_left_out` names them, and a warning is logged once.

        Args:
            query: the query.
            user_id: whose memory.
            history: the turns, oldest first: (role, text), {"role": …, "content": …}, or texts that alternate.
            system: the text at the top; never cut.
            max_tokens: the budget of the whole prompt.
            budget: how the tokens are divided; its own `max_tokens` is ignored.
            search: see `SearchOptions`; `max_tokens` follows from the budget.

        Raises:
            ConfigurationError: system text and query alone exceed the budget, or `budget` is no `PromptBudget`.
            ValidationError: a turn is invalid.
        """
        shared = share_budget(budget, max_tokens)
        turns, tokens = parse_history(history), self._runtime.tokens
        room = count_room(system, query, shared, tokens)
        summary = summarise_turns(turns, int(shared.summary_share * room), shared, tokens, self._runtime.summariser)
        recall = self.search(query, user_id=user_id, max_tokens=max(1, int(shared.facts_share * room)), **search)
        heading, wishes = choose_wishes(recall.standing, system, query, shared, tokens)
        prompt = compose_prompt(
            recall, turns, heading=heading, wishes=wishes, summary=summary, system=system, query=query, budget=shared,
            tokens=tokens,
        )  # fmt: skip
        self._note_left_out(len(prompt.standing_left_out))
        return prompt

    aadd = as_async(add)
    aupdate, asupersede = as_async(update), as_async(supersede)
    adelete = as_async(delete)
    aforget_user, aforget_session = as_async(forget_user), as_async(forget_session)
    areflect = as_async(reflect)
    asearch, aprompt = as_async(search, is_read=True), as_async(prompt, is_read=True)
    aget, alist = as_async(get, is_read=True), as_async(list, is_read=True)
