"""A `RecordQuery` as SQL. A page of one session's messages is found by an index, however long the session is."""

import json
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from meve.memory._timestamps import micros_or_none
from meve.memory.records import RecordKind, StoredRecord, check_choice
from meve.memory.stores._sql.key_file import KeyIsGone
from meve.memory.stores._sql.rows import (
    COLUMNS,
    FIELD_COLUMNS,
    VALUES,
    content_of,
    from_values,
    readable,
    unpack,
    unseal_row,
)
from meve.memory.stores._sql.vault import DamagedId, Owner, Vault
from meve.memory.stores.protocol import Field, RecordQuery

_OPEN_FIELDS: frozenset[Field] = frozenset({"row", "archived", "created_at", "expires_at", "touched_at"})
"""Fields that aren't sealed."""
_KNOWN_OF_DAMAGED: frozenset[Field] = frozenset({"row", "id", "expires_at", "hold"})
"""Fields of which enough is known if a record can't be unsealed."""
_SELECTED = ("user", "row", *COLUMNS)
_IN_ARCHIVE = ("user", "rowid", "slot", "body", "id", "superseded", "derived", "hold", "expires")
_PLACE = {name: n for n, name in enumerate(VALUES)}
_IN = "IN (SELECT value FROM json_each(?))"
_DERIVED = f"derived <> '[]' AND EXISTS (SELECT 1 FROM json_each(derived) WHERE value {_IN})"
_NO_LIMIT = 2**63 - 1

_DAMAGES = (KeyIsGone, ValueError, TypeError, KeyError, RecursionError, zlib.error)

Values = tuple[str, int, Sequence[Any]]
"""The user's key, the row's number, and the values of a record."""


def read_records(vault: Vault, query: RecordQuery) -> list[StoredRecord]:
    """Return the matching records by row, those of the archive after the others."""
    found = _Hashed.of(vault, query)
    if found is None:
        return []
    with readable(), closing(_active(vault, found)) as active:
        records = [from_values(*each) for each in active]
        if _needs_archive(query) and not (query.ids is not None and len(records) >= len(set(query.ids))):
            records += [_with_altered(from_values(*each), expires) for each, expires in _archived(vault, found)]
    return records


def read_fields(vault: Vault, query: RecordQuery, fields: Sequence[Field]) -> list[tuple[Any, ...]]:
    """Return fields of the matching records, each combination once."""
    found = _Hashed.of(vault, query)
    if found is None:
        return []
    columns, decoders = zip(*(FIELD_COLUMNS[name] for name in fields), strict=True)
    by_row = "row" in fields  # then no two are the same
    skips_damaged = _KNOWN_OF_DAMAGED.issuperset(fields)
    with readable():
        if _OPEN_FIELDS.issuperset(fields):
            statement, values = found.select(", ".join(columns), is_ordered=by_row)
            raw = vault.connection.execute(statement, values).fetchall()
        else:
            by_session = tuple(fields) == ("session_id",)  # one row of each is enough
            active = _active(vault, found, skips_damaged=skips_damaged, by_session=by_session)
            raw = [_pick(each, columns) for each in active]
        if _needs_archive(query):
            archived = _archived(vault, found, skips_damaged=skips_damaged)
            raw += [_pick(each, columns) for each, _ in archived]
        rows = raw if by_row else list(dict.fromkeys(raw))
        by_field = zip(*rows, strict=True)
        decoded = [map(decode, each) if decode else each for decode, each in zip(decoders, by_field, strict=False)]
        return list(zip(*decoded, strict=True))


def count_records(vault: Vault, query: RecordQuery) -> int:
    """Return the number of matching records, whatever the limit and the offset."""
    found = _Hashed.of(vault, query)
    if found is None:
        return 0
    where, values = found.where()
    count = int(vault.connection.execute(f"SELECT count(*) FROM memories {where}", values).fetchone()[0])
    if not _needs_archive(query):
        return count
    if _needs_body(query):
        with readable():
            return count + len(list(_archived(vault, found)))
    where, values = found.where_in_archive()
    return count + int(vault.connection.execute(f"SELECT count(*) FROM archive {where}", values).fetchone()[0])


def read_content(vault: Vault, owner: Owner, hashed: str) -> tuple[int | None, list[Any] | None]:
    """Return the slot and the content of the record whose id has this hash; None for what isn't there or is damaged."""
    rows = vault.connection.execute(
        f"SELECT {', '.join(COLUMNS)} FROM memories WHERE tenant = :tenant AND user = ? AND id = ?", (owner.no, hashed)
    ).fetchall()
    archived = (
        ()
        if rows
        else vault.connection.execute(
            "SELECT slot, body, id, superseded, derived, hold FROM archive "
            "WHERE tenant = :tenant AND user = ? AND id = ?",
            (owner.no, hashed),
        ).fetchall()
    )
    try:
        for slot, *columns in rows:
            return slot, content_of(unseal_row(owner, vault.slots.key(slot), columns))
        for slot, body, *names in archived:
            return slot, content_of(unpack(vault.slots.key(slot).unseal(body, owner.place("archive", *names))))
    except _DAMAGES:
        return slot, None
    return None, None


@dataclass(frozen=True, slots=True)
class _Hashed:
    """A query, and the user whose key hashes its names; None for all users."""

    query: RecordQuery
    owner: Owner | None

    @classmethod
    def of(cls, vault: Vault, query: RecordQuery) -> "_Hashed | None":
        """Return the query; None if it can match nothing, since the user has no key."""
        owner = None if query.user is None else vault.owner(query.user)
        return None if owner is None and query.user is not None else cls(query, owner)

    def select(self, columns: str, *, is_ordered: bool = True, by_session: bool = False) -> tuple[str, list[Any]]:
        """Return the statement that reads the matching rows outside the archive, and its values."""
        query = self.query
        where, values = self.where()
        if by_session:
            first = f"SELECT min(row) FROM memories {where} GROUP BY session"
            where = f"WHERE tenant = :tenant AND row IN ({first})"
        order = f"ORDER BY row {'DESC' if query.newest_first else 'ASC'}" if is_ordered and not by_session else ""
        distinct = "" if is_ordered or by_session else "DISTINCT "
        limit = _NO_LIMIT if query.limit is None else query.limit
        statement = f"SELECT {distinct}{columns} FROM memories {where} {order} LIMIT ? OFFSET ?"
        return statement, [*values, limit, query.offset]

    def where(self) -> tuple[str, list[Any]]:
        query, owner = self.query, self.owner
        return _joined(
            [
                ("user = ?", None if owner is None else owner.no),
                (f"superseded {_IN}", self._hashes(query.superseded_by)),
                ("session = ?", self._session()),
                ("archived = ?", None if query.archived is None else int(query.archived)),
                ("(expires IS NULL OR expires > ?)", micros_or_none(query.alive_at)),
                ("changed > ?", query.changed_since),
                ("row > ?", query.after),
                ("row < ?", query.before),
                (f"id {_IN}", self._hashes(query.ids)),
                (_DERIVED, self._hashes(query.derived_from)),
            ],
            "" if query.kind is None else f"kind = '{check_choice(query.kind, 'kind', RecordKind)}'",
        )

    def where_in_archive(self) -> tuple[str, list[Any]]:
        query, owner = self.query, self.owner
        return _joined(
            [
                ("user = ?", None if owner is None else owner.no),
                ("(expires IS NULL OR expires > ?)", micros_or_none(query.alive_at)),
                (f"id {_IN}", self._hashes(query.ids)),
                (f"superseded {_IN}", self._hashes(query.superseded_by)),
                (_DERIVED, self._hashes(query.derived_from)),
            ]
        )

    def _session(self) -> str | None:
        session = self.query.session_id
        return None if session is None or self.owner is None else self.owner.session_hash(session)

    def _hashes(self, ids: Sequence[str] | None) -> str | None:
        return None if ids is None or self.owner is None else json.dumps([self.owner.id_hash(each) for each in ids])


def _active(
    vault: Vault, found: _Hashed, *, skips_damaged: bool = False, by_session: bool = False
) -> Generator[Values]:
    """Unseal the matching rows outside the archive, except those whose keys are gone."""
    statement, parameters = found.select(", ".join(_SELECTED), by_session=by_session)
    for no, row, slot, *columns in _rows(vault, statement, parameters, are_many=found.query.changed_since == 0):
        owner = found.owner or vault.owner_of(no)
        try:
            if owner is None:
                raise KeyIsGone
            values: Sequence[Any] = unseal_row(owner, vault.slots.key(slot), columns)
        except _DAMAGES as damage:
            if vault.note_gone(damage, columns[0]) and not (skips_damaged and owner):
                continue
            if not skips_damaged or owner is None:
                raise
            values = _damaged(vault, owner, **dict(zip(COLUMNS[1:], columns, strict=True)))
        yield owner.user, row, values


def _rows(vault: Vault, statement: str, values: Sequence[Any], *, are_many: bool = False) -> Iterator[Sequence[Any]]:
    """Read rows one by one; if they are many, so that no second copy of a large memory stands in the process."""
    connection = vault.connection
    lent = connection.lend_rows(statement, values) if are_many else nullcontext(connection.execute(statement, values))
    with lent as rows:
        vault.slots.refresh()  # what was erased since the last reading isn't returned
        yield from rows


def _archived(vault: Vault, found: _Hashed, *, skips_damaged: bool = False) -> Iterator[tuple[Values, int | None]]:
    """Unseal the matching rows of the archive, except those whose keys are gone, each with the column of its expiry."""
    query = found.query
    where, parameters = found.where_in_archive()
    statement = f"SELECT {', '.join(_IN_ARCHIVE)} FROM archive {where} ORDER BY rowid"
    is_named = skips_damaged and not _needs_body(query)
    for no, row, slot, body, *names, expires in _rows(vault, statement, parameters):
        owner = found.owner or vault.owner_of(no)
        try:
            if owner is None:
                raise KeyIsGone
            values: Sequence[Any] = unpack(vault.slots.key(slot).unseal(body, owner.place("archive", *names)))
        except _DAMAGES as damage:
            if vault.note_gone(damage, body) and not (is_named and owner):
                continue
            if not is_named or owner is None:
                raise
            values = _damaged(vault, owner, id=names[0], hold=names[3], expires=expires)
        if query.kind in (None, values[_PLACE["kind"]]) and query.session_id in (None, values[_PLACE["session"]]):
            yield (owner.user, row, values), expires


def _damaged(vault: Vault, owner: Owner, *, id: str, hold: int, expires: int | None, **_: Any) -> Sequence[Any]:  # noqa: ANN401
    """Return what is known of a damaged record: its id, or a name for it, its expiry, and whether it's on hold."""
    name = [*vault.noted_names(owner, id), DamagedId.of(id)][0]
    known = {"id": name, "hold": "on hold" if hold else "", "expires": expires}
    return [known.get(each) for each in VALUES]


def _pick(values: Values, columns: Sequence[str]) -> tuple[Any, ...]:
    _, row, named = values
    return tuple(row if name == "row" else named[_PLACE[name]] for name in columns)


def _needs_body(query: RecordQuery) -> bool:
    """Return whether only the sealed body of an archived record knows if it matches."""
    return any((query.kind, query.session_id))


def _with_altered(stored: StoredRecord, expires: int | None) -> StoredRecord:
    """Return an archived record with a note if the column of its expiry isn't as its body says."""
    return stored if expires == micros_or_none(stored.record.expires_at) else replace(stored, altered=("expires_at",))


def _needs_archive(query: RecordQuery) -> bool:
    """Return whether the archive may contain a match. It contains no messages, and no changes since a version."""
    return query.archived is not False and query.kind != "message" and query.changed_since is None


def _joined(conditions: Sequence[tuple[str, Any]], literal: str = "") -> tuple[str, list[Any]]:
    """Join conditions by AND; `literal` has no value: a partial index serves no condition with a placeholder."""
    given = [(clause, value) for clause, value in conditions if value is not None]
    clauses = [clause for clause, _ in given] + ([literal] if literal else [])
    return f"WHERE {' AND '.join(['tenant = :tenant', *clauses])}", [value for _, value in given]
