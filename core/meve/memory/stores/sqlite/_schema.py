"""The tables of a memory's file, and the migrations of older files.

A new file gets the newest tables at once. All migrations that an older one needs are one transaction, so that a crash
leaves a file of its old version or of the newest.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache
from typing import NamedTuple

from meve.errors import StoreCorruptError, StoreVersionError
from meve.memory.stores.sqlite._older_rows import repack_version_3, repack_version_4, repack_version_5, superseded_by

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE users (
        no INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        version INTEGER NOT NULL DEFAULT 0,
        complete_from INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE TABLE memories (
        row INTEGER PRIMARY KEY AUTOINCREMENT,
        user INTEGER NOT NULL REFERENCES users (no),
        id TEXT NOT NULL,
        text TEXT NOT NULL,
        source TEXT NOT NULL,
        class TEXT NOT NULL,
        created INTEGER NOT NULL,
        expires INTEGER,
        session TEXT,
        tags TEXT NOT NULL,
        metadata TEXT NOT NULL,
        reflection REAL NOT NULL,
        touched INTEGER,
        used INTEGER,
        uses INTEGER NOT NULL,
        superseded TEXT,
        flagged TEXT NOT NULL,
        hold TEXT NOT NULL,
        derived TEXT NOT NULL,
        version INTEGER NOT NULL,
        changed INTEGER NOT NULL,
        tokens INTEGER NOT NULL,
        vector BLOB NOT NULL,
        UNIQUE (user, id)
    ) STRICT;
    CREATE INDEX memories_changed ON memories (user, changed);
    CREATE INDEX memories_expire ON memories (expires) WHERE expires IS NOT NULL;
    CREATE TABLE gone (
        user INTEGER NOT NULL REFERENCES users (no),
        changed INTEGER NOT NULL,
        row INTEGER NOT NULL,
        PRIMARY KEY (user, changed, row)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE opinions (
        user INTEGER NOT NULL REFERENCES users (no),
        id TEXT NOT NULL,
        reflection REAL NOT NULL,
        touched INTEGER,
        used INTEGER,
        uses INTEGER NOT NULL,
        PRIMARY KEY (user, id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX opinions_of ON opinions (id);
    CREATE TABLE archive (
        user INTEGER NOT NULL REFERENCES users (no),
        id TEXT NOT NULL,
        expires INTEGER,
        hold INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (user, id)
    ) STRICT;
    CREATE INDEX archive_expire ON archive (expires) WHERE expires IS NOT NULL;
    CREATE TABLE audit (
        seq INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        user TEXT NOT NULL,
        record TEXT NOT NULL,
        action TEXT NOT NULL,
        reason TEXT NOT NULL,
        detail TEXT NOT NULL,
        digest BLOB NOT NULL
    ) STRICT;
    CREATE INDEX audit_record ON audit (user, record, seq);
    CREATE INDEX audit_action ON audit (action, at);
    CREATE TABLE audit_head (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, digest BLOB NOT NULL,
        seal BLOB NOT NULL) STRICT;
    """,
    """
    CREATE INDEX memories_derived ON memories (user) WHERE derived <> '[]';
    ALTER TABLE archive ADD COLUMN derived TEXT;
    CREATE INDEX archive_derived ON archive (user) WHERE derived IS NULL OR derived <> '[]';
    """,  # of records archived before, only the compressed body says what they are derived from
    """
    CREATE INDEX memories_message ON memories (user, session, tags, row, expires) WHERE source = 'message';
    """,
    """
    ALTER TABLE memories ADD COLUMN kind TEXT NOT NULL DEFAULT 'fact';
    ALTER TABLE memories ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
    UPDATE memories SET kind = source WHERE source IN ('item', 'message', 'summary');
    UPDATE memories SET archived = 1, tags = '[]' WHERE kind = 'message' AND tags = '["archived"]';
    UPDATE archive SET body = repack_version_3(body);
    DROP INDEX memories_message;
    CREATE INDEX memories_message ON memories (user, session, archived, row, expires) WHERE kind = 'message';
    """,
    """
    ALTER TABLE memories ADD COLUMN valid_from INTEGER;
    ALTER TABLE memories ADD COLUMN valid_to INTEGER;
    ALTER TABLE memories ADD COLUMN restored INTEGER;
    ALTER TABLE memories ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
    UPDATE memories SET valid_to = coalesce(
        (SELECT max(by.created, memories.created) FROM memories AS by
         WHERE by.user = memories.user AND by.id = memories.superseded),
        created) WHERE superseded IS NOT NULL;
    CREATE INDEX memories_superseded ON memories (user, superseded) WHERE superseded IS NOT NULL;
    ALTER TABLE archive ADD COLUMN superseded TEXT;
    UPDATE archive SET superseded = superseded_by(body), body = repack_version_4(body);
    CREATE INDEX archive_superseded ON archive (user, superseded) WHERE superseded IS NOT NULL;
    """,
    """
    ALTER TABLE memories ADD COLUMN model TEXT NOT NULL DEFAULT '';
    UPDATE memories SET model = coalesce((SELECT value FROM meta WHERE name = 'embedder'), '');
    ALTER TABLE memories ADD COLUMN passages BLOB NOT NULL DEFAULT x'';
    UPDATE archive SET body = repack_version_5(body, coalesce((SELECT value FROM meta WHERE name = 'embedder'), ''));
    """,  # maintenance embeds the passages of long records
    """
    DROP INDEX memories_changed;
    DROP INDEX memories_expire;
    DROP INDEX memories_derived;
    DROP INDEX memories_message;
    DROP INDEX memories_superseded;
    ALTER TABLE memories RENAME TO plain_memories;
    ALTER TABLE archive RENAME TO plain_archive;
    ALTER TABLE opinions RENAME TO plain_opinions;
    ALTER TABLE users ADD COLUMN slot INTEGER;
    ALTER TABLE users ADD COLUMN name BLOB;
    CREATE TABLE free_slots (slot INTEGER PRIMARY KEY, renewed INTEGER NOT NULL) STRICT;
    CREATE TABLE log_names (
        user INTEGER NOT NULL REFERENCES users (no),
        id TEXT NOT NULL,
        name BLOB NOT NULL,
        PRIMARY KEY (user, id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX free_slots_released ON free_slots (slot) WHERE NOT renewed;
    CREATE TABLE memories (
        row INTEGER PRIMARY KEY AUTOINCREMENT,
        user INTEGER NOT NULL REFERENCES users (no),
        changed INTEGER NOT NULL,
        slot INTEGER NOT NULL,
        sealed BLOB NOT NULL,
        id TEXT NOT NULL,
        session TEXT,
        superseded TEXT,
        derived TEXT NOT NULL,
        hold INTEGER NOT NULL,
        kind TEXT NOT NULL,
        source TEXT NOT NULL,
        class TEXT NOT NULL,
        created INTEGER NOT NULL,
        expires INTEGER,
        reflection REAL NOT NULL,
        touched INTEGER,
        used INTEGER,
        uses INTEGER NOT NULL,
        valid_from INTEGER,
        valid_to INTEGER,
        restored INTEGER,
        pinned INTEGER NOT NULL,
        archived INTEGER NOT NULL,
        version INTEGER NOT NULL,
        tokens INTEGER NOT NULL,
        model TEXT NOT NULL,
        UNIQUE (user, id)
    ) STRICT;
    CREATE TABLE archive (
        user INTEGER NOT NULL REFERENCES users (no),
        id TEXT NOT NULL,
        slot INTEGER NOT NULL,
        expires INTEGER,
        body BLOB NOT NULL,
        superseded TEXT,
        derived TEXT NOT NULL,
        hold INTEGER NOT NULL,
        PRIMARY KEY (user, id)
    ) STRICT;
    CREATE TABLE opinions (
        user INTEGER NOT NULL REFERENCES users (no),
        id TEXT NOT NULL,
        name BLOB NOT NULL,
        reflection REAL NOT NULL,
        touched INTEGER,
        used INTEGER,
        uses INTEGER NOT NULL,
        PRIMARY KEY (user, id)
    ) STRICT, WITHOUT ROWID;
    SELECT seal_rows();
    DROP TABLE plain_memories;
    DROP TABLE plain_archive;
    DROP TABLE plain_opinions;
    CREATE INDEX memories_changed ON memories (user, changed);
    CREATE INDEX memories_expire ON memories (expires) WHERE expires IS NOT NULL;
    CREATE INDEX memories_derived ON memories (user) WHERE derived <> '[]';
    CREATE INDEX memories_superseded ON memories (user, superseded) WHERE superseded IS NOT NULL;
    CREATE INDEX memories_message ON memories (user, session, archived, row, expires) WHERE kind = 'message';
    CREATE INDEX archive_expire ON archive (expires) WHERE expires IS NOT NULL;
    CREATE INDEX archive_derived ON archive (user) WHERE derived <> '[]';
    CREATE INDEX archive_superseded ON archive (user, superseded) WHERE superseded IS NOT NULL;
    CREATE INDEX opinions_of ON opinions (id);
    """,  # the content is sealed: see `_key_file`
    """
    ALTER TABLE opinions ADD COLUMN outcomes TEXT;
    """,  # what is sealed of a record also holds its outcomes
    "",  # and its outline
)
"""From an empty file to version 1, from 1 to 2, and so on."""
_SEAL = "SELECT seal_rows()"
"""The statement in place of which `migrate` calls its argument `seal_rows`."""
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
_STATEMENTS = "SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY type DESC, rowid"


def migrate(connection: sqlite3.Connection, file: str, seal_rows: Callable[[sqlite3.Connection], None]) -> None:
    """Bring a file to the newest version, also an empty one.

    Args:
        connection: in autocommit mode.
        file: its name in error messages.
        seal_rows: makes the key file, and moves rows from the tables `plain_…`, if there are any, to those of the same
            name without it.

    Raises:
        StoreVersionError: the file has a newer version.
    """
    _add_functions(connection)
    version = _version(connection)
    if version < len(MIGRATIONS):
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = _version(connection)  # another process may have done it meanwhile
            for statement in _pending_statements(version):
                if statement.strip() == _SEAL:
                    seal_rows(connection)
                elif statement.strip():
                    connection.execute(statement)
            version = max(version, len(MIGRATIONS))
            connection.execute(f"PRAGMA user_version = {version}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
    if version > len(MIGRATIONS):
        raise StoreVersionError(
            f"{file} is of version {version}, and this meve knows versions up to {len(MIGRATIONS)}: upgrade meve"
        )


def _pending_statements(version: int) -> list[str]:
    """Return the statements that bring a file of a version to the newest."""
    if version == 0:
        return [*_model(len(MIGRATIONS)).statements, _SEAL]
    return ";".join(MIGRATIONS[version:]).split(";")


def _add_functions(connection: sqlite3.Connection) -> None:
    """Let a connection call the functions of the migrations."""
    for function in (repack_version_3, repack_version_4, superseded_by):
        connection.create_function(function.__name__, 1, function, deterministic=True)
    connection.create_function("repack_version_5", 2, repack_version_5, deterministic=True)
    connection.create_function("seal_rows", 0, lambda: None)


def check_ours(connection: sqlite3.Connection, file: str) -> None:
    """Check that a file is empty, or a memory's of its version, without changing it.

    Raises:
        StoreCorruptError: it is another database, or somebody added triggers, views, virtual tables or columns, or
            tables and indices that can prevent a change.
    """
    connection.execute("BEGIN")
    try:
        version = _version(connection)
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        foreign = bool(tables) if not version else "audit_head" not in tables
        unknown = [] if foreign or not 0 < version <= len(MIGRATIONS) else _unknown_parts(connection, version)
    finally:
        connection.execute("ROLLBACK")
    if foreign:
        raise StoreCorruptError(f"{file} is a database, but no memory: choose another path for the memory")
    if unknown:
        raise StoreCorruptError(
            f"{file} holds {unknown[0]!r:.80}, which meve didn't make: remove it, or restore the file from a copy"
        )


def _unknown_parts(connection: sqlite3.Connection, version: int) -> list[str]:
    """Return triggers, views, virtual tables, changed tables, and what can prevent a change, that no migration made."""
    model = _model(version)
    parts = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE type IN ('trigger', 'view', 'table')")
    unknown = [
        f"{kind} {name}"
        for kind, name, sql in parts.fetchall()
        if kind != "table" or str(sql).split()[1:2] == ["VIRTUAL"]
    ]
    unknown += [f"table {name}" for name, known in model.columns.items() if _columns(connection, name) != known]
    ours = tuple(f" of {name}" for name in model.columns)
    return unknown + sorted(each for each in _obstacles(connection) - model.obstacles if each.endswith(ours))


class _Model(NamedTuple):
    """The parts of a file of one version: the statements that make it, the columns of each table, and `_obstacles`."""

    statements: list[str]
    columns: dict[str, list[tuple[object, ...]]]
    obstacles: set[str]


@cache
def _model(version: int) -> _Model:
    """Return what the migrations up to a version make."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        _add_functions(model)
        for migration in MIGRATIONS[:version]:
            model.executescript(migration)
        return _Model(
            statements=[sql for (sql,) in model.execute(_STATEMENTS)],
            columns={name: _columns(model, name) for (name,) in model.execute(_TABLES)},
            obstacles=_obstacles(model),
        )


def _obstacles(connection: sqlite3.Connection) -> set[str]:
    """Return what can let a change of a table fail: foreign keys to it, and indices that are unique, or compute."""
    keys = f"""SELECT 'table ' || t.name || ', a foreign key of ' || lower(k."table")
        FROM ({_TABLES}) AS t, pragma_foreign_key_list(t.name) AS k"""
    indices = f"""SELECT DISTINCT 'index ' || i.name || ' of ' || t.name
        FROM ({_TABLES}) AS t, pragma_index_list(t.name) AS i, pragma_index_info(i.name) AS c
        WHERE i."unique" OR i.partial OR c.cid = -2"""
    return {str(name) for (name,) in connection.execute(f"{keys} UNION ALL {indices}")}


def _columns(connection: sqlite3.Connection, table: str) -> list[tuple[object, ...]]:
    """Return name, type, constraints, default and kind of each column, generated ones included."""
    return connection.execute(f"PRAGMA table_xinfo({table})").fetchall()


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
