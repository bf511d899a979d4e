"""The methods of a memory beyond a user's daily records: holds, shared records, export, import, upkeep, embedder."""

import asyncio
import builtins
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, Unpack

from meve._not_picklable import NotPicklable
from meve._telemetry import reported
from meve.clock import Clock
from meve.components.embedders import resolve_embedder
from meve.conversation.conservation import ConservationMetrics
from meve.conversation.outcomes import OutcomeStatistics
from meve.errors import ConfigurationError, ValidationError, show
from meve.memory._async_runner import AsyncRunner, as_async
from meve.memory._audit.subject_access import Explanation, explain_recall, explain_record, export_user
from meve.memory._feedback.reflector import Reflector
from meve.memory._import.importer import Importer, ImportReport
from meve.memory._import.rows import ImportFormat, RowRules
from meve.memory._maintenance.maintenance import Background, Maintainer
from meve.memory._maintenance.plan import MaintenanceReport
from meve.memory._recall.query import SentenceHashes, make_query
from meve.memory._recall.searcher import Searcher
from meve.memory._reports import describe_maintenance
from meve.memory._runtime import MemoryRuntime
from meve.memory._salience import measure_records
from meve.memory._write.eraser import ErasureReport
from meve.memory._write.extraction_queue import ExtractionQueue
from meve.memory._write.record_factory import RecordOptions
from meve.memory._write.reembedding import Reembedder, ReembedReport
from meve.memory._write.writer import RecordWriter
from meve.memory.items.namespace_pattern import NamespacePattern
from meve.memory.policy import Policy, PolicyClass, RecordSource
from meve.memory.records import (
    NAME_LENGTH,
    REASON_LENGTH,
    SHARED,
    MemoryRecord,
    MemoryStats,
    UserId,
    check_choice,
    check_flag,
    check_text,
    user_key,
)
from meve.ports import Embedder


class Operations(NotPicklable):
    """Holds, shares, exports, imports, explains, maintains and closes. `GovernedMemory` inherits it."""

    _instead = "another process opens its file by GovernedMemory.open(file)"

    policy: Policy
    clock: Clock
    _runtime: MemoryRuntime
    _writer: RecordWriter
    _searcher: Searcher
    _reflector: Reflector
    _maintainer: Maintainer
    _background: builtins.list[Background]
    _extractions: ExtractionQueue[Any]
    _sentences: SentenceHashes
    run_async: AsyncRunner
    closed: bool
    get: Callable[..., MemoryRecord]

    def hold(self, id: str, *, user_id: UserId, why: str = "held", reason: str = "on request") -> None:
        """Let nothing change or erase a record until `release`, not even `forget_user` or expiry.

        A record on hold is kept beyond its expiry, but no read returns it then.

        Raises:
            UnknownIdError: the user has no record of that id, or it has expired.
        """
        self._writer.hold(user_key(user_id), id, check_text(why, "why", NAME_LENGTH), reason)

    def release(self, id: str, *, user_id: UserId, reason: str = "on request") -> None:
        """End a hold. A record that isn't on hold stays as it is, and nothing is logged.

        Raises:
            UnknownIdError: the user has no record of that id.
        """
        self._writer.hold(user_key(user_id), id, "", reason)

    def restore(self, id: str, *, user_id: UserId, reason: str = "on request") -> MemoryRecord:
        """Take back a record that was archived, merged, summarised or superseded; a flagged one loses its flag.

        A record that holds, but that searches leave out because another one contradicts it, is shown again. Any other
        one stays as it is, and nothing is logged.

        Restoring counts as said by the user: it and the record that replaced it both hold, and only a later statement
        of the user (source `chat_user`) or an update can replace it.

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
        record = self.get(id, user_id=user_id)
        is_gone = record.archived or record.is_closed or record.flagged
        if record.user_id is not None and not (is_gone or record.hold or self._searcher.hides(record)):
            return record
        return self._writer.restore(user_key(user_id), id, reason)

    def add_shared(self, text: str, *, reason: str = "on request", **options: Unpack[RecordOptions]) -> MemoryRecord:
        """Remember a text for all users, of a class that the policy lets be shared.

        Raises:
            PolicyError: records of its class may not be shared.
            ValidationError: as for `add`.
        """
        shared: RecordOptions = {"source": "doc", "policy_class": "canonical"}
        shared.update(options)
        return self._writer.add(SHARED, None, text, reason, **shared)

    def delete_shared(self, id: str, *, reason: str = "on request") -> ErasureReport:
        """Erase a shared record, and all users' scores of it.

        Raises:
            UnknownIdError: there is no such shared record.
        """
        return self._writer.delete(SHARED, id, reason)

    def record_outcome(
        self, id: str, outcome: float, *, user_id: UserId, reason: str = "on request"
    ) -> OutcomeStatistics:
        """Record how useful a memory was where it was recalled, such as by a user's rating.

        `reflect` also records outcomes: 1 for a memory that an answer used, 0 for one that it contradicted. A recall
        counts them if the policy's `ranking.outcome` is above 0.

        Args:
            id: the id of a record of the user, or of a shared one, of which each user has statistics of his own.
            outcome: from 0, useless, to 1, useful.
            user_id: whose memory.
            reason: for the audit log; must hold no content.

        Returns:
            The record's statistics, this outcome included.

        Raises:
            UnknownIdError: the user has no record of that id, or it has expired.
            HoldError: the record is on hold.
            ValidationError: the outcome is no number in [0, 1].
        """
        return self._reflector.record_outcome(
            user_key(user_id), id, outcome, check_text(reason, "reason", REASON_LENGTH)
        )

    def measure_conservation(self, *, user_id: UserId) -> ConservationMetrics:
        """Return magnitude, energy and information of a user's active records, weighted by their salience.

        The salience of a record is 1 + reflection score / 100 + expected outcome. See docs/conversation.md.

        Raises:
            EmptyCorpusError: the user has no active records with vectors of the memory's embedder.
        """
        return measure_records(self._runtime, user_key(user_id))

    def export(self, *, user_id: UserId) -> dict[str, Any]:
        """Return all data of a user, JSON-ready, the oldest first; expired and erased records aren't included.

        `records` hold now, `history` are those that another record replaced, and `archived` those in the archive.
        """
        return export_user(self._runtime, user_key(user_id), user_id)

    def import_(
        self,
        data: Any,  # noqa: ANN401
        *,
        user_id: UserId | None = None,
        format: ImportFormat | None = None,
        namespaces: str | None = None,
        source: RecordSource = "doc",
        policy_class: PolicyClass = "factual",
        restore_erased: bool = False,
        dry_run: bool = False,
        reason: str = "import",
    ) -> ImportReport:
        """Add the records of an export that this memory doesn't have. Invalid rows are reported, and the rest goes in.

        - `meve`, what `export` returns: `records`, `history` and `archived`, with all fields of each record, and the
          order of messages. The records keep source, class and expiry. The audit log and the scores of shared records
          aren't read.
        - `mem0`, a list of memories or `{"results": […]}`, as mem0's `get_all` returns them: `id`, `memory`, `user_id`,
          `created_at`, `updated_at` (as `valid_from`), `expiration_date`, `categories` (as tags), `metadata`, and into
          the metadata `agent_id`, `run_id`, `app_id`, `actor_id`, `role` and `attributed_to`. Others, such as `hash`,
          aren't read.
        - `langgraph`, a list of items or `{"items": […]}`, as a LangGraph store returns and langmem fills them:
          `namespace`, `key`, `value`, `created_at` and `updated_at`. They become `memory.items`.

        Nothing gains trust or a longer life: records of mem0 have the source and the class that you give, and live no
        longer than their class and `expiration_date` allow; a derived record expires no later than its origins.

        Args:
            data: the parsed JSON.
            user_id: the only owner; rows that name another user are rejected. None for the owner that each row names.
            format: who wrote the export; None to find out.
            namespaces: where LangGraph's namespaces name the owner, such as `memories/{user_id}/*`; None if all items
                belong to `user_id`.
            source: the source of memories of mem0.
            policy_class: their class; not `instruction`.
            restore_erased: whether records that were deleted from this memory, or expired here, come back, and what
                derives from them.
            dry_run: only report.
            reason: for the audit log; must hold no content.

        Raises:
            ValidationError: the data are no such export, or an argument is invalid; nothing is stored.
            ModelError: the embedder failed; a second import goes on.
            StorageError: the store can't be written.
        """
        if policy_class == "instruction" or source in ("item", "message"):
            raise ValidationError(
                f"imported memories can't be instructions, items or messages, got policy_class {policy_class!r:.40} "
                f"and source {source!r:.40}: choose others"
            )
        if user_id is not None:
            user_key(user_id)
        rules = RowRules(
            policy=self.policy,
            now=self.clock.now(),
            user_id=user_id,
            namespaces=None if namespaces is None else NamespacePattern.parse(namespaces),
            source=check_choice(source, "source", RecordSource),
            policy_class=check_choice(policy_class, "policy_class", PolicyClass),
        )
        importer = Importer(
            self._runtime,
            rules,
            check_text(reason, "reason", REASON_LENGTH),
            check_flag(restore_erased, "restore_erased"),
        )
        return importer.run(data, format, dry_run=check_flag(dry_run, "dry_run"))

    def explain(
        self,
        about: str,
        *,
        user_id: UserId,
        limit: int = 10,
        agent_id: str | None = None,
        run_id: str | None = None,
        include_archived: bool = False,
        include_superseded: bool = False,
    ) -> builtins.list[Explanation]:
        """Return the memories about a topic, private ones included, each with its entries of the audit log.

        Args:
            about: the topic, as a text to search for; `explain_record` takes an id.
            user_id: whose memory.
            limit: the maximum number of records.
            agent_id: return only records that were added with this agent's id.
            run_id: return only records that were added with this run's id.
            include_archived: whether to return archived records, too.
            include_superseded: whether to return records that another one replaced, too.

        Raises:
            QueryError: `about` is blank.
        """
        query = make_query(
            about, user_id, policy=self.policy, now=self.clock.now(), include_private=True, limit=limit,
            max_tokens=1_000_000, agent_id=agent_id, run_id=run_id, include_superseded=include_superseded,
        )  # fmt: skip
        with_archive = check_flag(include_archived, "include_archived")
        archived = self._searcher.look_in_archive(query) if with_archive else None
        return explain_recall(self._runtime, query.user, self._searcher.look(query), archived)[:limit]

    def explain_record(self, id: str, *, user_id: UserId) -> Explanation:
        """Return why a record of the user, or a shared one, is kept, and its entries of the audit log; without a score.

        Raises:
            UnknownIdError: the user has no record of that id, or it has expired.
        """
        user = user_key(user_id)
        shared_scores = self._runtime.store.shared_scores(user)
        return explain_record(self._runtime, user, self.get(id, user_id=user_id), None, shared_scores)

    @reported("meve.maintain", describe_maintenance)
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
            AuditError: everything is done, but the signed checkpoint can't be written.
        """
        if not check_flag(dry_run, "dry_run"):
            self._reflector.run_deferred()
        return self._maintainer.maintain(None if user_id is None else [user_key(user_id)], dry_run=dry_run)

    def maintain_every(self, seconds: float, *, at_once: bool = False) -> Background:
        """Run `maintain` in a thread, until `stop` is called or the memory is closed.

        Args:
            seconds: the time between the end of a run and the start of the next.
            at_once: whether the first run starts now; by default it does after `seconds`.

        Raises:
            ConfigurationError: `seconds` isn't positive, or longer than a thread can wait.
        """
        is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if not is_number or not 0 < seconds <= threading.TIMEOUT_MAX:
            raise ConfigurationError(
                f"seconds must be above 0 and at most {threading.TIMEOUT_MAX:.0f}, got {show(seconds, 40)}"
            )
        background = Background(self.maintain, seconds, at_once=check_flag(at_once, "at_once"))
        self._background.append(background)
        return background

    def reembed(
        self,
        embedder: Embedder | str | None = None,
        *,
        reason: str = "on request",
        progress: Callable[[int, int], object] = lambda _done, _users: None,
    ) -> ReembedReport:
        """Write new vectors of all records, by another embedder, which is the memory's from then on.

        The records of one user get their new vectors in one transaction. Until then, this process finds them by the
        old vectors, and what is added meanwhile by its words. After a crash, call it again: it goes on with the users
        that aren't done. Other processes with the old embedder go on working, but find records with new vectors by
        words alone, and warn; open the memory again there. The audit log gets an entry for each user.

        Args:
            embedder: as for `open`; None for the memory's own, to go on, or after `open(…, reembed=True)`.
            reason: for the audit log; must hold no content.
            progress: called with the number of users done and of all users, after each.

        Raises:
            ConfigurationError: an invalid embedder.
            ModelError: the embedder failed; the users that are done keep their new vectors.
            IndexMismatchError: somebody began to change to another embedder.
            StorageError: the store can't be written.
        """
        if not callable(progress):
            raise ValidationError(f"progress must be a function of two numbers, got {progress!r:.80}")
        runtime = self._runtime
        chosen = runtime.embedder.current if embedder is None else resolve_embedder(embedder)
        return Reembedder(runtime, chosen, check_text(reason, "reason", REASON_LENGTH), progress).run()

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

    aexport, aexplain = as_async(export, is_read=True), as_async(explain, is_read=True)
    aexplain_record, astats = as_async(explain_record, is_read=True), as_async(stats, is_read=True)
    arecord_outcome = as_async(record_outcome)
    ahold, arelease, arestore = as_async(hold), as_async(release), as_async(restore)
    aadd_shared, adelete_shared = as_async(add_shared), as_async(delete_shared)

    def close(self) -> None:
        """Stop background work, wait for async calls that were made, and close the store."""
        for each in self._background:
            each.stop()
        self.run_async.close()  # before the store: its queue may hold writes whose callers were cancelled
        self._extractions.close()
        try:
            self._reflector.run_deferred()
        finally:
            self.closed = True
            self._sentences.clear()
            self._runtime.store.close()

    async def aclose(self) -> None:
        """Close it, without blocking the event loop."""
        await asyncio.to_thread(self.close)

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Close it."""
        await self.aclose()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close it."""
        self.close()
