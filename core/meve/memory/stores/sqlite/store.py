"""The SQLite back end of a memory: one file with a write-ahead log, and the keys of its content in another."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Self

from meve._sqlite import NO_TRUST, Connections, map_error
from meve.errors import KeyFileError, StorageError, StoreCorruptError
from meve.memory._audit.older_log import Rewrite
from meve.memory.stores._settings import LOG_NAMES, LOST_ENTRIES
from meve.memory.stores.protocol import EventQuery
from meve.memory.stores.sqlite._key_file import ENTRIES, TIME, KeyFile, MasterKey, check_master_key
from meve.memory.stores.sqlite._recovery import find_lost_keys, recover
from meve.memory.stores.sqlite._schema import check_ours, migrate
from meve.memory.stores.sqlite._sealing import PLAIN_PAGES, seal_plain_rows
from meve.memory.stores.sqlite._transaction import SqliteSnapshot, SqliteTransaction, count_entries
from meve.memory.stores.sqlite._vault import Vault, put_setting, read_setting

_KEY_FILE = "key_file"
"""The setting that holds the id of the key file."""


class SqliteStore:
    """See `meve.memory.stores.protocol.MemoryStore`.

    Args:
        connections: to a file that has the tables; `open` makes them.
    """

    def __init__(self, connections: Connections, keys: KeyFile) -> None:
        self._connections, self._keys = connections, keys

    @classmethod
    def open(cls, file: str | Path, *, master_key: MasterKey | None = None, accept_older: bool = False) -> Self:
        """Open the store in a file, or create it; its folder must exist.

        Args:
            file: the database; the keys of its records are in a file beside it, whose name ends with `.keys`.
            master_key: locks the key file, from then on.
            accept_older: open a database that is older than its keys: records whose keys were destroyed since are
                removed, and keys of records that it lacks are destroyed.

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
        key_path = path.resolve().with_name(f"{path.resolve().name}.keys")
        try:
            with connections.first(settings=NO_TRUST) as connection:
                check_ours(connection, str(path))
            with connections.first() as connection:
                migrate(connection, str(path), partial(_seal, key_path=key_path, master_key=master_key))
                keys = _open_keys(connection, key_path, master_key)
                _drop_plain_pages(connection)
        except sqlite3.DatabaseError as cause:
            raise map_error(cause, path, "opened") from cause
        except UnicodeDecodeError as cause:  # SQLite's message holds what is left of the tables' names
            raise StoreCorruptError(f"{path} is damaged: restore it from a copy") from cause
        store = cls(connections, keys)
        try:
            if recover(connections, keys, accept_older=accept_older):
                store._renew_released()
            if accept_older:
                store._accept_entries()
        except BaseException:
            store.close()
            raise
        return store

    @property
    def name(self) -> str:
        """The file's path."""
        return str(self._connections.file)

    @property
    def names_key(self) -> bytes:
        """A secret of the key file."""
        return self._keys.derived("names in log")

    @contextmanager
    def reading(self) -> Iterator[SqliteSnapshot]:
        """Read one consistent state."""
        with self._connections.reading() as connection, self._keys.slots() as slots:
            yield SqliteSnapshot(Vault(connection, slots, self._keys.user_hash))

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[SqliteTransaction]:
        """Write: commit when the block ends, roll back when it raises. When it returns, erased content has no key."""
        with self._connections.writing(durable=durable) as connection, self._keys.slots() as slots:
            transaction = SqliteTransaction(Vault(connection, slots, self._keys.user_hash))
            before, written = count_entries(connection), self._keys.noted(ENTRIES)
            if before < written and transaction.setting(LOST_ENTRIES) is None:
                transaction.put_setting(LOST_ENTRIES, f"{before} {written}")
            yield transaction
            has_released = transaction.finish()
            count = count_entries(connection)
        if durable and count != before:
            with suppress(KeyFileError):  # the change is made; the next one notes the number
                self._keys.note(ENTRIES, count)
        if has_released:
            self._renew_released()

    def entries_written(self) -> int:
        """Return how many entries of the log were written durably, also if they are lost; 0 for an older file."""
        return self._keys.noted(ENTRIES)

    def latest_time(self) -> int:
        """Return the time that was noted last, in microseconds since 1970; 0 if none was."""
        return self._keys.noted(TIME)

    def note_time(self, moment: int) -> None:
        """Note a time for other processes and later ones, in microseconds since 1970."""
        self._keys.note(TIME, max(0, moment))

    def _accept_entries(self) -> None:
        """Take the log as it is, also if entries that were written are lost."""
        with self._connections.writing() as connection:
            connection.execute("DELETE FROM meta WHERE name = ?", (LOST_ENTRIES,))
            self._keys.note(ENTRIES, count_entries(connection))

    def _renew_released(self) -> None:
        """Destroy the keys of what was erased, in a transaction after the erasure.

        If the process stops in between, the next writer or opener does it: the erasure says which keys these are.
        """
        is_renewed = False
        try:
            with self._connections.writing(durable=False) as connection, self._keys.slots() as slots:
                Vault(connection, slots, self._keys.user_hash).renew_released()
                is_renewed = True
        except StorageError as cause:
            if not is_renewed:
                raise StorageError(
                    f"the change of {self.name} is made, but the keys of what it erased still stand in "
                    f"{self._keys.path} ({cause}): the next change, or opening it again, destroys them"
                ) from cause

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
        with self._connections.first() as connection:
            _drop_plain_pages(connection)

    def find_damage(self) -> list[str]:
        """Return what SQLite's `quick_check` finds wrong in the pages, and whose keys are missing; empty for nothing.

        Reads the whole file.
        """
        with self._connections.reading() as connection:
            found = [text for (text,) in connection.execute("PRAGMA quick_check") if text != "ok"]
        with self._connections.writing(durable=False) as connection, self._keys.slots() as slots:
            return found + find_lost_keys(Vault(connection, slots, self._keys.user_hash))

    def size(self) -> int:
        """Return the size of the file, its keys, its log and its index in bytes."""
        file = self._connections.file
        files = [file, self._keys.path, *(file.with_name(f"{file.name}-{end}") for end in ("wal", "shm"))]
        return sum(each.stat().st_size for each in files if each.is_file())

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()


def _seal(connection: sqlite3.Connection, *, key_path: Path, master_key: MasterKey | None) -> None:
    """Make the key file, and seal the rows of a file of an older version."""
    keys = KeyFile.create(key_path, master_key)
    put_setting(connection, _KEY_FILE, keys.file_id)
    with keys.slots() as slots:
        vault = Vault(connection, slots, keys.user_hash)
        seal_plain_rows(vault)


def _open_keys(connection: sqlite3.Connection, key_path: Path, master_key: MasterKey | None) -> KeyFile:
    """Open the key file, which a master key locks from now on."""
    file_id = read_setting(connection, _KEY_FILE) or ""
    keys = KeyFile.open(key_path, file_id, master_key)
    if not keys.is_settled:
        connection.execute("BEGIN IMMEDIATE")  # one process at a time
        try:
            keys = KeyFile.open(key_path, file_id, master_key)
            if not keys.is_settled:
                keys.settle(master_key)
        finally:
            connection.execute("ROLLBACK")
    keys.mark_used()
    return keys


def _drop_plain_pages(connection: sqlite3.Connection) -> None:
    """Write a file anew that held plain rows, and empty its log. If others read it, the next opening tries again."""
    if read_setting(connection, PLAIN_PAGES) is None:
        return
    connection.execute("VACUUM")
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if not busy:
        connection.execute("DELETE FROM meta WHERE name = ?", (PLAIN_PAGES,))
