"""The reads and writes of a memory's file, over one connection that is in a transaction."""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from meve.memory._audit.chain import AuditRow
from meve.memory._timestamps import micros_or_none, to_micros
from meve.memory.records import SHARED, SharedScore, StoredRecord
from meve.memory.stores.protocol import EventQuery, Field, RecordQuery, SealedHead
from meve.memory.stores.sqlite._connections import check_process
from meve.memory.stores.sqlite._record_query import count_records, read_fields, read_records
from meve.memory.stores.sqlite._rows import COLUMNS, pack, shared_score_of, shared_score_row, to_row

MAX_REMOVED_ROWS = 10_000
"""The maximum number of removed rows that are known for a user; beyond it, the older half is forgotten."""

_USER = "user = (SELECT no FROM users WHERE key = ?)"
_PUT = (
    f"INSERT INTO memories (user, changed, {', '.join(COLUMNS)}) VALUES (?, ?{', ?' * len(COLUMNS)}) "
    f"ON CONFLICT (user, id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in ('changed', *COLUMNS))}"
)


class SqliteSnapshot:
    """See `meve.memory.stores.protocol.Snapshot`.

    Args:
        connection: in a transaction.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._lent = connection
        self._process = os.getpid()

    @property
    def _connection(self) -> sqlite3.Connection:
        check_process(self._process)
        return self._lent

    def records(self, query: RecordQuery) -> list[StoredRecord]:
        return read_records(self._connection, query)

    def count(self, query: RecordQuery) -> int:
        return count_records(self._connection, query)

    def version(self, user: str) -> int:
        row = self._connection.execute("SELECT version FROM users WHERE key = ?", (user,)).fetchone()
        return int(row[0]) if row else 0

    def removed_rows(self, user: str, since: int) -> list[int] | None:
        row = self._connection.execute("SELECT no, complete_from FROM users WHERE key = ?", (user,)).fetchone()
        if row is None or since < row[1]:
            return None
        rows = self._connection.execute("SELECT row FROM gone WHERE user = ? AND changed > ?", (row[0], since))
        return [number for (number,) in rows.fetchall()]

    def select(self, query: RecordQuery, *fields: Field) -> list[tuple[Any, ...]]:
        return read_fields(self._connection, query, fields)

    def users(self) -> list[str]:
        rows = self._connection.execute(
            "SELECT key FROM users WHERE EXISTS (SELECT 1 FROM memories WHERE user = no) "
            "OR EXISTS (SELECT 1 FROM archive WHERE user = no) ORDER BY key"
        )
        return [key for (key,) in rows.fetchall()]

    def shared_scores(self, user: str) -> dict[str, SharedScore]:
        rows = self._connection.execute(
            f"SELECT id, reflection, touched, used, uses FROM opinions WHERE {_USER}", (user,)
        ).fetchall()
        return {row[0]: shared_score_of(row[1:]) for row in rows}

    def entries(self, query: EventQuery) -> Iterator[AuditRow]:
        conditions: list[tuple[str, Any]] = [
            ("user = ?", query.user),
            ("record = ?", query.record),
            ("at >= ?", query.since),
            ("at < ?", query.until),
            ("action IN (SELECT value FROM json_each(?))", json.dumps(list(query.actions)) if query.actions else None),
        ]
        given = [(clause, value) for clause, value in conditions if value is not None]
        where = f"WHERE {' AND '.join(clause for clause, _ in given)}" if given else ""
        self._connection.text_factory = _decode
        try:
            for row in self._connection.execute(f"SELECT * FROM audit {where} ORDER BY seq", [v for _, v in given]):
                yield AuditRow(*row)
        finally:
            self._connection.text_factory = str

    def head(self) -> SealedHead | None:
        row = self._connection.execute("SELECT seq, digest, seal FROM audit_head").fetchone()
        return None if row is None else SealedHead(seq=row[0], digest=row[1], seal=row[2])

    def setting(self, name: str) -> str | None:
        row = self._connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])


class SqliteTransaction(SqliteSnapshot):
    """Writes records to SQLite; see `meve.memory.stores.protocol.Transaction`.

    Args:
        connection: one with an open write transaction.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self._versions: dict[str, tuple[int, int]] = {}

    def put(self, user: str, stored: StoredRecord) -> None:
        no, version = self._next_version(user)
        record = stored.record
        if record.archived:
            self._note_removal(user, record.id)
        if record.archived and record.kind != "message":
            self._delete(no, record.id)
            expires, origins = micros_or_none(record.expires_at), json.dumps(record.derived_from)
            values = (no, record.id, expires, bool(record.hold), pack(stored), origins, record.superseded_by)
            self._connection.execute("INSERT INTO archive VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        else:
            self._connection.execute("DELETE FROM archive WHERE user = ? AND id = ?", (no, record.id))
            self._connection.execute(_PUT, (no, version, *to_row(stored)))

    def remove(self, user: str, record_id: str) -> bool:
        self._note_removal(user, record_id)
        if user == SHARED:
            self._connection.execute("DELETE FROM opinions WHERE id = ?", (record_id,))
        return self._delete(self._next_version(user)[0], record_id)

    def touch(self, user: str, record_ids: Sequence[str], at: datetime) -> None:
        self._connection.executemany(
            f"UPDATE memories SET touched = ? WHERE {_USER} AND id = ?",
            [(to_micros(at), user, record_id) for record_id in record_ids],
        )

    def put_shared_score(self, user: str, record_id: str, score: SharedScore | None) -> None:
        no, _ = self._next_version(user)
        if score is None:
            self._connection.execute("DELETE FROM opinions WHERE user = ? AND id = ?", (no, record_id))
        else:
            values = (no, record_id, *shared_score_row(score))
            self._connection.execute("INSERT OR REPLACE INTO opinions VALUES (?, ?, ?, ?, ?, ?)", values)

    def append(self, entries: Iterable[AuditRow], head: SealedHead) -> None:
        self._connection.executemany("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?)", entries)
        self._connection.execute(
            "INSERT OR REPLACE INTO audit_head VALUES (1, ?, ?, ?)", (head.seq, head.digest, head.seal)
        )

    def put_setting(self, name: str, value: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def finish(self) -> None:
        for no, version in self._versions.values():
            self._connection.execute("UPDATE users SET version = ? WHERE no = ?", (version, no))
            self._trim_removed_rows(no)

    def _delete(self, no: int, record_id: str) -> bool:
        cursors = [
            self._connection.execute(f"DELETE FROM {table} WHERE user = ? AND id = ?", (no, record_id))
            for table in ("memories", "archive")
        ]
        return any(cursor.rowcount for cursor in cursors)

    def _note_removal(self, user: str, record_id: str) -> None:
        """Note that a row leaves the active records; an archived message left them before."""
        no, version = self._next_version(user)
        self._connection.execute(
            "INSERT OR IGNORE INTO gone SELECT user, ?, row FROM memories WHERE user = ? AND id = ?",
            (version, no, record_id),
        )

    def _next_version(self, user: str) -> tuple[int, int]:
        """Return the user's number, and the user's version after this transaction."""
        if user not in self._versions:
            self._connection.execute("INSERT INTO users (key) VALUES (?) ON CONFLICT DO NOTHING", (user,))
            no, version = self._connection.execute("SELECT no, version FROM users WHERE key = ?", (user,)).fetchone()
            self._versions[user] = (no, version + 1)
        return self._versions[user]

    def _trim_removed_rows(self, no: int) -> None:
        """Forget the older half of too many removed rows; readers of an older version read all records again."""
        count = self._connection.execute("SELECT count(*) FROM gone WHERE user = ?", (no,)).fetchone()[0]
        if count > MAX_REMOVED_ROWS:
            at = self._connection.execute(
                "SELECT changed FROM gone WHERE user = ? ORDER BY changed LIMIT 1 OFFSET ?",
                (no, count - MAX_REMOVED_ROWS // 2),
            ).fetchone()[0]
            self._connection.execute("DELETE FROM gone WHERE user = ? AND changed <= ?", (no, at))
            self._connection.execute("UPDATE users SET complete_from = ? WHERE no = ?", (at, no))


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
