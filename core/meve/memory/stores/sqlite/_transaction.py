"""One transaction on a memory's file, and what it shares with those who only read."""

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime

from meve.errors import DuplicateIdError, StorageError
from meve.memory._audit.chain import AuditChain, EventDraft
from meve.memory.records import SHARED, Opinion, StoredRecord
from meve.memory.stores.protocol import Stretch
from meve.memory.stores.sqlite._messages import records_in
from meve.memory.stores.sqlite._rows import COLUMNS, from_row, micros, opinion_of, opinion_row, packed, to_row, unpacked

REMEMBERED = 10_000
"""How many rows that are gone a user's readers are told of one by one; beyond, they read all anew."""

OPINION = "reflection, touched, used, uses"
ALL = ", ".join(COLUMNS)
_INSERT = f"INSERT INTO memories (user, changed, {ALL}) VALUES (?, ?{', ?' * len(COLUMNS)})"
_REPLACE = f"UPDATE memories SET changed = ?, {', '.join(f'{name} = ?' for name in COLUMNS)} WHERE user = ? AND id = ?"


class SqliteTransaction:
    """See `meve.memory.stores.protocol.Transaction`."""

    def __init__(self, connection: sqlite3.Connection, chain: AuditChain) -> None:
        self._connection = connection
        self._chain = chain
        self._versions: dict[str, tuple[int, int]] = {}
        self._events: list[EventDraft] = []

    def find(self, user: str, record_id: str) -> StoredRecord | None:
        """One record that isn't archived."""
        return found_in(self._connection, user, record_id)

    def records(self, user: str) -> list[StoredRecord]:
        """All of a user that aren't archived, by id."""
        rows = self._connection.execute(
            f"SELECT {ALL} FROM memories WHERE user = (SELECT no FROM users WHERE key = ?) ORDER BY id", (user,)
        ).fetchall()
        return [from_row(user, row) for row in rows]

    def insert(self, user: str, stored: StoredRecord) -> None:
        """A new record.

        Raises:
            DuplicateIdError: the user has one of that id, archived or not.
        """
        taken = self.archived(user, stored.record.id)
        if taken is None:
            no, version = self._changing(user)
            try:
                self._connection.execute(_INSERT, (no, version, *to_row(stored)))
            except sqlite3.IntegrityError as cause:
                raise _taken(stored.record.id) from cause
            return
        raise _taken(stored.record.id)

    def replace(self, user: str, stored: StoredRecord) -> None:
        """The record of that id becomes this one."""
        no, version = self._changing(user)
        done = self._connection.execute(_REPLACE, (version, *to_row(stored), no, stored.record.id))
        if done.rowcount != 1:
            raise StorageError(f"no record {stored.record.id!r} to replace")

    def erase(self, user: str, record_id: str) -> bool:
        """Nothing is left of the record, archived or not; whether there was one."""
        no, version = self._changing(user)
        gone = self._connection.execute("DELETE FROM memories WHERE user = ? AND id = ? RETURNING row", (no, record_id))
        rows = gone.fetchall()
        self._connection.executemany("INSERT INTO gone VALUES (?, ?, ?)", [(no, version, row) for (row,) in rows])
        if user == SHARED:
            self._connection.execute("DELETE FROM opinions WHERE id = ?", (record_id,))
        kept = self._connection.execute("DELETE FROM archive WHERE user = ? AND id = ?", (no, record_id)).rowcount
        return bool(rows or kept)

    def archive(self, user: str, stored: StoredRecord) -> None:
        """The record is compressed, and out of every index."""
        record = stored.record
        self.erase(user, record.id)
        no, _ = self._changing(user)
        expires = None if record.expires_at is None else micros(record.expires_at)
        self._connection.execute(
            "INSERT INTO archive VALUES (?, ?, ?, ?, ?, ?)",
            (no, record.id, expires, bool(record.hold), packed(stored), json.dumps(record.derived_from)),
        )

    def archived(self, user: str, record_id: str) -> StoredRecord | None:
        """One archived record."""
        return archived_in(self._connection, user, record_id)

    def all_archived(self, user: str) -> list[StoredRecord]:
        """All archived records of a user, by id."""
        return all_archived_in(self._connection, user)

    def holding(self, user: str, *record_ids: str) -> list[StoredRecord]:
        """The records of these ids, and those that were merged or summarised from one; archived or not."""
        mine, asked = "user = (SELECT no FROM users WHERE key = ?1)", "(SELECT value FROM json_each(?2))"
        made_of_it = f"EXISTS (SELECT 1 FROM json_each(derived) WHERE value IN {asked})"
        given = (user, json.dumps(record_ids))
        rows = self._connection.execute(
            f"SELECT {ALL} FROM memories WHERE {mine} AND id IN {asked} UNION SELECT {ALL} FROM memories "
            f"WHERE {mine} AND derived <> '[]' AND {made_of_it}",
            given,
        ).fetchall()
        bodies = self._connection.execute(
            f"SELECT body FROM archive WHERE {mine} AND id IN {asked} UNION SELECT body FROM archive WHERE {mine} "
            f"AND (derived IS NULL OR derived <> '[]') AND (derived IS NULL OR {made_of_it})",
            given,
        ).fetchall()
        archived = [unpacked(user, body) for (body,) in bodies]
        wanted = set(record_ids)
        kept = [s for s in archived if not wanted.isdisjoint((s.record.id, *s.record.derived_from))]
        return [*(from_row(user, row) for row in rows), *kept]

    def messages(self, user: str, stretch: Stretch, now: datetime) -> list[tuple[int, StoredRecord]]:
        """Messages that aren't expired, with their places, in the order in which they were added."""
        return records_in(self._connection, user, stretch, now)

    def forget_opinions(self, user: str) -> None:
        """Nothing is left of what a user's answers made of shared records."""
        self._connection.execute("DELETE FROM opinions WHERE user = (SELECT no FROM users WHERE key = ?)", (user,))

    def touch(self, user: str, record_ids: Sequence[str], at: datetime) -> None:
        """These were recalled then. No change that readers must hear of."""
        self._connection.executemany(
            "UPDATE memories SET touched = ? WHERE user = (SELECT no FROM users WHERE key = ?) AND id = ?",
            [(micros(at), user, record_id) for record_id in record_ids],
        )

    def opinion(self, user: str, record_id: str) -> Opinion | None:
        """What a user's answers made of a shared record."""
        row = self._connection.execute(
            f"SELECT {OPINION} FROM opinions WHERE user = (SELECT no FROM users WHERE key = ?) AND id = ?",
            (user, record_id),
        ).fetchone()
        return None if row is None else opinion_of(row)

    def rate(self, user: str, record_id: str, opinion: Opinion) -> None:
        """A user's opinion of a shared record becomes this one."""
        no, _ = self._changing(user)
        self._connection.execute(
            "INSERT OR REPLACE INTO opinions VALUES (?, ?, ?, ?, ?, ?)", (no, record_id, *opinion_row(opinion))
        )

    def log(self, *events: EventDraft) -> None:
        """Entries for the log, in this order."""
        self._events += events

    def finish(self) -> None:
        """Write what the transaction gathered: the users' versions, and the log."""
        for no, version in self._versions.values():
            self._connection.execute("UPDATE users SET version = ? WHERE no = ?", (version, no))
            self._trim(no)
        if not self._events:
            return
        seq, digest = self._connection.execute("SELECT seq, digest FROM audit_head").fetchone()
        rows = []
        for event in self._events:
            seq += 1
            detail = json.dumps(dict(event.detail), sort_keys=True, separators=(",", ":"), allow_nan=False)
            fields = (seq, micros(event.at), event.user, event.record, event.action, event.reason, detail)
            digest = self._chain.digest(digest, fields)
            rows.append((*fields, digest))
        self._connection.executemany("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        self._connection.execute(
            "UPDATE audit_head SET seq = ?, digest = ?, seal = ?", (seq, digest, self._chain.seal(seq, digest))
        )

    def _changing(self, user: str) -> tuple[int, int]:
        """The user's number, and the version that this transaction makes; the same however often it is asked."""
        if user not in self._versions:
            self._connection.execute("INSERT INTO users (key) VALUES (?) ON CONFLICT DO NOTHING", (user,))
            no, version = self._connection.execute("SELECT no, version FROM users WHERE key = ?", (user,)).fetchone()
            self._versions[user] = (no, version + 1)
        return self._versions[user]

    def _trim(self, no: int) -> None:
        """Forget which rows went long ago: who last looked before that reads all anew."""
        count = self._connection.execute("SELECT count(*) FROM gone WHERE user = ?", (no,)).fetchone()[0]
        if count > REMEMBERED:
            at = self._connection.execute(
                "SELECT changed FROM gone WHERE user = ? ORDER BY changed LIMIT 1 OFFSET ?",
                (no, count - REMEMBERED // 2),
            ).fetchone()[0]
            self._connection.execute("DELETE FROM gone WHERE user = ? AND changed <= ?", (no, at))
            self._connection.execute("UPDATE users SET complete_from = ? WHERE no = ?", (at, no))


def found_in(connection: sqlite3.Connection, user: str, record_id: str) -> StoredRecord | None:
    """One record that isn't archived."""
    row = connection.execute(
        f"SELECT {ALL} FROM memories WHERE user = (SELECT no FROM users WHERE key = ?) AND id = ?", (user, record_id)
    ).fetchone()
    return None if row is None else from_row(user, row)


def archived_in(connection: sqlite3.Connection, user: str, record_id: str) -> StoredRecord | None:
    """One archived record."""
    row = connection.execute(
        "SELECT body FROM archive WHERE user = (SELECT no FROM users WHERE key = ?) AND id = ?", (user, record_id)
    ).fetchone()
    return None if row is None else unpacked(user, row[0])


def all_archived_in(connection: sqlite3.Connection, user: str) -> list[StoredRecord]:
    """All archived records of a user, by id."""
    rows = connection.execute(
        "SELECT body FROM archive WHERE user = (SELECT no FROM users WHERE key = ?) ORDER BY id", (user,)
    ).fetchall()
    return [unpacked(user, body) for (body,) in rows]


def _taken(record_id: str) -> DuplicateIdError:
    return DuplicateIdError(f"the id {record_id!r} is taken: give another, or update that record")
