"""What a transaction needs to seal and unseal: the keys of records and users, and which slots are free."""

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from meve.errors import StoreCorruptError
from meve.memory.stores.sqlite._key_file import MARK, DataKey, KeyIsGone, Slots

DAMAGED = "damaged:"
"""The beginning of the id that stands for that of a record that can't be unsealed; the hash of its id follows."""
KEY_CHANGES, KEYS_SEEN, SLOTS = "key_changes", "keys_seen", "slots"
"""The settings that hold how often keys are destroyed once the released ones are, how often they had been when these
were released, and how many slots were given away."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A user who has a key."""

    no: int
    user: str
    """The user's key."""
    hashed: str
    """The hash under which the user is stored."""
    key: DataKey

    def id_hash(self, record_id: str) -> str:
        """Return the hash under which a record is stored."""
        if record_id.startswith(DAMAGED):
            return record_id.removeprefix(DAMAGED)
        return self.key.hash("id", record_id)

    def session_hash(self, session: str) -> str:
        """Return the hash under which a session is stored."""
        return self.key.hash("session", session)

    def place(self, table: str, *columns: object) -> str:
        """Return the place of something sealed: it is bound to its table, its owner and these columns of its row."""
        return "\0".join([table, self.hashed, *map(str, columns)])


class Vault:
    """Seals and unseals for one transaction.

    Args:
        connection: in a transaction.
        slots: the keys.
        user_hash: returns the hash under which a user is stored.
    """

    def __init__(self, connection: sqlite3.Connection, slots: Slots, user_hash: Callable[[str], str]) -> None:
        self.connection, self.slots, self.user_hash = connection, slots, user_hash
        self._owners: dict[int, Owner | None] = {}
        self.gone: set[bytes] = set()
        """The marks of the keys that were missing since `forget`."""

    def owner(self, user: str) -> Owner | None:
        """Return a user by key; None for one who has no key."""
        row = self.connection.execute(
            "SELECT no, key, slot, name FROM users WHERE key = ?", (self.user_hash(user),)
        ).fetchone()
        return None if row is None else self._owner(*row)

    def owner_of(self, no: int) -> Owner | None:
        """Return a user by number; None for one who has no key."""
        if no not in self._owners:
            row = self.connection.execute("SELECT no, key, slot, name FROM users WHERE no = ?", (no,)).fetchone()
            self._owners[no] = None if row is None else self._owner(*row)
        return self._owners[no]

    def make_owner(self, user: str) -> tuple[Owner, int]:
        """Return a user, whose row is written if there is none, and the version of the user's records."""
        hashed = self.user_hash(user)
        self.connection.execute("INSERT INTO users (key) VALUES (?) ON CONFLICT DO NOTHING", (hashed,))
        no, version = self.connection.execute("SELECT no, version FROM users WHERE key = ?", (hashed,)).fetchone()
        owner = self.owner(user)
        if owner is None:
            slot = self.take()
            owner = Owner(no, user, hashed, self.slots.key(slot))
            name = owner.key.seal(user.encode(), owner.place("users"))
            self.connection.execute("UPDATE users SET slot = ?, name = ? WHERE no = ?", (slot, name, no))
        return owner, version

    def forget_owner(self, user: str) -> None:
        """Release the key of a user of whom nothing is stored: the row keeps the hash alone."""
        nothing = " AND ".join(
            f"NOT EXISTS (SELECT 1 FROM {table} WHERE user = no)" for table in ("memories", "archive", "opinions")
        )
        row = self.connection.execute(
            f"SELECT no, slot FROM users WHERE key = ? AND slot IS NOT NULL AND {nothing}", (self.user_hash(user),)
        ).fetchone()
        if row is not None:
            self.connection.execute("UPDATE users SET slot = NULL, name = NULL WHERE no = ?", row[:1])
            self.connection.execute("DELETE FROM log_names WHERE user = ?", row[:1])
            self.release(row[1:])

    def note_name(self, owner: Owner, record_id: str) -> None:
        """Keep the id of a record for the log until the user is forgotten."""
        hashed = owner.id_hash(record_id)
        known = self.connection.execute("SELECT 1 FROM log_names WHERE user = ? AND id = ?", (owner.no, hashed))
        if known.fetchone() is None:
            name = owner.key.seal(record_id.encode("utf-8", "surrogateescape"), owner.place("log_names", hashed))
            self.connection.execute("INSERT INTO log_names VALUES (?, ?, ?)", (owner.no, hashed, name))

    def noted_names(self, owner: Owner, hashed: str | None = None) -> list[str]:
        """Return the ids that `note_name` kept of a user, except damaged ones; with the hash of one, only that."""
        rows = self.connection.execute(
            "SELECT id, name FROM log_names WHERE user = ? AND (? IS NULL OR id = ?)", (owner.no, hashed, hashed)
        ).fetchall()
        names = []
        for each, name in rows:
            with suppress(KeyIsGone, ValueError):
                names.append(owner.key.unseal(name, owner.place("log_names", each)).decode())
        return names

    def take(self) -> int:
        """Return a slot that is free, with a secret in it."""
        row = self.connection.execute("SELECT slot FROM free_slots WHERE renewed LIMIT 1").fetchone()
        if row is not None:
            slot = int(row[0])
            self.connection.execute("DELETE FROM free_slots WHERE slot = ?", (slot,))
        else:
            slot = read_number(self.connection, SLOTS)
            if slot >= self.slots.count():
                self.slots.make(slot + 1)
            put_setting(self.connection, SLOTS, slot + 1)
        if not self.slots.is_filled(slot):
            self.slots.fill(slot)
        return slot

    def release(self, slots: Iterable[int]) -> None:
        """Let slots be renewed once the transaction is committed; call `note_released` before."""
        rows = [(slot,) for slot in slots]
        self.connection.executemany("INSERT OR REPLACE INTO free_slots VALUES (?, 0)", rows)

    def renew_released(self) -> None:
        """Destroy the keys that were released."""
        released = [slot for (slot,) in self.connection.execute("SELECT slot FROM free_slots WHERE NOT renewed")]
        if released:
            self.slots.renew(released, read_number(self.connection, KEY_CHANGES))
            self.connection.execute("UPDATE free_slots SET renewed = 1 WHERE NOT renewed")

    def has_released(self) -> bool:
        """Return whether keys are to be destroyed, also those that another process left."""
        return self.connection.execute("SELECT 1 FROM free_slots WHERE NOT renewed LIMIT 1").fetchone() is not None

    def note_released(self) -> bool:
        """Store that keys are going to be destroyed. Return whether there are any.

        From then on the key file must agree with the state before or after it: so an older copy of either file is
        told from one between whose erasure and destruction a process was stopped.
        """
        if not self.has_released():
            return False
        seen = self.slots.changes()
        put_setting(self.connection, KEYS_SEEN, seen)
        put_setting(self.connection, KEY_CHANGES, max(seen, read_number(self.connection, KEY_CHANGES)) + 1)
        return True

    def forget(self) -> None:
        """Forget what was read, because the connection sees another state now."""
        self._owners.clear()
        self.slots.close()
        self.gone.clear()

    def _owner(self, no: int, hashed: str, slot: int | None, name: bytes | None) -> Owner | None:
        if slot is None or name is None:
            return None
        try:
            key = self.slots.key(slot)
            user = key.unseal(name, "\0".join(["users", hashed])).decode()
        except KeyIsGone:
            self.gone.add(name[:MARK])
            return None
        except ValueError as cause:
            raise StoreCorruptError(f"the name of a user is damaged ({cause}): restore the file from a copy") from cause
        return Owner(no, user, hashed, key)


def read_setting(connection: sqlite3.Connection, name: str) -> str | None:
    """Return the value of a setting; None if it isn't set."""
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def read_number(connection: sqlite3.Connection, name: str) -> int:
    """Return the value of a setting that is a number; 0 if it isn't set.

    Raises:
        StoreCorruptError: it is none.
    """
    value = read_setting(connection, name) or "0"
    if not (value.isascii() and value.isdigit() and len(value) < 19):
        raise StoreCorruptError(f"the setting {name!r} of the memory is damaged: restore the file from a copy")
    return int(value)


def put_setting(connection: sqlite3.Connection, name: str, value: object) -> None:
    """Write a setting."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, str(value)))
