"""The SQLite back end of a memory: one file with a write-ahead log."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from meve.errors import StorageError, StoreCorruptError
from meve.memory.stores.sqlite._connections import NO_TRUST, Connections, map_error
from meve.memory.stores.sqlite._schema import check_ours, migrate
from meve.memory.stores.sqlite._transaction import SqliteSnapshot, SqliteTransaction


class SqliteStore:
    """See `meve.memory.stores.protocol.MemoryStore`.

    Args:
        connections: to a file that has the tables; `open` makes them.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    @classmethod
    def open(cls, file: str | Path) -> Self:
        """Open the store in a file, or create it; its folder must exist.

        Raises:
            StorageError: the file can't be opened, is damaged, or of a newer version.
        """
        path = Path(file)
        try:
            if not path.parent.is_dir():
                raise StorageError(f"{path.parent} is no folder: create it, or choose another path for the memory")
            if path.is_dir():
                raise StorageError(f"{path} is a folder: give the path of a file")
        except OSError as cause:
            raise StorageError(f"{path} can't be opened: {cause}; check the permissions of file and folder") from cause
        connections = Connections(path)
        try:
            with connections.first(settings=NO_TRUST) as connection:
                check_ours(connection, str(path))
            with connections.first() as connection:
                migrate(connection, str(path))
        except sqlite3.DatabaseError as cause:
            raise map_error(cause, path, "opened") from cause
        except UnicodeDecodeError as cause:  # SQLite's message holds what is left of the tables' names
            raise StoreCorruptError(f"{path} is damaged: restore it from a copy") from cause
        return cls(connections)

    @property
    def name(self) -> str:
        """The file's path."""
        return str(self._connections.file)

    @contextmanager
    def reading(self) -> Iterator[SqliteSnapshot]:
        """Read one consistent state."""
        with self._connections.reading() as connection:
            yield SqliteSnapshot(connection)

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[SqliteTransaction]:
        """Write: commit when the block ends, roll back when it raises."""
        with self._connections.writing(durable=durable) as connection:
            transaction = SqliteTransaction(connection)
            yield transaction
            transaction.finish()

    def scrub(self) -> bool:
        """Empty the write-ahead log, so that no file holds what was removed. Return False if others are reading."""
        return self._connections.checkpointed()

    def find_damage(self) -> list[str]:
        """Return what SQLite's `quick_check` finds wrong in the pages; empty for nothing. Reads the whole file."""
        with self._connections.reading() as connection:
            found = [text for (text,) in connection.execute("PRAGMA quick_check")]
        return [] if found == ["ok"] else found

    def size(self) -> int:
        """Return the size of the file, its log and its index in bytes."""
        file = self._connections.file
        files = [file, *(file.with_name(f"{file.name}-{end}") for end in ("wal", "shm"))]
        return sum(each.stat().st_size for each in files if each.is_file())

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()
