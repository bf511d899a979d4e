"""The SQLite back end of a memory: one file with a write-ahead log, and the keys of its content in another."""

import sqlite3
from functools import partial
from pathlib import Path
from typing import Self

from meve._sqlite import NO_TRUST, Connections, map_error
from meve.errors import StorageError, StoreCorruptError
from meve.memory._audit.older_log import Rewrite
from meve.memory.stores._settings import LOG_NAMES
from meve.memory.stores._sql.key_file import KeyFile
from meve.memory.stores._sql.key_place import FilePlace, KeyPlace
from meve.memory.stores._sql.master_key import MasterKey, check_master_key
from meve.memory.stores._sql.store import SqlStore, begin_store, check_copying, open_keys
from meve.memory.stores._sql.vault import Vault, read_setting
from meve.memory.stores.protocol import EventQuery
from meve.memory.stores.sqlite._database import SqliteConnection, SqliteDatabase
from meve.memory.stores.sqlite._schema import check_ours, migrate
from meve.memory.stores.sqlite._sealing import PLAIN_PAGES, seal_plain_rows


class SqliteStore(SqlStore):
    """See `meve.memory.stores.protocol.MemoryStore`.

    Args:
        connections: to a file that has the tables; `open` makes them.
        keys: the keys of its content.
    """

    def __init__(self, connections: Connections, keys: KeyFile) -> None:
        super().__init__(SqliteDatabase(connections), keys)
        self._connections = connections

    @classmethod
    def open(
        cls,
        file: str | Path,
        *,
        master_key: MasterKey | None = None,
        accept_older: bool = False,
        copy_of: KeyFile | None = None,
    ) -> Self:
        """Open the store in a file, or create it; its folder must exist.

        Args:
            file: the database; the keys of its records are in a file beside it, whose name ends with `.keys`.
            master_key: locks the key file, from then on.
            accept_older: open a database that is older than its keys: records whose keys were destroyed since are
                removed, and keys of records that it lacks are destroyed.
            copy_of: begin or go on with a copy of the memory with these keys, instead of opening a whole one.

        Raises:
            ConfigurationError: the master key is no key, or too short.
            StorageError: the file can't be opened, is damaged, or of a newer version.
            KeyFileError: the key file is missing, belongs to another memory, is locked with another master key, or is
                older or newer than the database.
        """
        check_master_key(master_key)
        path = Path(file)
        if str(file) == ":memory:":
            raise StorageError("a memory needs a file, got ':memory:': give a path in a temporary folder, or store=")
        try:
            if not path.parent.is_dir():
                raise StorageError(f"{path.parent} is no folder: create it, or choose another path for the memory")
            if path.is_dir():
                raise StorageError(f"{path} is a folder: give the path of a file")
        except OSError as cause:
            raise StorageError(f"{path} can't be opened: {cause}; check the permissions of file and folder") from cause
        connections = Connections(path)
        place = FilePlace(_key_path(path))
        try:
            with connections.first(settings=NO_TRUST) as connection:
                check_ours(connection, str(path))
            with connections.first() as connection:
                seal = partial(_seal, name=str(path), place=place, master_key=master_key, copy_of=copy_of)
                migrate(connection, str(path), seal)
                check_copying(str(path), SqliteConnection(connection), copy_of)
                keys = open_keys(SqliteDatabase(connections), SqliteConnection(connection), place, master_key)
                _drop_plain_pages(connection)
        except sqlite3.DatabaseError as cause:
            raise map_error(cause, path, "opened") from cause
        except UnicodeDecodeError as cause:  # SQLite's message holds what is left of the tables' names
            raise StoreCorruptError(f"{path} is damaged: restore it from a copy") from cause
        store = cls(connections, keys)
        store.recover(accept_older=accept_older)
        return store

    def rewrite_log(self, rewrite: Rewrite) -> None:
        """Replace the log of an older version, once, by what a function makes of it; None leaves it as it is."""
        with self.writing() as transaction:
            head = transaction.head()
            if head is None or transaction.setting(LOG_NAMES) is not None:
                return
            rewritten = rewrite(list(transaction.entries(EventQuery())), head)
            transaction.put_setting(LOG_NAMES, "hashed" if rewritten else "as they were")
            if rewritten is not None:
                transaction.rewrite(*rewritten)
                transaction.put_setting(PLAIN_PAGES, "1")
        with self._connections.first() as connection:
            _drop_plain_pages(connection)

    def find_damage(self) -> list[str]:
        """Return what SQLite's `quick_check` finds wrong in the pages, and whose keys are missing; empty for nothing.

        Reads the whole file.
        """
        with self._connections.reading() as connection:
            found = [text for (text,) in connection.execute("PRAGMA quick_check") if text != "ok"]
        return found + super().find_damage()

    def size(self) -> int:
        """Return the size of the file, its keys, its log and its index in bytes."""
        file = self._connections.file
        files = [file, _key_path(file), *(file.with_name(f"{file.name}-{end}") for end in ("wal", "shm"))]
        return sum(each.stat().st_size for each in files if each.is_file())


def _key_path(file: Path) -> Path:
    file = file.resolve()
    return file.with_name(f"{file.name}.keys")


def _seal(
    connection: sqlite3.Connection, *, name: str, place: KeyPlace, master_key: MasterKey | None, copy_of: KeyFile | None
) -> None:
    """Make the key file, and seal the rows of a file of an older version."""
    lent = SqliteConnection(connection)
    if copy_of is not None and connection.execute("SELECT 1 FROM audit_head").fetchone() is not None:
        check_copying(name, lent, copy_of)  # it is no copy
    keys = begin_store(lent, place, master_key, copy_of)
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'plain_memories'").fetchone() is not None:
        with keys.slots() as slots:
            seal_plain_rows(Vault(lent, slots, keys.user_hash))


def _drop_plain_pages(connection: sqlite3.Connection) -> None:
    """Write a file anew that held plain rows, and empty its log. If others read it, the next opening tries again."""
    if read_setting(SqliteConnection(connection), PLAIN_PAGES) is None:
        return
    connection.execute("VACUUM")
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if not busy:
        connection.execute("DELETE FROM meta WHERE name = ?", (PLAIN_PAGES,))
