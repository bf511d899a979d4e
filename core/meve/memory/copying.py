"""Copies a whole memory to another file or database."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from meve._postgres import is_postgres_url
from meve.errors import ConfigurationError
from meve.memory._audit.chain import AuditChain, AuditHead, AuditVerification
from meve.memory.stores._opening import check_exists, open_store
from meve.memory.stores._record_store import RecordStore
from meve.memory.stores._sql.copying import Progress, StoreCopier
from meve.memory.stores._sql.key_file import KeyFile
from meve.memory.stores._sql.master_key import MasterKey
from meve.memory.stores._sql.store import SqlStore


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlace:
    """The file or URL of a memory, and what opens it; see `GovernedMemory.open`."""

    file: str | Path
    """The path of an SQLite file, or `postgresql://user@host:port/database`."""
    key_file: str | Path | None = None
    """For PostgreSQL, the file with the keys, or the URL of a database on another server."""
    tenant: str | None = None
    """For PostgreSQL, whose memory; `default` by default."""
    master_key: MasterKey | None = None
    """Locks the key file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyReport:
    """What was copied."""

    users: int
    """Users that have a record, without the shared space."""
    records: int
    """Records that aren't archived."""
    archived: int
    head: AuditHead
    """The end of the log, in both memories."""
    verification: AuditVerification
    """The verification of the copy."""


def copy_memory(
    source: MemoryPlace,
    target: MemoryPlace,
    *,
    audit_key: bytes | None = None,
    progress: Progress | None = None,
) -> CopyReport:
    """Copy a whole memory: users, records with their history, archive, scores, holds, settings and the audit log.

    The source stays as it is, and may be used meanwhile; its writers wait while the last changes are copied. What is
    erased in it until then isn't in the target. If the call is stopped, the next one goes on, and until then the target
    can't be opened. Each record gets a new key in the target's key file.

    Args:
        source: an existing memory.
        target: a new file, or a tenant that has no memory; or an unfinished copy of this source.
        audit_key: the key that signs the log.
        progress: called after each step with what is copied (`users` or `log entries`), how much is done, and how much
            there is.

    Raises:
        StorageError: there is no source, the target holds another memory, or one of them can't be used.
        AuditError: another key signs the log, or the source or the copy doesn't verify.
        StoreCorruptError: a record of the source can't be read.
        KeyFileError: a key file is missing, locked with another master key, or older than the database.
        ConfigurationError: an invalid place.
    """
    for name, place in (("source", source), ("target", target)):
        if is_postgres_url(place.file) and place.key_file is None:
            raise ConfigurationError(
                f"the {name} is in a PostgreSQL database, and needs key_file (--{name}-key-file, or "
                f"MEVE_{name.upper()}_KEY_FILE): the path of a file for the keys of its records"
            )
    check_exists(str(source.file), source.tenant)
    with closing(_open(source)) as original:
        chain = AuditChain(audit_key, names_key=original.names_key)
        RecordStore.open(original, chain)
        with closing(_open(target, original.keys)) as copy:
            verification = StoreCopier(original, copy, chain, progress).copy()
            store = RecordStore(copy, chain)
            counts = store.counts()
            return CopyReport(
                users=counts.users,
                records=counts.records,
                archived=counts.archived,
                head=store.head(),
                verification=verification,
            )


def _open(place: MemoryPlace, copy_of: KeyFile | None = None) -> SqlStore:
    store = open_store(
        place.file,
        None,
        key_file=place.key_file,
        tenant=place.tenant,
        master_key=place.master_key,
        accept_older=False,
        copy_of=copy_of,
    )
    assert isinstance(store, SqlStore)
    return store
