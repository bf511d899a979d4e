"""Copies a memory from one store of sealed rows to another; each record gets a new key.

Users and the log are copied while others may write to the source. What changed meanwhile is copied again at the end,
while nobody can write to it. Both key files have one root secret, so that users and log have the same hashes in both.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from meve.errors import AuditError, StorageError, StoreCorruptError
from meve.memory._audit.chain import AuditChain, AuditRow, AuditVerification
from meve.memory.records import SharedScore, StoredRecord
from meve.memory.stores._record_store import RecordStore
from meve.memory.stores._settings import PROGRESS
from meve.memory.stores._sql.database import Connection
from meve.memory.stores._sql.rows import to_values
from meve.memory.stores._sql.store import COPYING, KEY_FILE, SqlStore
from meve.memory.stores._sql.transaction import SqlSnapshot, SqlTransaction
from meve.memory.stores._sql.vault import KEY_SETTINGS
from meve.memory.stores.protocol import RecordQuery, SealedHead

_COPIED = "copied "
"""The beginning of the settings that tell in which state each user was copied."""
_OWN = {KEY_FILE, COPYING, "plain_pages", *KEY_SETTINGS}
"""Settings that each store has for itself."""
_ENTRIES = 5_000
"""The number of log entries that are copied in one transaction."""
_TABLES = {
    "users": "slot IS NOT NULL", "memories": "", "archive": "", "opinions": "", "log_names": "", "audit": "",
}  # fmt: skip
"""The tables whose rows are counted in the end, and which rows count."""
Progress: TypeAlias = Callable[[str, int, int], None]
_Opening: TypeAlias = Callable[[], AbstractContextManager[SqlSnapshot]]


@dataclass(frozen=True, slots=True)
class _UserState:
    """All that is stored of a user, and a mark that changes with it."""

    user: str
    mark: str
    records: list[StoredRecord]
    scores: dict[str, SharedScore]
    names: list[str]


class StoreCopier:
    """Copies one memory.

    Args:
        source: the memory.
        target: an empty store that was opened as a copy of it, or in which an earlier call was stopped.
        chain: of the memory's log.
        progress: is called after each step with what is copied, how much of it is done, and how much there is.
    """

    def __init__(
        self,
        source: SqlStore,
        target: SqlStore,
        chain: AuditChain,
        progress: Progress | None = None,
    ) -> None:
        self._source, self._target, self._chain, self._progress = source, target, chain, progress

    def copy(self) -> AuditVerification:
        """Copy all, verify the copy, and let it be opened. Return the verification.

        Raises:
            AuditError: the log of the source, or that of the copy, doesn't verify; the copy stays unfinished.
            StoreCorruptError: a record of the source can't be read; the copy stays unfinished.
            StorageError: a store can't be used; the next call goes on.
        """
        verified = RecordStore(self._source, self._chain).verify()
        _check(verified, f"{self._source.name} isn't copied, since it doesn't verify (see meve memory verify)")
        self._copy_changed(self._source.reading)
        with self._source.writing(durable=False) as locked:  # nobody writes to it from now on
            self._copy_changed(lambda: _lent(locked))
            self._copy_settings(locked)
            self._compare(locked)
            self._target.note_time(self._source.latest_time())
        result = RecordStore(self._target, self._chain).verify()
        _check(result, f"the copy {self._target.name} doesn't verify: delete it and its keys, and copy again")
        with self._writing() as transaction:
            connection = transaction.vault.connection
            begins = f"substr(name, 1, {len(_COPIED)}) = ?"
            connection.execute(f"DELETE FROM meta WHERE tenant = :tenant AND {begins}", (_COPIED,))
            connection.execute("DELETE FROM meta WHERE tenant = :tenant AND name = ?", (COPYING,))
        return result

    @contextmanager
    def _writing(self, *, durable: bool = True) -> Iterator[SqlTransaction]:
        with self._target.writing(durable=durable) as transaction:
            if transaction.setting(COPYING) != self._source.keys.file_id:
                raise StorageError(f"another process finished the copy {self._target.name} meanwhile")
            yield transaction

    def _copy_changed(self, opening: _Opening) -> None:
        """Copy the log, the users that are new or changed, and forget those that are gone."""
        self._copy_log(opening)
        with opening() as snapshot:
            marks = _read_marks(snapshot.vault.connection)
        with self._target.reading() as snapshot:
            owners = snapshot.vault.connection.execute(
                "SELECT key FROM users WHERE tenant = :tenant AND slot IS NOT NULL"
            ).fetchall()
            copied = {hashed: snapshot.setting(_COPIED + hashed) for (hashed,) in owners}
        for hashed in copied.keys() - marks.keys():
            self._forget(hashed)
        changed = [hashed for hashed, mark in marks.items() if copied.get(hashed) != mark]
        for number, hashed in enumerate(changed, start=1):
            self._copy_user(opening, hashed)
            self._report("users", number, len(changed))

    def _copy_user(self, opening: _Opening, hashed: str) -> None:
        with opening() as snapshot:
            state = _read_user(snapshot, hashed)
        if state is None:  # forgotten meanwhile
            return
        with self._target.reading() as target:
            owner = target.vault.owner(state.user)
            is_older = owner is not None and not set(target.vault.noted_names(owner)) <= set(state.names)
        if is_older:  # the user was forgotten, and begins anew
            self._forget(hashed)
        with self._writing(durable=False) as transaction:
            _write_user(transaction, state)
            transaction.put_setting(_COPIED + hashed, state.mark)

    def _forget(self, hashed: str) -> None:
        """Erase all of a user in the target, with the user's key."""
        with self._writing() as transaction:
            vault = transaction.vault
            ((no,),) = vault.connection.execute(
                "SELECT no FROM users WHERE tenant = :tenant AND key = ?", (hashed,)
            ).fetchall()
            owner = vault.owner_of(no)
            if owner is None:
                raise StoreCorruptError(f"the key of a user of {self._target.name} is damaged: delete it and its keys")
            for (record_id,) in transaction.select(RecordQuery(user=owner.user, archived=None), "id"):
                transaction.remove(owner.user, record_id)
            for record_id in transaction.shared_scores(owner.user):
                transaction.put_shared_score(owner.user, record_id, None)
            transaction.forget_user(owner.user)
            transaction.put_setting(_COPIED + hashed, "")

    def _copy_log(self, opening: _Opening) -> None:
        """Append the entries of the source that the target doesn't have yet, with the same digests."""
        while True:
            with self._writing() as transaction, opening() as snapshot:
                head, reached = snapshot.head(), transaction.head()
                at = 0 if reached is None else reached.seq
                entries = _entries_after(snapshot.vault.connection, at)
                if reached is not None and at and _digest_at(snapshot.vault.connection, at) != reached.digest:
                    raise StorageError(f"the log of {self._source.name} isn't the one that was copied: delete the copy")
                if entries:
                    last = entries[-1]
                    transaction.append(entries, SealedHead(seq=last.seq, digest=last.digest, seal=b""))
                elif head is not None and head != reached:
                    transaction.append((), head)
            if head is not None:
                self._report("log entries", at + len(entries), head.seq)
            if len(entries) < _ENTRIES:
                return

    def _copy_settings(self, source: SqlSnapshot) -> None:
        rows = source.vault.connection.execute("SELECT name, value FROM meta WHERE tenant = :tenant").fetchall()
        with self._writing() as transaction:
            for name, value in rows:
                if name not in _OWN and not name.startswith(PROGRESS):
                    transaction.put_setting(name, value)
            head = source.head()
            if head is not None:
                transaction.append((), head)

    def _compare(self, source: SqlSnapshot) -> None:
        """Check that both stores have as many rows, and one head of the log."""
        with self._target.reading() as target:
            for table, condition in _TABLES.items():
                here, there = (_count(each.vault.connection, table, condition) for each in (source, target))
                if here != there:
                    raise StorageError(f"the copy {self._target.name} has {there} rows in {table} instead of {here}")
            if source.head() != target.head():
                raise AuditError(f"the log of {self._target.name} doesn't end as that of {self._source.name}")

    def _report(self, stage: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(stage, done, total)


@contextmanager
def _lent(snapshot: SqlSnapshot) -> Iterator[SqlSnapshot]:
    yield snapshot


def _read_marks(connection: Connection, hashed: str | None = None) -> dict[str, str]:
    """Return by the hash of each user that has a key what changes with the user's records, scores and recalls."""
    touched = "SELECT max(touched) FROM memories WHERE tenant = :tenant AND user = no"
    one, values = ("", ()) if hashed is None else (" AND key = ?", (hashed,))
    rows = connection.execute(
        f"SELECT key, version, ({touched}) FROM users WHERE tenant = :tenant AND slot IS NOT NULL{one} ORDER BY no",
        values,
    ).fetchall()
    return {each: f"{version} {at}" for each, version, at in rows}


def _read_user(snapshot: SqlSnapshot, hashed: str) -> _UserState | None:
    """Return all that is stored of a user; None for one who was forgotten.

    Raises:
        StoreCorruptError: something of it can't be read.
    """
    vault = snapshot.vault
    mark = _read_marks(vault.connection, hashed).get(hashed)
    if mark is None:
        return None
    (no,) = vault.connection.execute("SELECT no FROM users WHERE tenant = :tenant AND key = ?", (hashed,)).fetchone()
    owner = vault.owner_of(no)
    if owner is None:
        raise StoreCorruptError("the key of a user is damaged: restore the memory from a copy, or forget the user")
    query = RecordQuery(user=owner.user, archived=None)
    records = snapshot.records(query)
    if len(records) != snapshot.count(query):
        raise StoreCorruptError("keys of records are missing: restore the memory from a copy, or forget the user")
    return _UserState(owner.user, mark, records, snapshot.shared_scores(owner.user), vault.noted_names(owner))


def _write_user(target: SqlTransaction, state: _UserState) -> None:
    """Make a user's records, scores and names in the target those of the source, in the same order."""
    user, vault = state.user, target.vault
    owner, _ = vault.make_owner(user)
    wanted = {stored.record.id: stored for stored in state.records}
    found = {stored.record.id: stored for stored in target.records(RecordQuery(user=user, archived=None))}
    kept = [record_id for record_id in found if record_id in wanted]
    if kept != list(wanted)[: len(kept)]:
        kept = []
    same = set(kept)
    for record_id in found.keys() - same:
        target.remove(user, record_id)
    for record_id, stored in wanted.items():
        if record_id not in same or to_values(found[record_id]) != to_values(stored):
            target.put(user, stored)
    scores = target.shared_scores(user)
    for record_id in scores.keys() - state.scores.keys():
        target.put_shared_score(user, record_id, None)
    for record_id, score in state.scores.items():
        if scores.get(record_id) != score:
            target.put_shared_score(user, record_id, score)
    for name in state.names:
        vault.note_name(owner, name)


def _entries_after(connection: Connection, seq: int) -> list[AuditRow]:
    with connection.undecoded_text():
        rows = connection.execute(
            f"SELECT {', '.join(AuditRow._fields)} FROM audit WHERE tenant = :tenant AND seq > ? ORDER BY seq LIMIT ?",
            (seq, _ENTRIES),
        ).fetchall()
    return [AuditRow(*row) for row in rows]


def _digest_at(connection: Connection, seq: int) -> bytes | None:
    row = connection.execute("SELECT digest FROM audit WHERE tenant = :tenant AND seq = ?", (seq,)).fetchone()
    return None if row is None else bytes(row[0])


def _count(connection: Connection, table: str, condition: str) -> int:
    where = f" AND {condition}" if condition else ""
    return int(connection.execute(f"SELECT count(*) FROM {table} WHERE tenant = :tenant{where}").fetchone()[0])


def _check(result: AuditVerification, error: str) -> None:
    if not result.ok:
        raise AuditError(f"{error}: {result.problem}")
