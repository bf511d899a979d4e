"""The graph of turns and the bearer tokens of tenants, in one SQLite file."""

import hashlib
import json
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from meve.errors import (
    DuplicateIdError,
    StorageError,
    StoreBusyError,
    StoreCorruptError,
    StoreVersionError,
    UnknownIdError,
    ValidationError,
)
from meve.service.kernel.records import TurnEntry, chain_version, check_name, first_version

APPLICATION = 0x4D65564B  # "MeVK"
VERSION = 1
WAIT_SECONDS = 5.0
"""The longest wait of a writer for another process."""

SCHEMA = """
CREATE TABLE conversations (
    number INTEGER PRIMARY KEY, tenant TEXT NOT NULL, conversation TEXT NOT NULL, version TEXT NOT NULL,
    turns INTEGER NOT NULL, UNIQUE (tenant, conversation)
) STRICT;
CREATE TABLE turns (
    number INTEGER NOT NULL REFERENCES conversations (number), position INTEGER NOT NULL, turn TEXT NOT NULL,
    parents TEXT NOT NULL, phase TEXT NOT NULL, time REAL, content TEXT NOT NULL,
    PRIMARY KEY (number, position), UNIQUE (number, turn)
) STRICT, WITHOUT ROWID;
CREATE TABLE tokens (
    hash TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL, may_add INTEGER NOT NULL,
    created REAL NOT NULL
) STRICT, WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a bearer token permits."""

    name: str
    tenant: str
    may_add: bool
    """Whether it may add turns and forget conversations, not only ask for slices."""


class GraphStore:
    """A file with the turns of all tenants. Safe to share between threads; other processes may use the file too.

    Raises:
        StoreCorruptError: a file of another kind, or a damaged one.
        StoreVersionError: a file of a newer version.
        StorageError: the file can't be read or written.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._idle: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._closed = False
        if not file.exists():
            with _mapped(file):
                file.touch(mode=0o600)
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
            if not tables and not application:
                for statement in SCHEMA.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
            elif application != APPLICATION:
                raise StoreCorruptError(f"{file} is no file of a graph kernel: name another one")
            elif version > VERSION:
                raise StoreVersionError(
                    f"{file} is of version {version}, this MeVe reads up to {VERSION}: upgrade MeVe"
                )
            connection.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def add(self, tenant: str, conversation: str, entries: Sequence[TurnEntry], most: int) -> tuple[int, int, str]:
        """Add turns, all or none, and return how many were new, how many there are, and the version of the graph.

        A turn that is there already, equal in all, is left out.

        Raises:
            DuplicateIdError: a turn is there already, and differs.
            UnknownIdError: a parent is neither there nor before its reply.
            ValidationError: more than `most` turns.
        """
        with self._writing() as connection:
            number, version, turns = self._find(connection, tenant, conversation) or (0, "", 0)
            if not number:
                version = first_version(tenant, conversation)
                number = (
                    connection.execute(
                        "INSERT INTO conversations (tenant, conversation, version, turns) VALUES (?, ?, ?, 0)",
                        (tenant, conversation, version),
                    ).lastrowid
                    or 0
                )
            new = self._find_new(connection, number, entries)
            if turns + len(new) > most:
                raise ValidationError(
                    f"conversation {conversation!r:.80} has {turns} turns and would get {len(new)} more: "
                    f"at most {most} are allowed"
                )
            connection.executemany(
                "INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (number, turns + n, each.id, json.dumps(each.parents), each.phase, each.time, each.content)
                    for n, each in enumerate(new)
                ],
            )
            version, turns = chain_version(version, new), turns + len(new)
            connection.execute(
                "UPDATE conversations SET version = ?, turns = ? WHERE number = ?", (version, turns, number)
            )
            return len(new), turns, version

    def _find_new(self, connection: sqlite3.Connection, number: int, entries: Sequence[TurnEntry]) -> list[TurnEntry]:
        new: dict[str, TurnEntry] = {}
        for entry in entries:
            known = new.get(entry.id) or self._read_turn(connection, number, entry.id)
            if known is not None:
                if known.digest != entry.digest:
                    raise DuplicateIdError(
                        f"turn {entry.id!r:.80} is there already, with other parents, phase, time or content: "
                        "turns can't be changed; give an edited turn an id of its own"
                    )
                continue
            for parent in entry.parents:
                if parent not in new and self._read_turn(connection, number, parent) is None:
                    raise UnknownIdError(
                        f"turn {entry.id!r:.80} replies to {parent!r:.80}, which isn't there: add parents first"
                    )
            new[entry.id] = entry
        return list(new.values())

    def forget(self, tenant: str, conversation: str) -> int:
        """Erase a conversation, and return how many turns it had; 0 if there was none."""
        with self._writing() as connection:
            known = self._find(connection, tenant, conversation)
            if known is None:
                return 0
            connection.execute("DELETE FROM turns WHERE number = ?", (known[0],))
            connection.execute("DELETE FROM conversations WHERE number = ?", (known[0],))
        with self._connected() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return known[2]

    def version(self, tenant: str, conversation: str) -> str | None:
        """Return the version of a conversation's graph; None if there is none."""
        with self._connected() as connection:
            known = self._find(connection, tenant, conversation)
        return known[1] if known else None

    def read(self, tenant: str, conversation: str) -> tuple[str, list[TurnEntry]] | None:
        """Return the version of a conversation's graph and its turns, as they were at one time; None if there is none.

        Raises:
            StoreCorruptError: the turns don't yield the version.
        """
        with self._connected() as connection:
            connection.execute("BEGIN")
            try:
                known = self._find(connection, tenant, conversation)
                if known is None:
                    return None
                rows = connection.execute(
                    "SELECT turn, parents, phase, time, content FROM turns WHERE number = ? ORDER BY position",
                    (known[0],),
                ).fetchall()
            finally:
                connection.rollback()
        try:
            entries = [_read_entry(row) for row in rows]
        except ValueError as cause:
            raise self._altered(conversation) from cause
        if chain_version(first_version(tenant, conversation), entries) != known[1]:
            raise self._altered(conversation)
        return known[1], entries

    def check(self) -> None:
        """Check that the file can be read.

        Raises:
            StorageError: it can't.
        """
        with self._connected() as connection:
            connection.execute("SELECT count(*) FROM tokens").fetchone()

    def grant(self, name: str, tenant: str, *, may_add: bool = False) -> str:
        """Create a bearer token, and return it; only its hash is stored.

        Raises:
            DuplicateIdError: the name is taken.
            ValidationError: an invalid name.
        """
        check_name(name, "name")
        check_name(tenant, "tenant")
        token = f"mvk_{secrets.token_urlsafe(32)}"
        try:
            with self._writing() as connection:
                connection.execute(
                    "INSERT INTO tokens VALUES (?, ?, ?, ?, ?)", (hash_token(token), name, tenant, may_add, time.time())
                )
        except sqlite3.IntegrityError as cause:
            raise DuplicateIdError(f"there is a token {name!r:.80} already: choose another name") from cause
        return token

    def revoke(self, name: str) -> None:
        """Remove a bearer token; requests with it are refused from now on.

        Raises:
            UnknownIdError: no token has this name.
        """
        with self._writing() as connection:
            if not connection.execute("DELETE FROM tokens WHERE name = ?", (name,)).rowcount:
                raise UnknownIdError(f"there is no token {name!r:.80}")

    def grants(self) -> list[Grant]:
        """Return what each bearer token permits, by name."""
        with self._connected() as connection:
            rows = connection.execute("SELECT name, tenant, may_add FROM tokens ORDER BY name").fetchall()
        return [Grant(name=name, tenant=tenant, may_add=bool(may_add)) for name, tenant, may_add in rows]

    def authenticate(self, token: str) -> Grant | None:
        """Return what a bearer token permits; None if it is unknown."""
        with self._connected() as connection:
            row = connection.execute(
                "SELECT name, tenant, may_add FROM tokens WHERE hash = ?", (hash_token(token),)
            ).fetchone()
        return Grant(name=row[0], tenant=row[1], may_add=bool(row[2])) if row else None

    @staticmethod
    def _find(connection: sqlite3.Connection, tenant: str, conversation: str) -> tuple[int, str, int] | None:
        row: tuple[int, str, int] | None = connection.execute(
            "SELECT number, version, turns FROM conversations WHERE tenant = ? AND conversation = ?",
            (tenant, conversation),
        ).fetchone()
        return row

    @staticmethod
    def _read_turn(connection: sqlite3.Connection, number: int, turn: str) -> TurnEntry | None:
        row = connection.execute(
            "SELECT turn, parents, phase, time, content FROM turns WHERE number = ? AND turn = ?", (number, turn)
        ).fetchone()
        return _read_entry(row) if row else None

    def _altered(self, conversation: str) -> StoreCorruptError:
        return StoreCorruptError(
            f"the turns of {conversation!r:.80} in {self.file} don't yield the version of their graph: the file was "
            "altered; restore it, or forget the conversation and add its turns anew"
        )

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.rollback()
                raise

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._closed:
                raise StorageError(f"{self.file} is closed")
            connection = self._idle.pop() if self._idle else None
        with _mapped(self.file):
            if connection is None:
                connection = self._open()
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.file, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            for setting in (
                "trusted_schema = OFF", "journal_mode = WAL", "synchronous = FULL", "secure_delete = ON",
                "foreign_keys = ON", "temp_store = MEMORY",
            ):  # fmt: skip
                connection.execute(f"PRAGMA {setting}").fetchone()
        except BaseException:
            connection.close()
            raise
        return connection


def hash_token(token: str) -> str:
    """Return the hash under which a bearer token is stored; tokens are random, so no salt is needed."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


def _read_entry(row: tuple[str, str, str, float | None, str]) -> TurnEntry:
    turn, parents, phase, moment, content = row
    return TurnEntry(id=turn, parents=tuple(json.loads(parents)), phase=phase, time=moment, content=content)


@contextmanager
def _mapped(file: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the file system into MeVe's; a violated constraint passes."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except sqlite3.OperationalError as cause:
        if "locked" in str(cause) or "busy" in str(cause):
            raise StoreBusyError(f"another process kept {file} locked for {WAIT_SECONDS:.0f} s: try again") from cause
        raise StorageError(f"{file} can't be used: {cause}") from cause
    except sqlite3.DatabaseError as cause:
        raise StoreCorruptError(f"{file} is damaged or no file of a graph kernel: {cause}") from cause
    except OSError as cause:
        raise StorageError(f"{file} can't be used: {cause.strerror}") from cause
