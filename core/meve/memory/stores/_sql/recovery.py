"""Brings a database and its key file back into agreement when it is opened."""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress

from meve.errors import KeyFileError
from meve.memory.stores._sql.database import Connection, Database
from meve.memory.stores._sql.key_file import CHANGES, MARK, RENEWALS, KeyFile
from meve.memory.stores._sql.vault import KEY_CHANGES, KEY_RENEWALS, KEYS_SEEN, SLOTS, Vault, read_number

_LOGGER = logging.getLogger("meve")
_SEALED = {"memories": ("row", "sealed"), "archive": ("rowid", "body")}
"""By table, the columns of a record's number and of what is sealed."""

Sealed = tuple[str, int]
"""The table and the number of a user or a record."""


def recover(database: Database, keys: KeyFile, *, accept_older: bool = False) -> bool:
    """Check that a database and its key file are of one time. Return whether keys are to be destroyed.

    Args:
        database: the database.
        keys: the key file.
        accept_older: take an older copy of the database: remove what has no key, and release the keys of what isn't
            stored.

    Raises:
        KeyFileError: one of the two is older than the other.
    """
    with suppress(KeyFileError), database.reading() as connection, keys.slots() as slots:
        vault = Vault(connection, slots, keys.user_hash)
        if _agrees(vault, keys):
            return vault.has_released()
    with database.writing() as connection, keys.slots() as slots:  # others may have erased between the two readings
        vault = Vault(connection, slots, keys.user_hash)
        if not _agrees(vault, keys):
            if not accept_older:
                raise KeyFileError(
                    f"{database.name} is older than {keys.place.name}: it is a copy from before an erasure. Restore "
                    "the newest copy of the database. To go on with this one, open it with accept_older=True (meve "
                    "memory --accept-older), which destroys the keys of what was added since"
                )
            _reconcile(vault)
        return vault.has_released()


def _agrees(vault: Vault, keys: KeyFile) -> bool:
    """Return whether the files agree; if not, the database is older. Raise KeyFileError if the key file is."""
    intended, seen, given = (read_number(vault.connection, name) for name in (KEY_CHANGES, KEYS_SEEN, SLOTS))
    changes, has_released = vault.slots.noted(CHANGES), vault.has_released()
    is_between = changes == seen and has_released  # a process was stopped before it destroyed them
    lacks_renewal = vault.slots.noted(RENEWALS) < read_number(vault.connection, KEY_RENEWALS) and not has_released
    if (changes < intended and not is_between) or lacks_renewal or given > vault.slots.count():
        raise KeyFileError(
            f"{keys.place} is older than the memory, and lacks keys of it: restore the newest copy of it"
        )
    return changes <= intended


def find_suspects(vault: Vault) -> list[Sealed]:
    """Return the users and records whose key seems to be missing or damaged; others may destroy keys meanwhile."""
    users = vault.connection.execute("SELECT no FROM users WHERE tenant = :tenant AND slot IS NOT NULL").fetchall()
    lost = [("users", no) for (no,) in users if vault.owner_of(no) is None]
    rows = _sealed_rows(vault.connection)
    return lost + [(table, row) for table, row, _, slot, begin in rows if not vault.slots.fits(slot, begin)]


def describe_lost(vault: Vault, suspects: Iterable[Sealed]) -> list[str]:
    """Return of which of these users and records the key is missing or damaged, in words; empty for none.

    Call it in a write transaction: in another one, keys may be destroyed meanwhile.
    """
    lost = Counter("users" if table == "users" else "records" for table, row in suspects if _is_lost(vault, table, row))
    return [
        f"the keys of {count} {what} are missing or damaged: restore both files from a copy, or erase them with "
        "forget_user"
        for what, count in lost.items()
    ]


def _is_lost(vault: Vault, table: str, row: int) -> bool:
    if table == "users":
        query = "SELECT 1 FROM users WHERE tenant = :tenant AND no = ? AND slot IS NOT NULL"
        return vault.connection.execute(query, (row,)).fetchone() is not None and vault.owner_of(row) is None
    place, sealed = _SEALED[table]
    query = f"SELECT slot, substr({sealed}, 1, {MARK}) FROM {table} WHERE tenant = :tenant AND {place} = ?"
    found = vault.connection.execute(query, (row,)).fetchone()
    return found is not None and not vault.slots.fits(found[0], found[1] or b"")


def _sealed_rows(connection: Connection) -> Iterator[tuple[str, int, int, int, bytes]]:
    """Yield table, row, user and slot of each record, and how it begins."""
    for table, (place, sealed) in _SEALED.items():
        query = f"SELECT {place}, user, slot, substr({sealed}, 1, {MARK}) FROM {table} WHERE tenant = :tenant"
        with connection.lend_rows(query) as rows:
            yield from ((table, row, user, slot, begin or b"") for row, user, slot, begin in rows)


def _reconcile(vault: Vault) -> None:
    connection, slots = vault.connection, vault.slots
    used: set[int] = set()
    gone = 0
    for no, slot, name in connection.execute(
        "SELECT no, slot, name FROM users WHERE tenant = :tenant AND slot IS NOT NULL"
    ).fetchall():
        if slots.fits(slot, name):
            used.add(slot)
        else:  # whoever it was, was forgotten
            for table in ("memories", "archive", "opinions"):
                connection.execute(f"DELETE FROM {table} WHERE tenant = :tenant AND user = ?", (no,))
            connection.execute(
                "UPDATE users SET slot = NULL, name = NULL, version = version + 1 WHERE tenant = :tenant AND no = ?",
                (no,),
            )
    for table, row, user, slot, begin in list(_sealed_rows(connection)):
        if slots.fits(slot, begin):
            used.add(slot)
            continue
        gone += 1
        connection.execute(f"DELETE FROM {table} WHERE tenant = :tenant AND {_SEALED[table][0]} = ?", (row,))
        connection.execute(
            "UPDATE users SET version = version + 1, complete_from = version + 1 WHERE tenant = :tenant AND no = ?",
            (user,),
        )
    given = read_number(connection, SLOTS)
    connection.execute("DELETE FROM free_slots WHERE tenant = :tenant")
    vault.release(sorted(set(range(given)) - used))
    vault.note_released()
    if gone:
        _LOGGER.warning("%d records whose keys had been destroyed were removed from the memory", gone)
