"""The tables of the memories in a PostgreSQL database. Each row belongs to a tenant, whose number begins each key."""

LOCK = 0x4D65564D  # "MeVM"
"""The number under which processes wait for each other while one creates the tables."""
VERSIONS = "meve_version"
TABLES = ("meta", "users", "free_slots", "log_names", "memories", "archive", "gone", "opinions", "audit", "audit_head")
"""The tables that hold rows of tenants, by the names that they have in an SQLite file; here, `meve_` precedes them."""

_TEXT = 'TEXT COLLATE "C"'  # compared and ordered by bytes, as in SQLite
_USER = 'tenant BIGINT NOT NULL, "user" BIGINT NOT NULL'
_OF_USER = 'FOREIGN KEY (tenant, "user") REFERENCES meve_users (tenant, no)'

SCHEMA = f"""
CREATE TABLE meve_tenants (
    no BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name {_TEXT} NOT NULL UNIQUE
);
CREATE TABLE meve_meta (
    tenant BIGINT NOT NULL,
    name {_TEXT} NOT NULL,
    value {_TEXT} NOT NULL,
    PRIMARY KEY (tenant, name)
);
CREATE SEQUENCE meve_users_no;
CREATE TABLE meve_users (
    tenant BIGINT NOT NULL,
    no BIGINT NOT NULL DEFAULT nextval('meve_users_no'),
    key {_TEXT} NOT NULL,
    version BIGINT NOT NULL DEFAULT 0,
    complete_from BIGINT NOT NULL DEFAULT 0,
    slot BIGINT,
    name BYTEA,
    PRIMARY KEY (tenant, no),
    UNIQUE (tenant, key)
);
CREATE TABLE meve_free_slots (
    tenant BIGINT NOT NULL,
    slot BIGINT NOT NULL,
    renewed BOOLEAN NOT NULL,
    PRIMARY KEY (tenant, slot)
);
CREATE INDEX meve_free_slots_released ON meve_free_slots (tenant, slot) WHERE NOT renewed;
CREATE TABLE meve_log_names (
    {_USER},
    id {_TEXT} NOT NULL,
    name BYTEA NOT NULL,
    PRIMARY KEY (tenant, "user", id),
    {_OF_USER}
);
CREATE SEQUENCE meve_memories_row;
CREATE TABLE meve_memories (
    {_USER},
    row BIGINT NOT NULL DEFAULT nextval('meve_memories_row'),
    changed BIGINT NOT NULL,
    slot BIGINT NOT NULL,
    sealed BYTEA NOT NULL,
    id {_TEXT} NOT NULL,
    session {_TEXT},
    superseded {_TEXT},
    derived {_TEXT} NOT NULL,
    hold BIGINT NOT NULL,
    kind {_TEXT} NOT NULL,
    source {_TEXT} NOT NULL,
    class {_TEXT} NOT NULL,
    created BIGINT NOT NULL,
    expires BIGINT,
    reflection DOUBLE PRECISION NOT NULL,
    touched BIGINT,
    used BIGINT,
    uses BIGINT NOT NULL,
    valid_from BIGINT,
    valid_to BIGINT,
    restored BIGINT,
    pinned BIGINT NOT NULL,
    archived BIGINT NOT NULL,
    version BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    model {_TEXT} NOT NULL,
    PRIMARY KEY (tenant, row),
    UNIQUE (tenant, "user", id),
    {_OF_USER}
);
CREATE INDEX meve_memories_changed ON meve_memories (tenant, "user", changed);
CREATE INDEX meve_memories_expire ON meve_memories (tenant, expires) WHERE expires IS NOT NULL;
CREATE INDEX meve_memories_derived ON meve_memories (tenant, "user") WHERE derived <> '[]';
CREATE INDEX meve_memories_superseded ON meve_memories (tenant, "user", superseded) WHERE superseded IS NOT NULL;
CREATE INDEX meve_memories_message ON meve_memories (tenant, "user", session, archived, row, expires)
    WHERE kind = 'message';
CREATE SEQUENCE meve_archive_rowid;
CREATE TABLE meve_archive (
    {_USER},
    rowid BIGINT NOT NULL DEFAULT nextval('meve_archive_rowid'),
    id {_TEXT} NOT NULL,
    slot BIGINT NOT NULL,
    expires BIGINT,
    body BYTEA NOT NULL,
    superseded {_TEXT},
    derived {_TEXT} NOT NULL,
    hold BIGINT NOT NULL,
    PRIMARY KEY (tenant, "user", id),
    UNIQUE (tenant, rowid),
    {_OF_USER}
);
CREATE INDEX meve_archive_expire ON meve_archive (tenant, expires) WHERE expires IS NOT NULL;
CREATE INDEX meve_archive_derived ON meve_archive (tenant, "user") WHERE derived <> '[]';
CREATE INDEX meve_archive_superseded ON meve_archive (tenant, "user", superseded) WHERE superseded IS NOT NULL;
CREATE TABLE meve_gone (
    {_USER},
    changed BIGINT NOT NULL,
    row BIGINT NOT NULL,
    PRIMARY KEY (tenant, "user", changed, row),
    {_OF_USER}
);
CREATE TABLE meve_opinions (
    {_USER},
    id {_TEXT} NOT NULL,
    name BYTEA NOT NULL,
    reflection DOUBLE PRECISION NOT NULL,
    touched BIGINT,
    used BIGINT,
    uses BIGINT NOT NULL,
    outcomes {_TEXT},
    PRIMARY KEY (tenant, "user", id),
    {_OF_USER}
);
CREATE INDEX meve_opinions_of ON meve_opinions (tenant, id);
CREATE TABLE meve_audit (
    tenant BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    "user" {_TEXT} NOT NULL,
    record {_TEXT} NOT NULL,
    action {_TEXT} NOT NULL,
    reason {_TEXT} NOT NULL,
    detail {_TEXT} NOT NULL,
    digest BYTEA NOT NULL,
    PRIMARY KEY (tenant, seq)
);
CREATE INDEX meve_audit_record ON meve_audit (tenant, "user", record, seq);
CREATE INDEX meve_audit_action ON meve_audit (tenant, action, at);
CREATE TABLE meve_audit_head (
    tenant BIGINT NOT NULL,
    one INTEGER NOT NULL CHECK (one = 1),
    seq BIGINT NOT NULL,
    digest BYTEA NOT NULL,
    seal BYTEA NOT NULL,
    PRIMARY KEY (tenant, one)
)
"""
WALLS = (
    "ALTER TABLE meve_{table} ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE meve_{table} FORCE ROW LEVEL SECURITY",  # for the owner too
    "CREATE POLICY meve_tenant ON meve_{table} "
    "USING (tenant = nullif(current_setting('meve.tenant', TRUE), '')::BIGINT)",
)
"""Let a transaction see and write the rows of the tenant that it has set, and none without one."""


MIGRATIONS: tuple[list[str], ...] = (
    [*SCHEMA.split(";"), *(wall.format(table=table) for table in TABLES for wall in WALLS)],
    [],  # what is sealed of a record also holds its outline
)
"""From an empty schema to version 1, from 1 to 2, and so on. One that changes rows must lift the walls first, since
they hide the rows of all tenants from it."""
