"""Reads, writes and audit entries that all back ends share, composed of the primitives of a `MemoryStore`."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Self

from meve._telemetry import count, measure
from meve.clock import Clock
from meve.errors import AuditError, StorageError, wrap_errors
from meve.memory._audit.certificate import ErasureEntry
from meve.memory._audit.chain import (
    INITIAL_DIGEST,
    AuditChain,
    AuditEvent,
    AuditHead,
    AuditRow,
    AuditVerification,
    note_loss,
    to_audit_event,
)
from meve.memory._audit.checkpoints import SignedHeads
from meve.memory._audit.log_names import LogNames, find_entries
from meve.memory._audit.older_log import Rewrite, rewrite_older
from meve.memory._audit.record_state import LoggedStates
from meve.memory._steady_clock import SharedTime, SteadyClock
from meve.memory._timestamps import from_micros, to_micros
from meve.memory.records import SHARED, MemoryStats, SharedScore, StoredRecord, user_of
from meve.memory.stores._closed_records import detach_closed
from meve.memory.stores._reading import UnreadableRecord, all_records, find, readable_records
from meve.memory.stores._recall_notes import MOST, RecallNote, RecallNotes
from meve.memory.stores._record_transaction import RecordTransaction, UserChange, get_head
from meve.memory.stores._settings import (
    LATEST_TIME,
    LOG_NAMES,
    LOST_ENTRIES,
    EmbedderClaims,
    claim_setting,
    see_time,
)
from meve.memory.stores.protocol import EventQuery, Field, MemoryStore, RecordQuery, SealedHead, Snapshot, Transaction

_CLOCK_TOLERANCE = timedelta(minutes=1)
"""A warning is logged if the clock is further behind the latest time seen than this."""
_LOGGER = logging.getLogger("meve")


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes of a user's active records since a version."""

    version: int
    """The user's version now."""
    is_complete: bool
    """Whether `records` holds all active records, so that a reader must replace its own."""
    records: Sequence[StoredRecord]
    """New and changed records."""
    removed_rows: Sequence[int]


Listener = Callable[[UserChange], None]
Follow = Callable[[Iterable[AuditRow]], Iterable[AuditRow]]


class RecordStore:
    """The records, the audit log and the listeners of a memory, over any back end.

    Args:
        backend: where all of it is kept.
        audit_chain: signs the audit log.
    """

    def __init__(self, backend: MemoryStore, audit_chain: AuditChain | None = None) -> None:
        self.backend = backend
        self.chain = audit_chain or AuditChain()
        self.embedders = EmbedderClaims(backend)
        self._listeners: list[Listener] = []
        self._clock: SteadyClock | None = None
        self._recalls = RecallNotes()

    @classmethod
    def open(cls, backend: MemoryStore, audit_chain: AuditChain | None = None) -> Self:
        """Begin the audit log of a new store, or check that this key signs it.

        Raises:
            AuditError: another key signs the log.
        """
        store = cls(backend, audit_chain)
        mine = store.chain.fingerprint
        seal = store.chain.seal(0, INITIAL_DIGEST)
        head = SealedHead(seq=0, digest=INITIAL_DIGEST, seal=seal)
        theirs = claim_setting(backend, "audit_key", mine, head)
        if theirs != mine:
            had, given = ("a key" if each else "no key" for each in (theirs, mine))
            difference = "another key" if had == given else f"{had}, and you gave {given}"
            raise AuditError(
                f"the audit log of {backend.name} is signed with {difference}: open it with the same audit_key"
            )
        store._hide_older_names()
        return store

    def _hide_older_names(self) -> None:
        """Put keyed hashes in place of the names in the log of an older version; one that isn't intact stays."""
        rewrite_log: Callable[[Rewrite], None] | None = getattr(self.backend, "rewrite_log", None)
        with self.backend.reading() as snapshot:
            if rewrite_log is None or not self.chain.hides_names or snapshot.setting(LOG_NAMES) is not None:
                return
        rewrite_log(partial(rewrite_older, self.chain))

    def keep_time(self, clock: Clock, *, reset: bool = False) -> SteadyClock:
        """Return a clock that never shows an earlier time than the store has seen.

        Each write notes the time; so does each other call, at most once a minute, if the back end is a `SharedTime`.

        Args:
            clock: the clock to read.
            reset: whether to forget the time that the store has seen.
        """
        shared = self.backend if isinstance(self.backend, SharedTime) else None
        steady = SteadyClock(clock, shared)
        if reset:
            now = to_micros(clock.now())
            with self.backend.writing() as transaction:
                transaction.put_setting(LATEST_TIME, str(now))
                if shared is not None:
                    shared.note_time(now)
        with self.backend.reading() as snapshot:
            ahead = see_time(snapshot, steady) - clock.now()
        if ahead > _CLOCK_TOLERANCE:
            _LOGGER.warning(
                "the clock is %s behind the latest time that %s has seen, and records that expired by then are erased "
                "in maintenance: if the clock was wrongly ahead, open the memory with reset_clock=True",
                ahead,
                self.backend.name,
            )
        self._clock = steady
        return steady

    def close(self) -> None:
        """Write what is noted of recalls, note the latest time that was seen, and close the back end."""
        if notes := self._recalls.take():
            with suppress(StorageError), self.backend.writing(durable=False) as transaction:
                _write_notes(transaction, notes)
        if self._clock is not None:
            self._clock.stop()
        self.backend.close()

    def subscribe(self, listener: Listener) -> None:
        """Call a function with each user's changes after each commit, so that caches drop erased records."""
        self._listeners.append(listener)

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[RecordTransaction]:
        """Write as `MemoryStore.writing` does, and call the listeners after the commit.

        What is noted of recalls is written first, unless the commit isn't durable and little is noted.
        """
        notes = self._recalls.take(least=1 if durable else MOST)
        try:
            with self.backend.writing(durable=durable) as transaction:
                _write_notes(transaction, notes)
                records = RecordTransaction(transaction)
                yield records
                detach_closed(records)
                records.append_events(self.chain)
                if self._clock is not None:
                    transaction.put_setting(LATEST_TIME, str(to_micros(see_time(transaction, self._clock))))
        except BaseException:
            self._recalls.add(*notes)
            raise
        for action, number in Counter(event.action for event in records.events).items():
            count("meve.memory.events", {"meve.action": action}, number)
        for change in records.changes.values():
            for listener in self._listeners:
                listener(change)

    def note_recall(self, user: str, record_ids: Sequence[str], at: datetime) -> None:
        """Note when active records were recalled. Reads show it; it is written with a later change.

        A process that is killed loses the notes.
        """
        self._recalls.add(RecallNote(user, record_ids, at))

    def find(self, user: str, record_id: str) -> StoredRecord | None:
        with self.backend.reading() as snapshot:
            found = find(snapshot, user, record_id)
        return None if found is None else self._recalls.show(user, [found])[0]

    def records(self, query: RecordQuery) -> list[StoredRecord]:
        with self.backend.reading() as snapshot:
            records = snapshot.records(query)
        return records if query.user is None else self._recalls.show(query.user, records)

    def count(self, query: RecordQuery) -> int:
        with self.backend.reading() as snapshot:
            return snapshot.count(query)

    def all_records(self, user: str) -> list[StoredRecord]:
        with self.backend.reading() as snapshot:
            return self._recalls.show(user, all_records(snapshot, user))

    def readable_records(self, user: str) -> tuple[list[StoredRecord], list[UnreadableRecord]]:
        with self.backend.reading() as snapshot:
            records, unreadable = readable_records(snapshot, RecordQuery(user=user, archived=None))
        return self._recalls.show(user, records), unreadable

    def version(self, user: str) -> int:
        return self.versions(user)[0]

    def versions(self, *users: str) -> list[int]:
        """Return the version of each user's records, in one state of the store."""
        with self.backend.reading() as snapshot:
            return [snapshot.version(user) for user in users]

    def changes(self, user: str, since: int) -> Changes:
        """Return the changes of a user's active records after a version, or all records if the changes are unknown."""
        with self.backend.reading() as snapshot:
            version = snapshot.version(user)
            removed = snapshot.removed_rows(user, since) if 0 < since <= version else None
            is_complete = removed is None
            records = snapshot.records(RecordQuery(user=user, changed_since=0 if is_complete else since))
        return Changes(version=version, is_complete=is_complete, records=records, removed_rows=removed or ())

    def touched(self, user: str, rows: Mapping[str, int]) -> dict[int, datetime]:
        """Return by row when active records were last recalled: `changes` doesn't report recalls.

        Rows and times aren't sealed, so this decrypts nothing.

        Args:
            user: the user's key.
            rows: by id, the rows of the records.
        """
        times = self.select(RecordQuery(user=user, ids=list(rows)), "row", "touched_at")
        touched = {row: touched_at for row, touched_at in times if touched_at is not None}
        noted = self._recalls.of(user)
        for row, at in ((rows[each], noted[each]) for each in rows.keys() & noted.keys()):
            touched[row] = max(at, touched.get(row, at))
        return touched

    def select(self, query: RecordQuery, *fields: Field) -> list[tuple[Any, ...]]:
        with self.backend.reading() as snapshot:
            return snapshot.select(query, *fields)

    def setting(self, name: str) -> str | None:
        with self.backend.reading() as snapshot:
            return snapshot.setting(name)

    def users(self) -> list[str]:
        with self.backend.reading() as snapshot:
            return snapshot.users()

    def shared_scores(self, user: str) -> Mapping[str, SharedScore]:
        with self.backend.reading() as snapshot:
            return snapshot.shared_scores(user)

    def events(self, query: EventQuery) -> Iterator[AuditEvent]:
        """Return the matching entries of the audit log, oldest first. Raise AuditError for a damaged entry.

        A user's entries are found, and name the user, whether they hold the id or a pseudonym.
        """
        with self.backend.reading() as snapshot:
            names = LogNames(snapshot, self.chain, query)
            for entry in find_entries(snapshot, self.chain, query):
                with wrap_errors(AuditError, f"reading entry {entry.seq} of the audit log (verify() checks the log)"):
                    event = to_audit_event(entry, from_micros(entry.at))
                    "".join(entry[2:-1]).encode()  # no surrogates
                event = names.shown(event, entry)
                yield event if query.user is None else replace(event, user_id=user_of(query.user))

    def head(self) -> AuditHead:
        """Return position and digest of the newest entry of the audit log."""
        with self.backend.reading() as snapshot:
            head = get_head(snapshot)
        return AuditHead(seq=head.seq, digest=head.digest.hex())

    def verify(self, kept: AuditHead | None = None, signed: SignedHeads | None = None) -> AuditVerification:
        """Check the audit log against its chain, its seal and kept heads, and the records against the log.

        If a record is erased while it is read, the others are read in a later state than the log. So what differs is
        checked again while nobody can write.
        """
        result = self._verify(self.backend.reading, kept, signed or SignedHeads())
        if result.differences:
            result = self._verify(self.backend.writing, kept, signed or SignedHeads())
        count("meve.audit.verifications", {"meve.audit.ok": result.ok})
        measure("meve.audit.entries", result.events)
        measure("meve.audit.intact", int(result.ok))
        return result

    def _verify(
        self, opening: Callable[[], AbstractContextManager[Snapshot]], kept: AuditHead | None, signed: SignedHeads
    ) -> AuditVerification:
        logged = LoggedStates(self.chain)
        entries_written: Callable[[], int] = getattr(self.backend, "entries_written", lambda: 0)
        written = entries_written()  # before the log is read: others may write meanwhile
        with opening() as snapshot:
            result = signed.compare(self._verify_log(snapshot, kept, lambda rows: logged.follow(signed.follow(rows))))
            result = note_loss(result, written, snapshot.setting(LOST_ENTRIES))
            if not result.ok:
                return result
            if not self.chain.keyed:
                return replace(result, not_covered=snapshot.count(RecordQuery(user=None, archived=None)))
            return logged.compare(snapshot, result)

    def verify_erasures(self, follow: Follow, users: Iterable[str]) -> tuple[AuditVerification, set[str]]:
        """Check the audit log, while `follow` reads along; it must yield each entry.

        Args:
            follow: reads the entries.
            users: the key of a user, or its pseudonym, or both.

        Returns:
            The result, and the ids of records of the user that are stored although the log shows no addition of them
            since they were erased last; empty for one that can't be read.
        """
        logged = LoggedStates(self.chain)
        with self.backend.reading() as snapshot:
            result = self._verify_log(snapshot, None, lambda rows: logged.follow(follow(rows)))
            if not result.ok or not logged.find_planted(snapshot, users):
                return result, set()
        logged = LoggedStates(self.chain)
        with self.backend.writing() as transaction:  # as in `verify`
            self._verify_log(transaction, None, logged.follow)
            return result, logged.find_planted(transaction, users)

    def with_ids(self, entries: Iterable[ErasureEntry], user: str, ids: Iterable[str]) -> list[ErasureEntry]:
        """Return erasures with the ids of their records, as far as the store can tell them, or they are given."""
        with self.backend.reading() as snapshot:
            names = LogNames(snapshot, self.chain, EventQuery(user=user), ids)
            return [replace(entry, record_id=names.of(entry.record_id)) for entry in entries]

    def _verify_log(self, snapshot: Snapshot, kept: AuditHead | None, follow: Follow) -> AuditVerification:
        head = snapshot.head()
        if head is None:
            problem = "the log's head is missing"
            return AuditVerification(ok=False, events=0, keyed=self.chain.keyed, broken_at=1, problem=problem)
        return self.chain.verify(follow(snapshot.entries(EventQuery())), head.seq, head.digest, head.seal, kept)

    def find_damage(self) -> list[str]:
        """Return what is wrong with the file that holds the records; empty for nothing, or for a store of your own."""
        find: Callable[[], list[str]] | None = getattr(self.backend, "find_damage", None)
        return [] if find is None else find()

    def counts(self) -> MemoryStats:
        with self.backend.reading() as snapshot:
            head = snapshot.head()
            return MemoryStats(
                records=snapshot.count(RecordQuery(user=None)),
                archived=snapshot.count(RecordQuery(user=None, archived=True)),
                users=sum(user != SHARED for user in snapshot.users()),
                events=head.seq if head else 0,
                bytes=self.backend.size(),
            )


def _write_notes(transaction: Transaction, notes: Iterable[RecallNote]) -> None:
    for note in notes:
        transaction.touch(note.user, note.record_ids, note.at)
