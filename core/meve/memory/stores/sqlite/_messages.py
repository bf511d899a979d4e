"""Messages of a session in SQLite: a page is found by an index, however long the session is."""

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from meve.memory.records import Message, StoredRecord
from meve.memory.stores.protocol import Stretch
from meve.memory.stores.sqlite._rows import COLUMNS, from_row, micros, moment, readable

ARCHIVED = "archived"
"""The tag of a message that is put away."""

_SHOWN = ("id", "metadata", "tags", "created", "expires")
_TAGS = {True: f'["{ARCHIVED}"]', False: "[]"}
_OF_USER = "source = 'message' AND user = (SELECT no FROM users WHERE key = ?)"
_ALIVE = "(expires IS NULL OR expires > ?)"


def messages_in(connection: sqlite3.Connection, user: str, stretch: Stretch, now: datetime) -> list[Message]:
    """Messages that aren't expired, in the order in which they were added; only what a reader needs of them is read."""
    with readable():
        found = [
            Message(
                id=name,
                session_id=stretch.session,
                value=_object(value),
                place=row,
                archived=tags == _TAGS[True],
                added_at=moment(created),
                expires_at=None if expires is None else moment(expires),
            )
            for row, name, value, tags, created, expires in connection.execute(*page(user, stretch, now, _SHOWN))
        ]
    return found[::-1] if stretch.newest else found


def records_in(
    connection: sqlite3.Connection, user: str, stretch: Stretch, now: datetime
) -> list[tuple[int, StoredRecord]]:
    """The same as whole records, with their places."""
    rows = connection.execute(*page(user, stretch, now, COLUMNS)).fetchall()
    found = [(row[0], from_row(user, row[1:])) for row in rows]
    return found[::-1] if stretch.newest else found


def count_in(connection: sqlite3.Connection, user: str, stretch: Stretch, now: datetime) -> int:
    """How many there are, whatever the limit and the offset."""
    where, values = _where(user, stretch, now)
    return int(connection.execute(f"SELECT count(*) FROM memories WHERE {where}", values).fetchone()[0])


def sessions_in(connection: sqlite3.Connection, user: str, now: datetime) -> list[str]:
    """A user's sessions that hold a message that isn't expired, sorted."""
    rows = connection.execute(
        f"SELECT DISTINCT session FROM memories WHERE {_OF_USER} AND {_ALIVE} ORDER BY session", (user, micros(now))
    ).fetchall()
    return [session for (session,) in rows]


def page(user: str, stretch: Stretch, now: datetime, columns: Sequence[str]) -> tuple[str, list[Any]]:
    """The statement that finds the rows of a page and these columns of them, and its values."""
    where, values = _where(user, stretch, now)
    order = "DESC" if stretch.newest else "ASC"
    limit = -1 if stretch.limit is None else stretch.limit
    statement = f"SELECT row, {', '.join(columns)} FROM memories WHERE {where} ORDER BY row {order} LIMIT ? OFFSET ?"
    return statement, [*values, limit, stretch.offset]


def _where(user: str, stretch: Stretch, now: datetime) -> tuple[str, list[Any]]:
    asked: list[tuple[str, Any]] = [
        ("tags = ?", None if stretch.archived is None else _TAGS[stretch.archived]),
        ("row > ?", stretch.after),
        ("row < ?", stretch.before),
        ("id IN (SELECT value FROM json_each(?))", None if stretch.ids is None else json.dumps(stretch.ids)),
    ]
    wanted = [(clause, value) for clause, value in asked if value is not None]
    clauses = [_OF_USER, "session = ?", _ALIVE, *(clause for clause, _ in wanted)]
    return " AND ".join(clauses), [user, stretch.session, micros(now), *(value for _, value in wanted)]


def _object(stored: str) -> dict[str, Any]:
    found = json.loads(stored)
    if not isinstance(found, dict):
        raise TypeError(f"a message is {stored:.40}")
    return found
