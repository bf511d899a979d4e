"""What a transaction needs to seal and unseal: the keys of records and users, and which slots are free."""

import logging
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from meve.errors import StoreCorruptError
from meve.memory.stores._sql.database import Connection, upsert
from meve.memory.stores._sql.key_file import CHANGES, MARK, RENEWALS, DataKey, KeyIsGone, Slots

_LOGGER = logging.getLogger("meve")
_DAMAGED = "damaged:"
KEY_CHANGES, KEYS_SEEN, SLOTS, _TAKEN = "key_changes", "keys_seen", "slots", "slots_taken"
"""The settings that hold how often keys are destroyed once the released ones are, how often they had been when these
were released, how many slots were given away, and the number of the last transaction that took some."""
KEY_RENEWALS, _RENEWED = "key_renewals", "keys_renewed"
"""The settings that hold how often keys of unfinished changes are destroyed once the released ones are, and how often
they were."""
KEY_SETTINGS = frozenset({KEY_CHANGES, KEYS_SEEN, KEY_RENEWALS, _RENEWED, SLOTS, _TAKEN})
"""The settings that tell of the keys of one store, and mean nothing in a copy."""
_PUT_SLOT = upsert("free_slots", ("slot", "renewed"), ("slot",))
_PUT_SETTING = upsert("meta", ("name", "value"), ("name",))


class DamagedId(str):
    """A name for a record that can't be unsealed, in place of its id. A type of its own: ids may have any text."""

    @classmethod
    def of(cls, hashed: str) -> "DamagedId":
        """Return the name for the hash of an id."""
        return cls(_DAMAGED + hashed)


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
        if isinstance(record_id, DamagedId):
            return record_id.removeprefix(_DAMAGED)
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

    def __init__(self, connection: Connection, slots: Slots, user_hash: Callable[[str], str]) -> None:
        self.connection, self.slots, self.user_hash = connection, slots, user_hash
        self._owners: dict[int, Owner | None] = {}
        self._has_taken = False
        self.gone: set[bytes] = set()
        """The marks of the keys that were missing since `forget`."""

    def owner(self, user: str) -> Owner | None:
        """Return a user by key; None for one who has no key."""
        row = self.connection.execute(
            "SELECT no, key, slot, name FROM users WHERE tenant = :tenant AND key = ?", (self.user_hash(user),)
        ).fetchone()
        return None if row is None else self._owner(*row)

    def owner_of(self, no: int) -> Owner | None:
        """Return a user by number; None for one who has no key."""
        if no not in self._owners:
            row = self.connection.execute(
                "SELECT no, key, slot, name FROM users WHERE tenant = :tenant AND no = ?", (no,)
            ).fetchone()
            self._owners[no] = None if row is None else self._owner(*row)
        return self._owners[no]

    def has_damaged_key(self, user: str) -> bool:
        """Return whether a user has a key that can't be read."""
        row = self.connection.execute(
            "SELECT no, key, slot, name FROM users WHERE tenant = :tenant AND key = ? AND slot IS NOT NULL",
            (self.user_hash(user),),
        ).fetchone()
        return row is not None and self._owner(*row) is None

    def make_owner(self, user: str) -> tuple[Owner, int]:
        """Return a user, whose row is written if there is none, and the version of the user's records.

        Raises:
            StoreCorruptError: the user's key is damaged.
        """
        hashed, columns = self.user_hash(user), "no, key, slot, name, version"
        row = (
            self.connection.execute(
                f"SELECT {columns} FROM users WHERE tenant = :tenant AND key = ?", (hashed,)
            ).fetchone()
            or self.connection.execute(
                f"INSERT INTO users (tenant, key) VALUES (:tenant, ?) RETURNING {columns}", (hashed,)
            ).fetchone()
        )
        no, _, used, _, version = row
        owner = self._owner(*row[:-1])
        if owner is None and used is not None:
            raise StoreCorruptError(
                "the key of this user is damaged: restore both files from a copy, or erase the user with forget_user"
            )
        if owner is None:
            slot = self.take()
            owner = Owner(no, user, hashed, self.slots.key(slot))
            name = owner.key.seal(user.encode(), owner.place("users"))
            self.connection.execute(
                "UPDATE users SET slot = ?, name = ? WHERE tenant = :tenant AND no = ?", (slot, name, no)
            )
        return owner, version

    def forget_owner(self, user: str) -> None:
        """Remove what can't be read of a user, unless on hold. If nothing is left, release the user's key, too.

        The row keeps the hash alone.
        """
        row = self.connection.execute(
            "SELECT no, slot, name FROM users WHERE tenant = :tenant AND key = ? AND slot IS NOT NULL",
            (self.user_hash(user),),
        ).fetchone()
        if row is None:
            return
        no, slot, name = row
        self.connection.execute("DELETE FROM opinions WHERE tenant = :tenant AND user = ?", (no,))
        if unreadable := self.remove("user = ? AND hold = 0", no):
            self.connection.execute(
                "UPDATE users SET version = version + 1, complete_from = version + 1 WHERE tenant = :tenant AND no = ?",
                (no,),
            )
            _LOGGER.warning("%d records of a forgotten user couldn't be read, and were removed", unreadable)
        left = " UNION ALL ".join(
            f"SELECT 1 FROM {table} WHERE tenant = :tenant AND user = ?" for table in ("memories", "archive")
        )
        if self.connection.execute(left, (no, no)).fetchone() is None:
            self.connection.execute(
                "UPDATE users SET slot = NULL, name = NULL WHERE tenant = :tenant AND no = ?", (no,)
            )
            self.connection.execute("DELETE FROM log_names WHERE tenant = :tenant AND user = ?", (no,))
            self._release_used(slot, name)

    def remove(self, where: str, *values: object) -> int:
        """Remove records, archived or not, and release their keys. Return how many there were."""
        removed = [
            row
            for table, sealed in (("memories", "sealed"), ("archive", "body"))
            for row in self.connection.execute(
                f"DELETE FROM {table} WHERE tenant = :tenant AND {where} RETURNING slot, substr({sealed}, 1, {MARK})",
                values,
            ).fetchall()
        ]
        for slot, mark in removed:
            self._release_used(slot, mark or b"")
        return len(removed)

    def note_name(self, owner: Owner, record_id: str) -> None:
        """Keep the id of a record for the log until the user is forgotten."""
        hashed = owner.id_hash(record_id)
        known = self.connection.execute(
            "SELECT 1 FROM log_names WHERE tenant = :tenant AND user = ? AND id = ?", (owner.no, hashed)
        )
        if known.fetchone() is None:
            name = owner.key.seal(record_id.encode("utf-8", "surrogateescape"), owner.place("log_names", hashed))
            self.connection.execute(
                "INSERT INTO log_names (tenant, user, id, name) VALUES (:tenant, ?, ?, ?)", (owner.no, hashed, name)
            )

    def noted_names(self, owner: Owner, hashed: str | None = None) -> list[str]:
        """Return the ids that `note_name` kept of a user, except damaged ones; with the hash of one, only that."""
        one, values = ("", (owner.no,)) if hashed is None else (" AND id = ?", (owner.no, hashed))
        rows = self.connection.execute(
            f"SELECT id, name FROM log_names WHERE tenant = :tenant AND user = ?{one}", values
        ).fetchall()
        names = []
        for each, name in rows:
            with suppress(KeyIsGone, ValueError):
                names.append(owner.key.unseal(name, owner.place("log_names", each)).decode())
        return names

    def take(self) -> int:
        """Return a slot that is free, with a secret in it."""
        if not self._has_taken:
            self._has_taken = True
            number = secrets.randbits(63)
            self.slots.note_taken(number)
            put_setting(self.connection, _TAKEN, number)
        row = self.connection.execute(
            "SELECT slot FROM free_slots WHERE tenant = :tenant AND renewed LIMIT 1"
        ).fetchone()
        if row is not None:
            slot = int(row[0])
            self.connection.execute("DELETE FROM free_slots WHERE tenant = :tenant AND slot = ?", (slot,))
        else:
            slot = read_number(self.connection, SLOTS)
            if slot >= self.slots.count():
                self.slots.make(slot + 1)
            put_setting(self.connection, SLOTS, slot + 1)
        if not self.slots.is_filled(slot):
            self.slots.fill(slot)
        return slot

    def release_unfinished(self, taken: int) -> bool:
        """Release all slots without a record if the last transaction that took some wasn't finished.

        What it sealed may stand in the database's log, so no later record may get its key.

        Args:
            taken: the number that the last such transaction noted in the key file.

        Returns:
            Whether it wasn't; then this transaction can't take slots, because all are to be renewed.
        """
        noted = read_settings(self.connection, KEY_RENEWALS, _RENEWED, _TAKEN)
        wanted = _to_number(KEY_RENEWALS, noted.get(KEY_RENEWALS))
        if str(taken) == noted.get(_TAKEN, "0"):  # perhaps released, but not renewed yet
            return wanted != _to_number(_RENEWED, noted.get(_RENEWED)) and self.has_released()
        given, count = read_number(self.connection, SLOTS), self.slots.count()
        self.connection.execute("UPDATE free_slots SET renewed = FALSE WHERE tenant = :tenant AND renewed")
        self.release(range(given, count))
        put_setting(self.connection, SLOTS, max(given, count))
        put_setting(self.connection, KEY_RENEWALS, max(wanted, self.slots.noted(RENEWALS)) + 1)
        self.accept_unfinished(taken)
        return True

    def accept_unfinished(self, taken: int) -> None:
        """Keep the keys of an unfinished change; see `release_unfinished`."""
        put_setting(self.connection, _TAKEN, taken)

    def release(self, slots: Iterable[int]) -> None:
        """Let slots be renewed once the transaction is committed; call `note_released` before."""
        self.connection.executemany(_PUT_SLOT, [(slot, False) for slot in slots])

    def _release_used(self, slot: int, sealed: bytes) -> None:
        """Release the key of something sealed that was removed.

        If it isn't where it should be, release it where it stands, and what stands there unless others need it.
        """
        slots = [slot]
        if not self.slots.fits(slot, sealed):
            using = " UNION ALL ".join(
                f"SELECT slot FROM {table} WHERE tenant = :tenant" for table in ("memories", "archive", "users")
            )
            used = {other for (other,) in self.connection.execute(using)}
            given = range(read_number(self.connection, SLOTS))
            slots = [each for each in (slot, *self.slots.find(sealed)) if each in given and each not in used]
        self.release(slots)

    def renew_released(self) -> None:
        """Destroy the keys that were released."""
        released = [
            slot
            for (slot,) in self.connection.execute("SELECT slot FROM free_slots WHERE tenant = :tenant AND NOT renewed")
        ]
        if released:
            places = {CHANGES: KEY_CHANGES, RENEWALS: KEY_RENEWALS}
            numbers = {place: read_number(self.connection, name) for place, name in places.items()}
            self.slots.renew(released, numbers)
            put_setting(self.connection, _RENEWED, numbers[RENEWALS])
            self.connection.execute("UPDATE free_slots SET renewed = TRUE WHERE tenant = :tenant AND NOT renewed")

    def has_released(self) -> bool:
        """Return whether keys are to be destroyed, also those that another process left."""
        return (
            self.connection.execute(
                "SELECT 1 FROM free_slots WHERE tenant = :tenant AND NOT renewed LIMIT 1"
            ).fetchone()
            is not None
        )

    def note_released(self) -> bool:
        """Store that keys are going to be destroyed. Return whether there are any.

        From then on the key file must agree with the state before or after it: so an older copy of either file is
        told from one between whose erasure and destruction a process was stopped.
        """
        if not self.has_released():
            return False
        seen = self.slots.noted(CHANGES)
        put_setting(self.connection, KEYS_SEEN, seen)
        put_setting(self.connection, KEY_CHANGES, max(seen, read_number(self.connection, KEY_CHANGES)) + 1)
        return True

    def note_gone(self, damage: Exception, sealed: bytes) -> bool:
        """Note that the key of something sealed is missing, if that is the damage. Return whether it is."""
        is_gone = isinstance(damage, KeyIsGone)
        if is_gone:
            self.gone.add(sealed[:MARK])
        return is_gone

    def forget(self) -> None:
        """Forget what was read, because the connection sees another state now."""
        self._owners.clear()
        self.slots.close()
        self.gone.clear()

    def _owner(self, no: int, hashed: str, slot: int | None, name: bytes | None) -> Owner | None:
        if slot is None or name is None:
            return None
        self.slots.refresh()
        try:
            key = self.slots.key(slot)
            user = key.unseal(name, "\0".join(["users", hashed])).decode()
        except (KeyIsGone, ValueError):
            self.gone.add(name[:MARK])
            return None
        return Owner(no, user, hashed, key)


def read_setting(connection: Connection, name: str) -> str | None:
    """Return the value of a setting; None if it isn't set."""
    row = connection.execute("SELECT value FROM meta WHERE tenant = :tenant AND name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def read_settings(connection: Connection, *names: str) -> dict[str, str]:
    """Return the values of the settings that are set, by name."""
    rows = connection.execute(
        f"SELECT name, value FROM meta WHERE tenant = :tenant AND name IN ({', '.join('?' * len(names))})", names
    ).fetchall()
    return {name: str(value) for name, value in rows}


def read_number(connection: Connection, name: str) -> int:
    """Return the value of a setting that is a number; 0 if it isn't set.

    Raises:
        StoreCorruptError: it is none.
    """
    return _to_number(name, read_setting(connection, name))


def _to_number(name: str, value: str | None) -> int:
    value = value or "0"
    if not (value.isascii() and value.isdigit() and len(value) < 19):
        raise StoreCorruptError(f"the setting {name!r} of the memory is damaged: restore the file from a copy")
    return int(value)


def put_setting(connection: Connection, name: str, value: object) -> None:
    """Write a setting."""
    connection.execute(_PUT_SETTING, (name, str(value)))
