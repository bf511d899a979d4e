"""Chooses the back end of a memory: an SQLite file, a PostgreSQL database, or a store of the caller's own."""

from pathlib import Path

from meve._postgres import is_postgres_url, without_password
from meve.errors import ConfigurationError, StorageError
from meve.memory.stores._sql.key_file import KeyFile
from meve.memory.stores._sql.master_key import MasterKey
from meve.memory.stores.postgresql._database import has_tenant
from meve.memory.stores.postgresql.store import DEFAULT_TENANT, PostgresStore
from meve.memory.stores.protocol import MemoryStore
from meve.memory.stores.sqlite.store import SqliteStore


def locate(file: str | Path | None, key_file: str | Path | None, tenant: str | None) -> dict[str, str]:
    """Return the arguments that open a memory again, without a password; empty for a store of the caller's own."""
    if file is None:
        return {}
    if key_file is None:
        return {"file": str(Path(file).resolve())}
    is_url = isinstance(key_file, str) and is_postgres_url(key_file)
    keys = without_password(str(key_file)) if is_url else str(Path(key_file).resolve())
    name = DEFAULT_TENANT if tenant is None else tenant
    return {"file": without_password(str(file)), "key_file": keys, "tenant": name}


def open_store(
    file: str | Path | None,
    store: MemoryStore | None,
    *,
    key_file: str | Path | None,
    tenant: str | None,
    master_key: MasterKey | None,
    accept_older: bool,
    copy_of: KeyFile | None = None,
) -> MemoryStore:
    """Open the back end; see `GovernedMemory.open`. With `copy_of`, one that is going to be a copy."""
    if (file is None) == (store is None):
        raise ConfigurationError(f"give exactly one of file and store, got {'neither' if file is None else 'both'}")
    if not isinstance(file, str | Path | None) or "\x00" in str(file):
        raise ConfigurationError(f"file must be a path or a PostgreSQL URL, got {file!r:.80}")
    if not isinstance(accept_older, bool):
        raise ConfigurationError(f"accept_older must be True or False, got {accept_older!r:.40}")
    if isinstance(file, str) and is_postgres_url(file):
        if key_file is None:
            raise ConfigurationError(
                "a memory in a PostgreSQL database needs key_file (meve memory --key-file, or MEVE_KEY_FILE): the "
                "path of a file for the keys of its records, or the URL of a database on another server"
            )
        return PostgresStore.open(
            file,
            key_file=key_file,
            tenant=DEFAULT_TENANT if tenant is None else tenant,
            master_key=master_key,
            accept_older=accept_older,
            copy_of=copy_of,
        )
    if key_file is not None or tenant is not None:
        raise ConfigurationError(
            "key_file and tenant are for a memory in a PostgreSQL database; an SQLite file has its keys beside it"
        )
    if file is not None:
        return SqliteStore.open(file, master_key=master_key, accept_older=accept_older, copy_of=copy_of)
    if not hasattr(store, "writing"):
        raise ConfigurationError(
            f"store must be a MemoryStore (meve.memory.stores.protocol), got {store!r:.60}; pass a path as file"
        )
    assert store is not None
    return store


def check_exists(file: str, tenant: str | None) -> None:
    """Check that there is a memory in a file, or of a tenant in a PostgreSQL database, without creating one.

    Raises:
        StorageError: there is none, or the database can't be used.
    """
    if is_postgres_url(file):
        name = DEFAULT_TENANT if tenant is None else tenant
        if not has_tenant(file, name):
            raise StorageError(
                f"there is no memory of tenant {name!r} in that database: check URL and tenant, or create one with "
                "meve memory add"
            )
    elif not Path(file).exists():
        raise StorageError(f"there is no memory at {file}: check the path, or create one with meve memory add")
