"""A `RecordQuery` as SQL. A page of one session's messages is found by an index, however long the session is."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from meve.memory._timestamps import micros_or_none
from meve.memory.records import RecordKind, StoredRecord, check_choice
from meve.memory.stores.protocol import Field, RecordQuery
from meve.memory.stores.sqlite._rows import COLUMNS, FIELD_COLUMNS, from_rows, readable, unpack

_ALL = ", ".join(COLUMNS)
_IN = "IN (SELECT value FROM json_each(?))"
_DERIVED = f"derived <> '[]' AND EXISTS (SELECT 1 FROM json_each(derived) WHERE value {_IN})"


def read_records(connection: sqlite3.Connection, query: RecordQuery) -> list[StoredRecord]:
    """Return the matching records by row, those of the archive after the others."""
    key = "(SELECT key FROM users WHERE no = user)"
    with readable():
        rows = connection.execute(*select_records(query, f"{key}, row, {_ALL}")).fetchall()
    records = from_rows(rows)
    if _needs_archive(query) and not (query.ids is not None and len(records) >= len(set(query.ids))):
        records += _archived(connection, query)
    return records


def read_fields(connection: sqlite3.Connection, query: RecordQuery, fields: Sequence[Field]) -> list[tuple[Any, ...]]:
    """Return fields of the matching records, each combination once."""
    columns, decoders = zip(*(FIELD_COLUMNS[name] for name in fields), strict=True)
    by_row = "row" in fields  # then no two are the same, and DISTINCT would only take time
    statement, values = select_records(query, ("" if by_row else "DISTINCT ") + ", ".join(columns), is_ordered=by_row)
    with readable():
        by_field = zip(*connection.execute(statement, values).fetchall(), strict=True)
        decoded = [map(decode, each) if decode else each for decode, each in zip(decoders, by_field, strict=False)]
        rows = list(zip(*decoded, strict=True))
    for stored in _archived(connection, query) if _needs_archive(query) else ():
        row = tuple(stored.row if name == "row" else getattr(stored.record, name) for name in fields)
        if row not in rows:
            rows.append(row)
    return rows


def count_records(connection: sqlite3.Connection, query: RecordQuery) -> int:
    """Return the number of matching records, whatever the limit and the offset."""
    where, values = _where(query)
    count = int(connection.execute(f"SELECT count(*) FROM memories {where}", values).fetchone()[0])
    if not _needs_archive(query):
        return count
    where, values = _where_in_archive(query)
    if any((query.kind, query.session_id, query.derived_from)):  # only the compressed body knows
        return count + len(_archived(connection, query))
    return count + int(connection.execute(f"SELECT count(*) FROM archive {where}", values).fetchone()[0])


def select_records(query: RecordQuery, columns: str, *, is_ordered: bool = True) -> tuple[str, list[Any]]:
    """Return the statement that reads the matching rows outside the archive, and its values."""
    where, values = _where(query)
    order = f"ORDER BY row {'DESC' if query.newest_first else 'ASC'}" if is_ordered else ""
    limit = -1 if query.limit is None else query.limit
    return f"SELECT {columns} FROM memories {where} {order} LIMIT ? OFFSET ?", [*values, limit, query.offset]


def _archived(connection: sqlite3.Connection, query: RecordQuery) -> list[StoredRecord]:
    where, values = _where_in_archive(query)
    rows = connection.execute(
        "SELECT rowid, body, (SELECT key FROM users WHERE no = user), id, expires, hold, derived, superseded "
        f"FROM archive {where} ORDER BY rowid",
        values,
    ).fetchall()
    records = [_with_altered(unpack(user, row, body), *columns) for row, body, user, *columns in rows]
    return [
        stored
        for stored in records
        if query.kind in (None, stored.record.kind)
        and query.session_id in (None, stored.record.session_id)
        and (query.derived_from is None or not set(query.derived_from).isdisjoint(stored.record.derived_from))
    ]


def _with_altered(
    stored: StoredRecord, record_id: str, expires: int | None, hold: int, derived: str | None, superseded: str | None
) -> StoredRecord:
    """Return an archived record with the fields that the columns of the archive give otherwise than its body."""
    r = stored.record
    differs = {
        "id": record_id != r.id,
        "expires_at": expires != micros_or_none(r.expires_at),
        "hold": bool(hold) != bool(r.hold),
        "derived_from": derived not in (None, json.dumps(r.derived_from)),
        "superseded_by": superseded != r.superseded_by,
    }
    altered = tuple(name for name, is_other in differs.items() if is_other)
    return replace(stored, altered=altered) if altered else stored


def _needs_archive(query: RecordQuery) -> bool:
    """Return whether the archive may contain a match. It contains no messages, and no changes since a version."""
    return query.archived is not False and query.kind != "message" and query.changed_since is None


def _where(query: RecordQuery) -> tuple[str, list[Any]]:
    return _joined(
        [
            ("user = (SELECT no FROM users WHERE key = ?)", query.user),
            (f"superseded {_IN}", _json(query.superseded_by)),
            ("session = ?", query.session_id),
            ("archived = ?", None if query.archived is None else int(query.archived)),
            ("(expires IS NULL OR expires > ?)", micros_or_none(query.alive_at)),
            ("changed > ?", query.changed_since),
            ("row > ?", query.after),
            ("row < ?", query.before),
            (f"id {_IN}", _json(query.ids)),
            (_DERIVED, _json(query.derived_from)),
        ],
        "" if query.kind is None else f"kind = '{check_choice(query.kind, 'kind', RecordKind)}'",
    )


def _where_in_archive(query: RecordQuery) -> tuple[str, list[Any]]:
    return _joined(
        [
            ("user = (SELECT no FROM users WHERE key = ?)", query.user),
            ("(expires IS NULL OR expires > ?)", micros_or_none(query.alive_at)),
            (f"id {_IN}", _json(query.ids)),
            (f"superseded {_IN}", _json(query.superseded_by)),
            (f"(derived IS NULL OR ({_DERIVED}))", _json(query.derived_from)),
        ]
    )


def _joined(conditions: Sequence[tuple[str, Any]], literal: str = "") -> tuple[str, list[Any]]:
    """Join conditions by AND; `literal` has no value: a partial index serves no condition with a placeholder."""
    given = [(clause, value) for clause, value in conditions if value is not None]
    clauses = [clause for clause, _ in given] + ([literal] if literal else [])
    return f"WHERE {' AND '.join(clauses)}" if clauses else "", [value for _, value in given]


def _json(ids: Sequence[str] | None) -> str | None:
    return None if ids is None else json.dumps(list(ids))
