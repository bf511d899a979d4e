"""The PostgreSQL back end of a memory: a database that many processes share, and the keys of its content elsewhere."""

from pathlib import Path
from typing import Self

from meve._postgres import is_postgres_url
from meve.errors import ConfigurationError
from meve.memory.stores._sql.key_file import KeyFile
from meve.memory.stores._sql.key_place import FilePlace, KeyPlace
from meve.memory.stores._sql.master_key import MasterKey, check_master_key
from meve.memory.stores._sql.store import KEY_FILE, SqlStore, begin_store, check_copying, open_keys
from meve.memory.stores._sql.vault import read_setting
from meve.memory.stores.postgresql._database import TenantDatabase
from meve.memory.stores.postgresql._key_table import TablePlace

DEFAULT_TENANT = "default"


class PostgresStore(SqlStore):
    """See `meve.memory.stores.protocol.MemoryStore`.

    Args:
        database: one tenant's part of a database.
        keys: the keys of its content.
    """

    readers = 4
    """The number of async reads that wait for the server at once."""

    def __init__(self, database: TenantDatabase, keys: KeyFile) -> None:
        super().__init__(database, keys)
        self._tenant_database = database

    @classmethod
    def open(
        cls,
        url: str,
        *,
        key_file: str | Path,
        tenant: str = DEFAULT_TENANT,
        master_key: MasterKey | None = None,
        accept_older: bool = False,
        copy_of: KeyFile | None = None,
    ) -> Self:
        """Open a tenant's memory in a database, or create it.

        Args:
            url: `postgresql://user@host:port/database`.
            key_file: the file with the keys of the records, created with the memory; its folder must exist. All
                processes that use the memory need this same file. Or the URL of a database on another server, which
                processes on several machines can use; there, what is erased is gone only once that server has cleaned
                its tables and its log.
            tenant: whose memory. Tenants share the tables of a database, and nothing else.
            master_key: locks the key file, from then on.
            accept_older: open a database that is older than its keys: see `SqliteStore.open`.
            copy_of: begin or go on with a copy of the memory with these keys, instead of opening a whole one.

        Raises:
            ConfigurationError: an invalid URL, tenant or master key, or keys on the server of the memory itself.
            StorageError: the database can't be used, or is of another version.
            KeyFileError: the key file is missing, belongs to another memory, is locked with another master key, or is
                older or newer than the database.
            MissingExtraError: psycopg isn't installed.
        """
        check_master_key(master_key)
        if not isinstance(tenant, str) or not tenant.strip() or not tenant.isprintable():
            raise ConfigurationError(f"tenant must be a name of printable characters, got {tenant!r:.80}")
        place = _find_place(key_file)
        try:
            database = TenantDatabase(url, tenant)
        except BaseException:
            place.close()
            raise
        try:
            if isinstance(place, TablePlace) and place.server() == database.server():
                raise ConfigurationError(
                    "key_file must be a file, or a database on another server than the memory's, got one on the same "
                    "server: its log and its backups would hold the keys of what was erased beside the content"
                )
            with database.writing() as connection:
                if read_setting(connection, KEY_FILE) is None:
                    begin_store(connection, place, master_key, copy_of)
            with database.reading() as connection:
                check_copying(database.name, connection, copy_of)
                keys = open_keys(database, connection, place, master_key)
        except BaseException:
            database.close()
            place.close()
            raise
        store = cls(database, keys)
        store.recover(accept_older=accept_older)
        return store

    def size(self) -> int:
        """Return the size of the tenant's rows and of the keys in bytes."""
        with self._keys.place.open("rb") as keys:
            return self._tenant_database.size() + keys.size()


def _find_place(key_file: str | Path) -> KeyPlace:
    """Return where keys stand."""
    if isinstance(key_file, str) and is_postgres_url(key_file):
        return TablePlace(key_file)
    path = Path(key_file).resolve()
    if not path.parent.is_dir():
        raise ConfigurationError(f"key_file must stand in a folder that exists, got {str(key_file)!r:.200}")
    return FilePlace(path)
