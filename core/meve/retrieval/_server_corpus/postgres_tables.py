"""Set up a PostgreSQL database for collections: the table that lists them, and pgvector."""

from typing import Any

from meve._postgres import PostgresDatabase
from meve.errors import ConfigurationError, StorageError

LOCK, VERSION = 0x6D657665_63, 1
NEWEST = (0, 8)
"""The first version of pgvector that goes on searching the graph when a filter leaves too few."""
_TABLES = (
    "CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public",
    "CREATE TABLE meve_corpora (name TEXT COLLATE \"C\" PRIMARY KEY, number INTEGER GENERATED ALWAYS AS IDENTITY, "
    "about JSONB NOT NULL, passages BIGINT NOT NULL DEFAULT 0, words BIGINT NOT NULL DEFAULT 0, "
    "names TEXT[] NOT NULL DEFAULT '{}')",
)  # fmt: skip


def open_tables(database: PostgresDatabase) -> str:
    """Create the table and the extension if they are missing, and return the schema that pgvector is in, quoted.

    Raises:
        StorageError: the database can't be used, or pgvector can't be created in it.
        ConfigurationError: an older pgvector.
    """
    database.check()
    try:
        found = database.migrate(LOCK, "meve_corpora_version", [_TABLES])
    except StorageError as error:
        if _find_pgvector(database):
            raise
        raise StorageError(
            f"{database.name} lacks pgvector ({error}): install it on the server if it isn't there, and let a "
            "superuser run CREATE EXTENSION vector in this database"
        ) from error
    if found != VERSION:
        raise StorageError(f"{database.name} has corpora of version {found}, not {VERSION}: update meve")
    ((schema, version),) = _find_pgvector(database) or [("", "0")]
    if tuple(int(part) for part in version.split(".")[:2]) < NEWEST:
        raise ConfigurationError(
            f"{database.name} must have pgvector 0.8 or newer, got {version}: let a superuser run ALTER EXTENSION "
            "vector UPDATE in it, after an update of pgvector on the server"
        )
    return str(schema)


def _find_pgvector(database: PostgresDatabase) -> list[tuple[Any, ...]]:
    """Return schema and version of pgvector in a database; empty if it isn't there."""
    return database.query(
        "SELECT quote_ident(nspname), extversion FROM pg_extension e JOIN pg_namespace n ON n.oid = extnamespace "
        "WHERE extname = 'vector'"
    )
