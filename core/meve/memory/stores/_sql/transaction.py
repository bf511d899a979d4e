"""The reads and writes of a memory's file, over one connection that is in a transaction."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

from meve._fork_safety import check_process
from meve.memory._audit.chain import AuditRow
from meve.memory._timestamps import micros_or_none, to_micros
from meve.memory.records import SHARED, SharedScore, StoredRecord
from meve.memory.stores._sql.database import Connection, upsert
from meve.memory.stores._sql.record_query import count_records, read_content, read_fields, read_records
from meve.memory.stores._sql.rows import (
    COLUMNS,
    VALUES,
    content_of,
    hash_names,
    pack,
    readable,
    seal_row,
    shared_score_of,
    shared_score_row,
    to_values,
)
from meve.memory.stores._sql.vault import Owner, Vault, put_setting, read_setting
from meve.memory.stores.protocol import EventQuery, Field, RecordQuery, SealedHead

MAX_REMOVED_ROWS = 10_000
"""The maximum number of removed rows that are known for a user; beyond it, the older half is forgotten."""

_ID = COLUMNS.index("id")
_Read = TypeVar("_Read")
_PUT = upsert("memories", ("user", "changed", *COLUMNS), ("user", "id"))
_SCORE = ("reflection", "touched", "used", "uses", "outcomes")
_PUT_SCORE = upsert("opinions", ("user", "id", "name", *_SCORE), ("user", "id"))
_PUT_HEAD = upsert("audit_head", ("one", "seq", "digest", "seal"), ("one",))
_APPEND = f"INSERT INTO audit (tenant, {', '.join(AuditRow._fields)}) VALUES (:tenant{', ?' * len(AuditRow._fields)})"

FREE_READS = 3
"""The number of times that a reader begins again because a writer was faster, before it makes writers wait."""


class SqlSnapshot:
    """See `meve.memory.stores.protocol.Snapshot`.

    Args:
        vault: its connection is in a transaction.
    """

    _is_renewable = True
    """Whether it may go on with a newer state of the file."""

    def __init__(self, vault: Vault) -> None:
        self._lent = vault
        self._gone: set[bytes] = set()
        """Marks of keys that are gone although what they seal is stored, as in a file that was changed by hand."""
        self._process = os.getpid()

    @property
    def _vault(self) -> Vault:
        check_process(self._process)
        return self._lent

    @property
    def vault(self) -> Vault:
        """The keys and the connection, for what reads or writes a store as a whole."""
        return self._vault

    @property
    def _connection(self) -> Connection:
        return self._vault.connection

    def records(self, query: RecordQuery) -> list[StoredRecord]:
        return self._again(lambda: read_records(self._vault, query))

    def count(self, query: RecordQuery) -> int:
        return count_records(self._vault, query)

    def version(self, user: str) -> int:
        row = self._connection.execute(
            "SELECT version FROM users WHERE tenant = :tenant AND key = ?", (self._hash(user),)
        ).fetchone()
        return int(row[0]) if row else 0

    def removed_rows(self, user: str, since: int) -> list[int] | None:
        row = self._connection.execute(
            "SELECT no, complete_from FROM users WHERE tenant = :tenant AND key = ?", (self._hash(user),)
        ).fetchone()
        if row is None or since < row[1]:
            return None
        rows = self._connection.execute(
            "SELECT row FROM gone WHERE tenant = :tenant AND user = ? AND changed > ?", (row[0], since)
        )
        return [number for (number,) in rows.fetchall()]

    def select(self, query: RecordQuery, *fields: Field) -> list[tuple[Any, ...]]:
        return self._again(lambda: read_fields(self._vault, query, fields))

    def users(self) -> list[str]:
        rows = self._connection.execute(
            "SELECT no FROM users WHERE tenant = :tenant AND "
            "(EXISTS (SELECT 1 FROM memories WHERE tenant = :tenant AND user = no) "
            "OR EXISTS (SELECT 1 FROM archive WHERE tenant = :tenant AND user = no))"
        ).fetchall()
        owners = [self._vault.owner_of(no) for (no,) in rows]
        return sorted(owner.user for owner in owners if owner is not None)

    def names(self, user: str | None) -> Iterator[tuple[str, str]]:
        if user is None:
            numbers = self._connection.execute(
                "SELECT no FROM users WHERE tenant = :tenant AND slot IS NOT NULL"
            ).fetchall()
            owners = [self._vault.owner_of(no) for (no,) in numbers]
        else:
            owners = [self._vault.owner(user)]
        for owner in owners:
            if owner is not None:
                items = self.select(RecordQuery(user=owner.user, kind="item"), "id")
                yield from ((owner.user, name) for name in ("", *self._vault.noted_names(owner)))
                yield from ((owner.user, name) for (name,) in items)

    def shared_scores(self, user: str) -> dict[str, SharedScore]:
        owner = self._vault.owner(user)
        if owner is None:
            return {}
        rows = self._connection.execute(
            f"SELECT id, name, {', '.join(_SCORE)} FROM opinions WHERE tenant = :tenant AND user = ?", (owner.no,)
        ).fetchall()
        with readable():
            return {
                owner.key.unseal(name, owner.place("opinions", hashed)).decode(): shared_score_of(tuple(score))
                for hashed, name, *score in rows
            }

    def entries(self, query: EventQuery) -> Iterator[AuditRow]:
        conditions: list[tuple[str, Any]] = [
            ("user = ?", query.user),
            ("record = ?", query.record),
            ("at >= ?", query.since),
            ("at < ?", query.until),
            ("action IN (SELECT value FROM json_each(?))", json.dumps(list(query.actions)) if query.actions else None),
        ]
        given = [(clause, value) for clause, value in conditions if value is not None]
        where = " AND ".join(["tenant = :tenant", *(clause for clause, _ in given)])
        statement = f"SELECT {', '.join(AuditRow._fields)} FROM audit WHERE {where} ORDER BY seq"
        with self._connection.undecoded_text():
            for row in self._connection.execute(statement, [value for _, value in given]):
                yield AuditRow(*row)

    def head(self) -> SealedHead | None:
        row = self._connection.execute("SELECT seq, digest, seal FROM audit_head WHERE tenant = :tenant").fetchone()
        return None if row is None else SealedHead(seq=row[0], digest=row[1], seal=row[2])

    def setting(self, name: str) -> str | None:
        return read_setting(self._connection, name)

    def _hash(self, user: str) -> str:
        return self._vault.user_hash(user)

    def _again(self, read: Callable[[], _Read]) -> _Read:
        """Read again, in the newest state, while a key is gone: the record was erased or written anew meanwhile.

        A key is destroyed after what it seals is removed. So if a later state still holds it, it never comes back.
        """
        result, tries = read(), 0
        while self._is_renewable and not self._vault.gone <= self._gone:
            tries += 1
            self._gone |= self._vault.gone
            is_last = tries > FREE_READS
            self._renew(exclusive=is_last)
            result = read()
            if is_last:
                self._gone |= self._vault.gone
                self._renew(exclusive=False)  # let others write again
        return result

    def _renew(self, *, exclusive: bool) -> None:
        self._connection.renew(exclusive=exclusive)
        self._vault.forget()


class SqlTransaction(SqlSnapshot):
    """See `meve.memory.stores.protocol.Transaction`.

    Args:
        vault: its connection has an open write transaction.
    """

    _is_renewable = False

    def __init__(self, vault: Vault) -> None:
        super().__init__(vault)
        self._versions: dict[str, tuple[Owner, int]] = {}
        self._forgotten: set[str] = set()
        self._touched: dict[str, Owner | None] = {}

    def put(self, user: str, stored: StoredRecord) -> None:
        owner, version = self._next_version(user)
        vault, record, values = self._vault, stored.record, to_values(stored)
        slot = self._slot_for(owner, values)
        if record.kind != "item":  # the key of an item says what it is about
            vault.note_name(owner, record.id)
        key = vault.slots.key(slot)
        if record.archived:
            self._note_removal(owner, version, record.id)
        if record.archived and record.kind != "message":
            hashed, _, *names = hash_names(owner, dict(zip(VALUES, values, strict=True)))
            for table in ("memories", "archive"):
                self._connection.execute(
                    f"DELETE FROM {table} WHERE tenant = :tenant AND user = ? AND id = ?", (owner.no, hashed)
                )
            body = key.seal(pack(values), owner.place("archive", hashed, *names))
            packed = (owner.no, hashed, slot, micros_or_none(record.expires_at), body, *names)
            self._connection.execute(
                "INSERT INTO archive (tenant, user, id, slot, expires, body, superseded, derived, hold) "
                "VALUES (:tenant, ?, ?, ?, ?, ?, ?, ?, ?)",
                packed,
            )
        else:
            row = seal_row(owner, slot, key, values)
            self._connection.execute(
                "DELETE FROM archive WHERE tenant = :tenant AND user = ? AND id = ?", (owner.no, row[_ID])
            )
            self._connection.execute(_PUT, (owner.no, version, *row))

    def remove(self, user: str, record_id: str) -> bool:
        owner, version = self._next_version(user)
        self._note_removal(owner, version, record_id)
        if user == SHARED:
            self._connection.execute(
                "DELETE FROM opinions WHERE tenant = :tenant AND id = ?", (owner.id_hash(record_id),)
            )
        return self._vault.remove("user = ? AND id = ?", owner.no, owner.id_hash(record_id)) > 0

    def touch(self, user: str, record_ids: Sequence[str], at: datetime) -> None:
        if user not in self._touched:
            self._touched[user] = self._vault.owner(user)
        owner, moment = self._touched[user], to_micros(at)
        if owner is not None:
            self._connection.executemany(
                "UPDATE memories SET touched = ? WHERE tenant = :tenant AND user = ? AND id = ? "
                "AND (touched IS NULL OR touched < ?)",
                [(moment, owner.no, owner.id_hash(record_id), moment) for record_id in record_ids],
            )

    def put_shared_score(self, user: str, record_id: str, score: SharedScore | None) -> None:
        owner, _ = self._next_version(user)
        hashed = self._vault.make_owner(SHARED)[0].id_hash(record_id)
        if score is None:
            self._connection.execute(
                "DELETE FROM opinions WHERE tenant = :tenant AND user = ? AND id = ?", (owner.no, hashed)
            )
        else:
            name = owner.key.seal(record_id.encode(), owner.place("opinions", hashed))
            values = (owner.no, hashed, name, *shared_score_row(score))
            self._connection.execute(_PUT_SCORE, values)

    def has_damaged_key(self, user: str) -> bool:
        return self._vault.has_damaged_key(user)

    def forget_user(self, user: str) -> None:
        self._forgotten.add(user)

    def append(self, entries: Iterable[AuditRow], head: SealedHead) -> None:
        self._connection.executemany(_APPEND, entries)
        self._connection.execute(_PUT_HEAD, (1, head.seq, head.digest, head.seal))

    def rewrite(self, entries: Iterable[AuditRow], head: SealedHead) -> None:
        """Replace the entries of these places, and the head."""
        self._connection.executemany(
            "UPDATE audit SET user = ?, record = ?, reason = ?, detail = ?, digest = ? "
            "WHERE tenant = :tenant AND seq = ?",
            [(row.user, row.record, row.reason, row.detail, row.digest, row.seq) for row in entries],
        )
        self.append((), head)

    def put_setting(self, name: str, value: str) -> None:
        put_setting(self._connection, name, value)

    def finish(self) -> bool:
        """Write the users' versions, and release the keys of forgotten users of whom nothing is stored.

        Returns:
            Whether keys are to be destroyed after the commit.
        """
        for owner, version in self._versions.values():
            self._connection.execute(
                "UPDATE users SET version = ? WHERE tenant = :tenant AND no = ?", (version, owner.no)
            )
            self._trim_removed_rows(owner.no)
        for user in self._forgotten:
            self._vault.forget_owner(user)
        return self._vault.note_released()

    def _slot_for(self, owner: Owner, values: Sequence[Any]) -> int:
        """Return the slot of a record: that of the record with its id, or a new one if the content is another."""
        slot, before = read_content(self._vault, owner, owner.id_hash(values[0]))
        if slot is not None and before == content_of(values):
            return slot
        self._vault.release([] if slot is None else [slot])
        return self._vault.take()

    def _note_removal(self, owner: Owner, version: int, record_id: str) -> None:
        """Note that a row leaves the active records; an archived message left them before."""
        self._connection.execute(
            "INSERT INTO gone (tenant, user, changed, row) SELECT tenant, user, ?, row FROM memories "
            "WHERE tenant = :tenant AND user = ? AND id = ? ON CONFLICT (tenant, user, changed, row) DO NOTHING",
            (version, owner.no, owner.id_hash(record_id)),
        )

    def _next_version(self, user: str) -> tuple[Owner, int]:
        """Return the user, and the version of the user's records after this transaction."""
        if user not in self._versions:
            owner, version = self._vault.make_owner(user)
            self._versions[user] = (owner, version + 1)
        return self._versions[user]

    def _trim_removed_rows(self, no: int) -> None:
        """Forget the older half of too many removed rows; readers of an older version read all records again."""
        count = self._connection.execute(
            "SELECT count(*) FROM gone WHERE tenant = :tenant AND user = ?", (no,)
        ).fetchone()[0]
        if count > MAX_REMOVED_ROWS:
            at = self._connection.execute(
                "SELECT changed FROM gone WHERE tenant = :tenant AND user = ? ORDER BY changed LIMIT 1 OFFSET ?",
                (no, count - MAX_REMOVED_ROWS // 2),
            ).fetchone()[0]
            self._connection.execute("DELETE FROM gone WHERE tenant = :tenant AND user = ? AND changed <= ?", (no, at))
            self._connection.execute("UPDATE users SET complete_from = ? WHERE tenant = :tenant AND no = ?", (at, no))


def count_entries(connection: Connection) -> int:
    """Return the number of entries of the audit log, by its head."""
    row = connection.execute("SELECT seq FROM audit_head WHERE tenant = :tenant").fetchone()
    return int(row[0]) if row else 0
