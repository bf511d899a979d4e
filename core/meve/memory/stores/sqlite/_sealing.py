"""Seals the rows of a file of version 6, in which everything was plain."""

import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from meve.memory.records import SHARED
from meve.memory.stores._sql.database import Connection
from meve.memory.stores._sql.rows import COLUMNS, VALUES, hash_names, seal_row, unpack_values
from meve.memory.stores._sql.vault import Owner, Vault, put_setting

_ID, _KIND, _DERIVED = (VALUES.index(name) for name in ("id", "kind", "derived"))
PLAIN_PAGES = "plain_pages"
"""The setting that a file has until pages of its plain rows are gone from all files."""


def seal_plain_rows(vault: Vault) -> None:
    """Move the rows of the tables `plain_…`, sealed, to those of the same name without it."""
    connection = vault.connection
    with connection.undecoded_text():  # damaged text stays as it is
        owners = _seal_users(vault)
        names = ["NULL" if name in ("outcomes", "outline") else name for name in VALUES]
        for row, user, changed, *values in _read(connection, "plain_memories", "row", "user", "changed", *names):
            owner, slot = owners[user], vault.take()
            values[_DERIVED] = _list_of_texts(values[_DERIVED])
            sealed = seal_row(owner, slot, vault.slots.key(slot), values)
            if values[_KIND] != "item":
                vault.note_name(owner, values[_ID])
            _insert(connection, "memories", ("row", "user", "changed", *COLUMNS), [row, user, changed, *sealed])
        if owners:
            put_setting(connection, PLAIN_PAGES, 1)
        last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'plain_memories'").fetchone()
        if last is not None:
            connection.execute("DELETE FROM sqlite_sequence WHERE name = 'memories'")
            connection.execute("INSERT INTO sqlite_sequence VALUES ('memories', ?)", last)
        _seal_archive(vault, owners)
        _seal_opinions(vault, owners)


def _seal_users(vault: Vault) -> dict[int, Owner]:
    """Hash the keys of users; only those of whom something is stored keep a name."""
    users = vault.connection.execute("SELECT no, key FROM users").fetchall()
    vault.connection.executemany("UPDATE users SET key = ? WHERE no = ?", [(vault.user_hash(k), no) for no, k in users])
    stored = {no for (no,) in vault.connection.execute(
        "SELECT user FROM plain_memories UNION SELECT user FROM plain_archive UNION SELECT user FROM plain_opinions"
    )}  # fmt: skip
    return {no: vault.make_owner(key)[0] for no, key in users if no in stored}


def _seal_archive(vault: Vault, owners: dict[int, Owner]) -> None:
    columns = ("id", "user", "expires", "hold", "body", "derived", "superseded")
    for record_id, user, expires, hold, body, derived, superseded in _read(vault.connection, "plain_archive", *columns):
        if derived is None:  # of version 1: only the body says it
            with suppress(ValueError, TypeError, IndexError, zlib.error):
                derived = unpack_values(body)[0][_DERIVED]
        owner, slot = owners[user], vault.take()
        vault.note_name(owner, record_id)
        known = {"id": record_id, "session": None, "superseded": superseded, "derived": _list_of_texts(derived)}
        known["hold"] = hold
        hashed, _, *names = hash_names(owner, known)
        sealed = vault.slots.key(slot).seal(body, owner.place("archive", hashed, *names))
        row = (user, hashed, slot, expires, sealed, *names)
        vault.connection.execute("INSERT INTO archive VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)


def _seal_opinions(vault: Vault, owners: dict[int, Owner]) -> None:
    rows = vault.connection.execute("SELECT user, id, reflection, touched, used, uses FROM plain_opinions").fetchall()
    for user, record_id, *score in rows:
        hashed = vault.make_owner(SHARED)[0].id_hash(record_id)
        name = owners[user].key.seal(record_id.encode(), owners[user].place("opinions", hashed))
        values = (user, hashed, name, *score)
        vault.connection.execute("INSERT INTO opinions VALUES (?, ?, ?, ?, ?, ?, ?)", values)


def _list_of_texts(derived: Any) -> str:  # noqa: ANN401
    """Return a list of origins; an empty one for a damaged list."""
    try:
        is_list = isinstance(derived, str) and all(isinstance(each, str) for each in json.loads(derived))
    except (ValueError, TypeError):
        return "[]"
    return str(derived) if is_list else "[]"


def _read(connection: Connection, table: str, *columns: str) -> Iterator[tuple[Any, ...]]:
    yield from connection.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY rowid")


def _insert(connection: Connection, table: str, columns: Sequence[str], values: Sequence[Any]) -> None:
    places = ", ".join("?" * len(columns))
    connection.execute(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", values)
