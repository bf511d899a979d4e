"""Memories in one file of SQLite's: a write-ahead log, a row a record, the audit log beside them."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from meve.errors import AuditError, IndexMismatchError, StorageError, StoreCorruptError, wrap_errors
from meve.memory._audit.chain import (
    INITIAL_DIGEST,
    AuditChain,
    AuditEvent,
    AuditHead,
    AuditRow,
    AuditVerification,
    to_audit_event,
)
from meve.memory.records import SHARED, Message, Opinion, StoredRecord
from meve.memory.stores.protocol import Changes, Counts, Stretch
from meve.memory.stores.sqlite._connections import Connections, mapped
from meve.memory.stores.sqlite._messages import count_in, messages_in, sessions_in
from meve.memory.stores.sqlite._rows import from_row, micros, moment, opinion_of
from meve.memory.stores.sqlite._schema import check_ours, migrate
from meve.memory.stores.sqlite._transaction import (
    ALL,
    OPINION,
    SqliteTransaction,
    all_archived_in,
    archived_in,
    found_in,
)

_WITH_RECORDS = "(EXISTS (SELECT 1 FROM memories WHERE user = no) OR EXISTS (SELECT 1 FROM archive WHERE user = no))"


class SqliteStore:
    """See `meve.memory.stores.protocol.MemoryStore`."""

    def __init__(self, connections: Connections, chain: AuditChain) -> None:
        self._connections = connections
        self._chain = chain
        self.chain = chain

    @classmethod
    def open(cls, file: str | Path, chain: AuditChain | None = None) -> Self:
        """The store in a file, which is made if it isn't there.

        Args:
            file: where; its folder must be there.
            chain: what the log hangs on; without one, a chain without a key.

        Raises:
            StorageError: the file can't be opened, is damaged, or of a newer version.
            AuditError: the log hangs on another key.
        """
        place, chain = Path(file), chain or AuditChain()
        try:
            if not place.parent.is_dir():
                raise StorageError(f"{place.parent} is no folder: make it, or give another place for the memory")
            if place.is_dir():
                raise StorageError(f"{place} is a folder: give a file's name for the memory")
        except OSError as cause:
            raise StorageError(f"{place} can't be opened: {cause}; look at its permissions and its folder's") from cause
        connections = Connections(place)
        try:
            with connections.first(settings=()) as connection:
                check_ours(connection, str(place))
            with connections.first() as connection:
                migrate(connection, str(place))
        except sqlite3.DatabaseError as cause:
            raise mapped(cause, place, "opened") from cause
        except UnicodeDecodeError as cause:  # SQLite's message holds what is left of the tables' names
            raise StoreCorruptError(f"{place} is damaged: restore it from a copy") from cause
        made = cls(connections, chain)
        try:
            made._claim()
        except BaseException:
            connections.close()
            raise
        return made

    def _claim(self) -> None:
        """The log's first head, or a look whether it hangs on our key."""
        with self._connections.reading() as connection:
            found = connection.execute("SELECT value FROM meta WHERE name = 'audit_key'").fetchone()
        if found is None:
            with self._connections.writing() as connection:
                found = connection.execute("SELECT value FROM meta WHERE name = 'audit_key'").fetchone()
                if found is None:
                    mine = self._chain.fingerprint
                    connection.execute("INSERT INTO meta VALUES ('audit_key', ?)", (mine,))
                    connection.execute(
                        "INSERT INTO audit_head VALUES (1, 0, ?, ?)", (INITIAL_DIGEST, self._chain.seal(0, INITIAL_DIGEST))
                    )
                    found = (mine,)
        if found[0] != self._chain.fingerprint:
            had, have = ("a key" if name else "no key" for name in (found[0], self._chain.fingerprint))
            other = "another key" if had == have else f"{had}, and you gave {have}"
            raise AuditError(
                f"the audit log of {self._connections.file} hangs on {other}: give the one it was made with"
            )

    def claim_embedder(self, name: str, dimension: int) -> None:
        """Note by which model vectors are made, if it isn't noted yet.

        Raises:
            IndexMismatchError: the store's vectors are another model's.
        """
        mine = f"{name} {dimension}"
        with self._connections.reading() as connection:
            found = connection.execute("SELECT value FROM meta WHERE name = 'embedder'").fetchone()
        if found is None:
            with self._connections.writing() as connection:
                connection.execute("INSERT INTO meta VALUES ('embedder', ?) ON CONFLICT DO NOTHING", (mine,))
                found = connection.execute("SELECT value FROM meta WHERE name = 'embedder'").fetchone()
        if found[0] != mine:
            raise IndexMismatchError(
                f"{self._connections.file} holds vectors of {found[0]!r} (name, dimension), and the embedder is "
                f"{mine!r}: open it with the one that it was made with"
            )

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[SqliteTransaction]:
        """A transaction: kept when the block ends, undone when it raises."""
        with self._connections.writing(durable=durable) as connection:
            transaction = SqliteTransaction(connection, self._chain)
            yield transaction
            transaction.finish()

    def version(self, user: str) -> int:
        """Rises with every change of the user's records; 0 for one who has none."""
        with self._connections.reading() as connection:
            found = connection.execute("SELECT version FROM users WHERE key = ?", (user,)).fetchone()
        return int(found[0]) if found else 0

    def changes(self, user: str, since: int) -> Changes:
        """What became of a user's records since a version."""
        with self._connections.reading() as connection:
            found = connection.execute("SELECT no, version, complete_from FROM users WHERE key = ?", (user,)).fetchone()
            if found is None:
                return Changes(version=0, whole=since > 0, records=(), gone=())
            no, version, complete_from = found
            whole = since < complete_from or since > version or since == 0
            begin = 0 if whole else since
            rows = connection.execute(
                f"SELECT row, {ALL} FROM memories WHERE user = ? AND changed > ? ORDER BY row", (no, begin)
            ).fetchall()
            gone = [] if whole else connection.execute(
                "SELECT row FROM gone WHERE user = ? AND changed > ?", (no, begin)
            ).fetchall()  # fmt: skip
        return Changes(
            version=version,
            whole=whole,
            records=[(row[0], from_row(user, row[1:])) for row in rows],
            gone=[row[0] for row in gone],
        )

    def find(self, user: str, record_id: str) -> StoredRecord | None:
        """One record, archived or not."""
        with self._connections.reading() as connection:
            return found_in(connection, user, record_id) or archived_in(connection, user, record_id)

    def touched(self, user: str, record_ids: Sequence[str]) -> dict[str, datetime]:
        """When those of a user's records that were recalled were last, by id."""
        with self._connections.reading() as connection:
            rows = connection.execute(
                "SELECT id, touched FROM memories WHERE user = (SELECT no FROM users WHERE key = ?) "
                "AND id IN (SELECT value FROM json_each(?)) AND touched IS NOT NULL",
                (user, json.dumps(list(record_ids))),
            ).fetchall()
        return {record_id: moment(at) for record_id, at in rows}

    def messages(self, user: str, stretch: Stretch, now: datetime) -> list[Message]:
        """Messages that aren't expired, in the order in which they were added."""
        with self._connections.reading() as connection:
            return messages_in(connection, user, stretch, now)

    def count_messages(self, user: str, stretch: Stretch, now: datetime) -> int:
        """How many messages that aren't expired a session holds there, whatever the limit and the offset."""
        with self._connections.reading() as connection:
            return count_in(connection, user, stretch, now)

    def sessions(self, user: str, now: datetime) -> list[str]:
        """A user's sessions that hold a message that isn't expired, sorted."""
        with self._connections.reading() as connection:
            return sessions_in(connection, user, now)

    def opinions(self, user: str) -> dict[str, Opinion]:
        """What a user's answers made of shared records, by id."""
        with self._connections.reading() as connection:
            rows = connection.execute(
                f"SELECT id, {OPINION} FROM opinions WHERE user = (SELECT no FROM users WHERE key = ?)", (user,)
            ).fetchall()
        return {row[0]: opinion_of(row[1:]) for row in rows}

    def archived(self, user: str) -> list[StoredRecord]:
        """A user's archived records, by id."""
        with self._connections.reading() as connection:
            return all_archived_in(connection, user)

    def users(self) -> list[str]:
        """The keys of all users that have a record."""
        with self._connections.reading() as connection:
            rows = connection.execute(f"SELECT key FROM users WHERE {_WITH_RECORDS} ORDER BY key").fetchall()
        return [key for (key,) in rows]

    def expired(self, now: datetime, most: int) -> list[tuple[str, str]]:
        """At most so many records whose time is over and that no hold keeps, as (user's key, id)."""
        with self._connections.reading() as connection:
            rows = connection.execute(
                "SELECT key, id FROM memories JOIN users ON no = user WHERE expires <= ?1 AND hold = '' UNION ALL "
                "SELECT key, id FROM archive JOIN users ON no = user WHERE expires <= ?1 AND NOT hold LIMIT ?2",
                (micros(now), most),
            ).fetchall()
        return [(key, record_id) for key, record_id in rows]

    def events(
        self,
        *,
        user: str | None = None,
        record: str | None = None,
        actions: Sequence[str] = (),
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Iterator[AuditEvent]:
        """The log's entries that match, oldest first."""
        asked: list[tuple[str, Any]] = [
            ("user = ?", user),
            ("record = ?", record),
            ("at >= ?", None if since is None else micros(since)),
            ("at < ?", None if until is None else micros(until)),
        ]
        wanted = [(clause, value) for clause, value in asked if value is not None]
        clauses = [clause for clause, _ in wanted]
        values = [value for _, value in wanted]
        if actions:
            clauses.append(f"action IN ({', '.join('?' * len(actions))})")
            values += list(actions)
        where = f"WHERE {' AND '.join(clauses)}" if clauses else ""
        with self._connections.reading() as connection:
            for row in connection.execute(f"SELECT * FROM audit {where} ORDER BY seq", values):
                entry = AuditRow(*row)
                with wrap_errors(AuditError, f"reading entry {entry.seq} of the audit log, which verify() judges"):
                    event = to_audit_event(entry, moment(entry.at))
                yield event

    def head(self) -> AuditHead:
        """The newest entry."""
        with self._connections.reading() as connection:
            seq, digest = connection.execute("SELECT seq, digest FROM audit_head").fetchone()
        return AuditHead(seq=seq, digest=digest.hex())

    def verify(self, kept: AuditHead | None = None) -> AuditVerification:
        """Hold the log against itself, and against a head that was kept elsewhere."""
        with self._connections.reading() as connection:
            found = connection.execute("SELECT seq, digest, seal FROM audit_head").fetchone()
            if found is None:
                return AuditVerification(
                    ok=False, events=0, keyed=self._chain.keyed, broken_at=1, problem="the log's head is missing"
                )
            rows = connection.execute("SELECT * FROM audit ORDER BY seq")
            seq, digest, seal = found
            connection.text_factory = _as_it_stands
            try:
                return self._chain.verify((AuditRow(*row) for row in rows), seq, digest, seal, kept)
            finally:
                connection.text_factory = str

    def scrub(self) -> bool:
        """Empty the write-ahead log, so that no file holds what was erased; False if others are reading."""
        return self._connections.checkpointed()

    def counts(self) -> Counts:
        """How much there is."""
        asked = ("memories", "archive", f"users WHERE key <> '{SHARED}' AND {_WITH_RECORDS}", "audit")
        with self._connections.reading() as connection:
            found = [connection.execute(f"SELECT count(*) FROM {each}").fetchone()[0] for each in asked]
        file = self._connections.file
        files = [file, *(file.with_name(f"{file.name}-{end}") for end in ("wal", "shm"))]
        size = sum(each.stat().st_size for each in files if each.is_file())
        return Counts(records=found[0], archived=found[1], users=found[2], events=found[3], bytes=size)

    def close(self) -> None:
        """Let go of the file."""
        self._connections.close()


def _as_it_stands(text: bytes) -> str:
    """Also of bytes that are no text: they show as altered."""
    return text.decode("utf-8", "surrogateescape")
