"""What stores of sealed rows share, over any database: transactions, the keys of what is erased, and the time."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from meve._repeating import repeat_rolled_back
from meve.errors import KeyFileError, StorageError
from meve.memory.stores._settings import LOST_ENTRIES
from meve.memory.stores._sql.database import Connection, Database
from meve.memory.stores._sql.key_file import ENTRIES, TAKEN, TIME, KeyFile
from meve.memory.stores._sql.key_place import KeyPlace
from meve.memory.stores._sql.master_key import MasterKey
from meve.memory.stores._sql.recovery import describe_lost, find_suspects, recover
from meve.memory.stores._sql.transaction import SqlSnapshot, SqlTransaction, count_entries
from meve.memory.stores._sql.vault import Vault, put_setting, read_setting

KEY_FILE = "key_file"
"""The setting that holds the id of the key file."""
COPYING = "copying"
"""The setting that a store has while it is an unfinished copy: the id of the key file of the memory that is copied."""


class SqlStore(ABC):
    """See `meve.memory.stores.protocol.MemoryStore`.

    Args:
        database: a database that has the tables.
        keys: the keys of its content.
    """

    def __init__(self, database: Database, keys: KeyFile) -> None:
        self._database, self._keys = database, keys

    def recover(self, *, accept_older: bool) -> None:
        """Bring database and key file into agreement, or close both and raise KeyFileError."""
        try:
            if recover(self._database, self._keys, accept_older=accept_older):
                self._renew_released()
            if accept_older:
                self._accept_entries()
                with self.writing():  # destroys the keys of what the database lacks
                    pass
        except BaseException:
            self.close()
            raise

    @property
    def keys(self) -> KeyFile:
        """The keys of the content."""
        return self._keys

    @property
    def name(self) -> str:
        """The database's name in messages."""
        return self._database.name

    @property
    def names_key(self) -> bytes:
        """A secret of the key file."""
        return self._keys.derived("names in log")

    @contextmanager
    def reading(self) -> Iterator[SqlSnapshot]:
        """Read one consistent state."""
        with self._database.reading() as connection, self._keys.slots() as slots:
            yield SqlSnapshot(Vault(connection, slots, self._keys.user_hash))

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[SqlTransaction]:
        """Write: commit when the block ends, roll back when it raises. When it returns, erased content has no key."""
        is_done = False
        while not is_done:
            with self._database.writing(durable=durable) as connection, self._keys.slots() as slots:
                vault = Vault(connection, slots, self._keys.user_hash)
                transaction = SqlTransaction(vault)
                before, written = count_entries(connection), self._keys.noted(ENTRIES)
                if before < written and transaction.setting(LOST_ENTRIES) is None:
                    transaction.put_setting(LOST_ENTRIES, f"{before} {written}")
                is_older, taken = before < written, self._keys.noted(TAKEN)
                if is_older:  # the keys of later records, which it lacks, are kept
                    vault.accept_unfinished(taken)
                is_done = is_older or not vault.release_unfinished(taken)
                if is_done:
                    yield transaction
                    has_released = transaction.finish()
                else:  # nothing stored is erased, so older copies of the database stay valid
                    has_released = vault.has_released()
                count = count_entries(connection) if durable else before
            if count != before:
                with suppress(KeyFileError):  # the change is made; the next one notes the number
                    self._keys.note(ENTRIES, count)
            if has_released:
                self._renew_released(is_changed=is_done)

    def entries_written(self) -> int:
        """Return how many entries of the log were written durably, also if they are lost; 0 for an older file."""
        return self._keys.noted(ENTRIES)

    def latest_time(self) -> int:
        """Return the time that was noted last, in microseconds since 1970; 0 if none was."""
        return self._keys.noted(TIME)

    def note_time(self, moment: int) -> None:
        """Note a time for other processes and later ones, in microseconds since 1970."""
        self._keys.note(TIME, max(0, moment))

    def find_damage(self) -> list[str]:
        """Return whose keys are missing, in words; empty for nothing. Others write while all rows are read."""
        with self._database.reading() as connection, self._keys.slots() as slots:
            suspects = find_suspects(Vault(connection, slots, self._keys.user_hash))
        if not suspects:
            return []
        with self._database.writing(durable=False) as connection, self._keys.slots() as slots:
            return describe_lost(Vault(connection, slots, self._keys.user_hash), suspects)

    @abstractmethod
    def size(self) -> int:
        """Return the size of the database and its keys in bytes."""

    def close(self) -> None:
        """Close the connections."""
        self._database.close()
        self._keys.place.close()

    def _accept_entries(self) -> None:
        """Take the log as it is, also if entries that were written are lost."""
        with self._database.writing() as connection:
            connection.execute("DELETE FROM meta WHERE tenant = :tenant AND name = ?", (LOST_ENTRIES,))
            self._keys.note(ENTRIES, count_entries(connection))

    def _renew_released(self, *, is_changed: bool = True) -> None:
        """Destroy the keys of what was erased, in a transaction after the erasure.

        If the process stops in between, the next writer or opener does it: the erasure says which keys these are.
        """
        is_renewed = False

        @repeat_rolled_back
        def renew() -> None:
            nonlocal is_renewed
            with self._database.writing(durable=False) as connection, self._keys.slots() as slots:
                Vault(connection, slots, self._keys.user_hash).renew_released()
                is_renewed = True

        try:
            renew()
        except StorageError as cause:
            if not (is_renewed and is_changed):
                done = (
                    f"the change of {self.name} is made, but the keys of what it erased"
                    if is_changed
                    else f"nothing was changed in {self.name}, since the keys of an earlier change that failed"
                )
                raise StorageError(
                    f"{done} still stand in {self._keys.place} ({cause}): the next change, or opening it again, "
                    "destroys them"
                ) from cause


def begin_store(
    connection: Connection, place: KeyPlace, master_key: MasterKey | None, copy_of: KeyFile | None
) -> KeyFile:
    """Make the key file of a new store, and note which it is, and whether the store is going to be a copy."""
    keys = KeyFile.create(place, master_key, copy_of)
    put_setting(connection, KEY_FILE, keys.file_id)
    if copy_of is not None:
        put_setting(connection, COPYING, copy_of.file_id)
    return keys


def check_copying(name: str, connection: Connection, copy_of: KeyFile | None) -> None:
    """Check that a store is no unfinished copy; with `copy_of`, that it is one of the memory with these keys.

    Raises:
        StorageError: it isn't.
    """
    copied = read_setting(connection, COPYING)
    if copied == (None if copy_of is None else copy_of.file_id):
        return
    if copy_of is None:
        raise StorageError(
            f"{name} is an unfinished copy of a memory: finish it with meve memory copy, or delete it and its keys"
        )
    if copied is None:
        raise StorageError(f"{name} holds a memory already: copy to a new file, or to another tenant")
    raise StorageError(f"{name} is an unfinished copy of another memory than this one: delete it and its keys")


def open_keys(database: Database, connection: Connection, place: KeyPlace, master_key: MasterKey | None) -> KeyFile:
    """Open the key file of a database, which a master key locks from now on; `connection` reads which file it is."""
    file_id = read_setting(connection, KEY_FILE) or ""
    keys = KeyFile.open(place, file_id, master_key)
    if not keys.is_settled:
        with database.writing(durable=False):  # one process at a time
            keys = KeyFile.open(place, file_id, master_key)
            if not keys.is_settled:
                keys.settle(master_key)
    keys.mark_used()
    return keys
