"""Brings a database and its key file back into agreement when it is opened."""

import logging
import sqlite3
from collections.abc import Iterable

from meve._sqlite import Connections
from meve.errors import KeyFileError
from meve.memory.stores.sqlite._key_file import KeyFile, Slots
from meve.memory.stores.sqlite._vault import KEY_CHANGES, SLOTS, Vault, read_setting

_LOGGER = logging.getLogger("meve")


def recover(connections: Connections, keys: KeyFile) -> bool:
    """Remove what has no key, and release the keys of what isn't stored. Return whether keys are to be renewed.

    Both happen only if the two files disagree: a process was stopped between them, or one of them is a copy from
    another time.

    Raises:
        KeyFileError: the key file is older than the database.
    """
    with connections.reading() as connection, keys.slots() as slots:
        if _agrees(connection, slots, keys):
            return _has_released(connection)
    with connections.writing() as connection, keys.slots() as slots:
        if not _agrees(connection, slots, keys):
            _reconcile(Vault(connection, slots, keys.user_hash))
        return _has_released(connection)


def _agrees(connection: sqlite3.Connection, slots: Slots, keys: KeyFile) -> bool:
    known, given = (int(read_setting(connection, name) or 0) for name in (KEY_CHANGES, SLOTS))
    changes = slots.changes()
    if known > changes or given > slots.count():
        raise KeyFileError(f"{keys.path} is older than the memory, and lacks keys of it: restore the newest copy of it")
    return known == changes


def _has_released(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM free_slots WHERE NOT renewed LIMIT 1").fetchone() is not None


def _reconcile(vault: Vault) -> None:
    connection, slots = vault.connection, vault.slots
    slots.expect()
    used: set[int] = set()
    gone = 0
    for no, slot, name in connection.execute("SELECT no, slot, name FROM users WHERE slot IS NOT NULL").fetchall():
        if slots.fits(slot, name):
            used.add(slot)
        else:  # whoever it was, was forgotten
            for table in ("memories", "archive", "opinions"):
                connection.execute(f"DELETE FROM {table} WHERE user = ?", (no,))
            connection.execute("UPDATE users SET slot = NULL, name = NULL, version = version + 1 WHERE no = ?", (no,))
    for table, sealed in (("memories", "sealed"), ("archive", "body")):
        rows = connection.execute(f"SELECT rowid, user, slot, substr({sealed}, 1, 16) FROM {table}").fetchall()
        missing = [(row, user) for row, user, slot, begin in rows if not slots.fits(slot, begin)]
        used.update(slot for _, _, slot, begin in rows if slots.fits(slot, begin))
        gone += len(missing)
        _remove(connection, table, missing)
    given = int(read_setting(connection, SLOTS) or 0)
    connection.execute("DELETE FROM free_slots")
    vault.release(sorted(set(range(given)) - used))
    vault.note_changes()
    if gone:
        _LOGGER.warning("%d records whose keys had been destroyed were removed from the memory", gone)


def _remove(connection: sqlite3.Connection, table: str, missing: Iterable[tuple[int, int]]) -> None:
    for row, user in missing:
        connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))
        connection.execute("UPDATE users SET version = version + 1, complete_from = version + 1 WHERE no = ?", (user,))
