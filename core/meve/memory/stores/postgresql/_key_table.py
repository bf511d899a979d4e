"""The bytes of key files in a table of another PostgreSQL server, for processes on several machines.

An update leaves the former row in the table's file, and both in the server's log. So a key that was overwritten here is
gone only once the server has cleaned both, as docs/memory-databases.md tells; in a file, it is gone at once.
"""

import os
from typing import Literal, Self

from meve._postgres import PostgresDatabase
from meve.errors import KeyFileError, StorageError

LOCK = 0x4D65564B  # "MeVK"
BYTES = 1024
"""The bytes of a row: those of 32 slots. An erasure writes the whole row anew."""
TABLE = f"""
CREATE TABLE meve_keys (
    file BYTEA NOT NULL,
    block BIGINT NOT NULL,
    data BYTEA NOT NULL CHECK (length(data) = {BYTES}),
    PRIMARY KEY (file, block)
)
"""
_PUT = (
    "INSERT INTO meve_keys (file, block, data) VALUES (?, ?, ?) "
    "ON CONFLICT (file, block) DO UPDATE SET data = excluded.data"
)
_CHANGE = (  # the server changes the newest row, so that two processes may note numbers in one at once
    "UPDATE meve_keys SET data = overlay(data PLACING ?::bytea FROM ?::int FOR ?::int) WHERE file = ? AND block = ?"
)


class TablePlace:
    """See `meve.memory.stores._sql.key_place.KeyPlace`.

    Args:
        url: the database; its table is created in the first schema of the search path, if it is missing.

    Raises:
        ConfigurationError: an invalid URL.
        KeyFileError: the database can't be used.
        MissingExtraError: psycopg isn't installed.
    """

    def __init__(self, url: str) -> None:
        self._database = PostgresDatabase(url)
        self.name = f"the key file in {self._database.name}"
        self._file = b""
        try:
            self._database.check()
            self._database.migrate(LOCK, "meve_keys_version", [[TABLE]])
        except BaseException as error:
            self.close()
            if isinstance(error, StorageError):
                raise self._unusable(error) from error
            raise

    def __str__(self) -> str:
        return self.name

    def server(self) -> int:
        """Return the number that tells the server, with its replicas, from others."""
        return self._database.server()

    def begin(self) -> bytes:
        self._file = os.urandom(16)
        return self._file

    def find(self, file_id: str) -> bool:
        self._file = bytes.fromhex(file_id)
        return self.size() > 0

    def open(self, mode: Literal["rb", "r+b"]) -> "TableBytes":  # noqa: ARG002 - it is the same
        return TableBytes(self)

    def peek(self, at: int, size: int) -> bytes:
        return self.read(at, size)

    def close(self) -> None:
        self._database.close()

    def size(self) -> int:
        """Return the number of bytes."""
        try:
            ((last,),) = self._database.query("SELECT max(block) FROM meve_keys WHERE file = ?", (self._file,))
        except StorageError as error:
            raise self._unusable(error) from error
        return 0 if last is None else (int(last) + 1) * BYTES

    def read(self, at: int, size: int) -> bytes:
        """Return bytes; fewer at the end."""
        first = at // BYTES
        query = "SELECT block, data FROM meve_keys WHERE file = ? AND block BETWEEN ? AND ? ORDER BY block"
        try:
            rows = self._database.query(query, (self._file, first, (at + size - 1) // BYTES))
        except StorageError as error:
            raise self._unusable(error) from error
        if [block for block, _ in rows] != list(range(first, first + len(rows))):
            raise KeyFileError(f"{self} lacks rows of the table meve_keys: restore them from a backup")
        return b"".join(data for _, data in rows)[at % BYTES :][:size]

    def write(self, parts: list[tuple[int, bytes]], *, durable: bool) -> None:
        """Write bytes at these places, all or none."""
        whole: list[tuple[object, ...]] = []
        changed: list[tuple[object, ...]] = []
        for at, data in parts:
            while data:
                block, begin = divmod(at, BYTES)
                piece, data = data[: BYTES - begin], data[BYTES - begin :]
                if len(piece) == BYTES:
                    whole.append((self._file, block, piece))
                else:
                    changed.append((piece, begin + 1, len(piece), self._file, block))
                at += len(piece)
        lazily = "" if durable else "; SET LOCAL synchronous_commit = off"
        try:
            with self._database.writing(lazily) as rows:
                if whole:
                    rows.executemany(_PUT, whole)
                if changed and rows.executemany(_CHANGE, changed).rowcount != len(changed):
                    raise KeyFileError(f"{self} lacks rows of the table meve_keys: restore them from a backup")
        except StorageError as error:
            raise error if isinstance(error, KeyFileError) else self._unusable(error) from error

    def _unusable(self, error: StorageError) -> KeyFileError:
        return KeyFileError(f"{self} can't be used, and nothing can be read or changed without it: {error}")


class TableBytes:
    """See `meve.memory.stores._sql.key_place.KeyBytes`. What is written is sent by `sync`, or when it is closed.

    Args:
        place: where the bytes stand.
    """

    def __init__(self, place: TablePlace) -> None:
        self._place, self._at = place, 0
        self._written: list[tuple[int, bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        if raised[0] is None:
            self._send(durable=False)

    def seek(self, offset: int, /) -> int:
        self._at = offset
        return offset

    def read(self, size: int, /) -> bytes:
        data = self._place.read(self._at, size)
        self._at += len(data)
        return data

    def write(self, data: bytes | memoryview, /) -> int:
        self._written.append((self._at, bytes(data)))
        self._at += len(data)
        return len(data)

    def sync(self) -> None:
        self._send(durable=True)

    def size(self) -> int:
        return self._place.size()

    def close(self) -> None:
        """Do nothing: whoever opens it without `with` only reads."""

    def _send(self, *, durable: bool) -> None:
        written, self._written = self._written, []
        if written:
            self._place.write(written, durable=durable)
