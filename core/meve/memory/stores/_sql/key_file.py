"""The key file beside a memory's database: one random secret for each record and each user, in a slot of its own.

What is erased is sealed with a key that derives from the secret in its slot. Erasing overwrites the slot in place with
the secret of a later record. Each slot begins with a mark, which what is sealed repeats: so a key that is gone is told
from a damaged record. All keys also depend on a root secret in the header, which a master key may wrap.
"""

import os
import struct
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from itertools import groupby
from types import MappingProxyType
from typing import Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from meve.errors import KeyFileError, StoreCorruptError
from meve.memory.stores._sql.key_place import KeyBytes, KeyPlace, mapped, read_at, write_at
from meve.memory.stores._sql.master_key import NONCE, MasterKey, unwrap, wrap

_HEADER = struct.Struct("<12s16sQ?60s")
_MAGIC = b"MeVe keys 1\n"
_PLACES = (0, 512)
"""Where the header stands: in one of two places, so that a new one is complete before the former is overwritten."""
_CHECKSUM = 16
_IN_USE = 1032
"""Where it stands whether a database uses the file."""
CHANGES, RENEWALS = 1024, 1064
"""Offsets of the number of times that keys were destroyed, of erased content and of unfinished changes."""
TIME, ENTRIES, TAKEN = 1040, 1048, 1056
"""Offsets of the latest time seen, in microseconds since 1970, of the number of log entries that were written, and of
the number of the last transaction that took slots, whether it was finished or not."""
_FIRST, _SLOT = 4096, 32
MARK = 8
"""The length of the mark at the beginning of a slot, and of what is sealed with its key."""
_MOST_SLOTS = 2**40
"""A number above that of any file's slots; a larger one, or one below 0, is no slot."""
_CHUNK = 512
"""The number of slots that the file grows by."""
_BLOCK = 4096
"""The number of bytes that are read at once: the keys of a user's records mostly stand side by side."""
_NONE: Mapping[int, int] = MappingProxyType({})


class KeyIsGone(Exception):  # noqa: N818 - it is no error: what was erased can't be read
    """The key of something sealed has been destroyed."""


class DataKey:
    """The key of one slot.

    Args:
        slot: the slot's bytes.
        root: the file's root secret.
    """

    __slots__ = ("_mark", "_names", "_root", "_secret")

    def __init__(self, slot: bytes, root: bytes) -> None:
        self._mark, self._secret, self._root = slot[:MARK], slot[MARK:], root
        self._names: bytes | None = None

    def seal(self, content: bytes, place: str) -> bytes:
        """Encrypt content that stands in this place; it can be unsealed there only."""
        nonce = os.urandom(NONCE)
        return self._mark + nonce + self._cipher().encrypt(nonce, content, place.encode())

    def unseal(self, sealed: bytes, place: str) -> bytes:
        """Return what `seal` was given.

        Raises:
            KeyIsGone: another secret stands in the slot now.
            ValueError: it was changed, or stood in another place.
        """
        if sealed[:MARK] != self._mark:
            raise KeyIsGone
        try:
            return self._cipher().decrypt(sealed[MARK : MARK + NONCE], sealed[MARK + NONCE :], place.encode())
        except InvalidTag:
            raise ValueError("it was changed, or stood elsewhere") from None

    def hash(self, purpose: str, text: str) -> str:
        """Return a keyed hash of 22 characters, by which a text is found without being stored."""
        if self._names is None:
            self._names = _derive(self._secret, self._root, b"names")
        return _hash(self._names, f"{purpose}\0{text}")

    def _cipher(self) -> AESGCM:
        return AESGCM(_derive(self._secret, self._root, b"content"))


class KeyFile:
    """A key file that is open, with its root secret."""

    def __init__(self, place: KeyPlace, file_id: bytes, root: bytes) -> None:
        self.place = place
        self.file_id = file_id.hex()
        self._root = root
        self._users = _derive(root, root, b"users")
        self.is_settled = True
        """Whether the file has one header, which is locked if a master key was given."""

    @classmethod
    def create(cls, place: KeyPlace, master: MasterKey | None, like: "KeyFile | None" = None) -> Self:
        """Create a key file, in place of one that no database uses yet.

        Args:
            place: where it is going to stand.
            master: locks it.
            like: the key file of the memory that is going to be copied: users and log get the same hashes by both.

        Raises:
            KeyFileError: the file belongs to another database, or is no key file.
        """
        with mapped(place):
            file_id = place.begin()
        with mapped(place), place.open("r+b") as file:
            begin = read_at(file, 0, _FIRST)
            if any(begin) and not any(begin.startswith(_MAGIC, at) for at in _PLACES):
                raise KeyFileError(f"{place} exists, and is no key file: give another path, or move it away")
            if read_at(file, _IN_USE, 1) == b"\x01":
                raise KeyFileError(
                    f"{place} holds the keys of another memory: if that one was lost, restore that memory, or move the "
                    "key file away; if it is another tenant's, give this one a key_file of its own"
                )
            key = cls(place, file_id, os.urandom(32) if like is None else like._root)
            write_at(file, 0, bytes(_FIRST))
            write_at(file, _PLACES[0], key._header(1, master))
            file.sync()
        return key

    @classmethod
    def open(cls, place: KeyPlace, file_id: str, master: MasterKey | None) -> Self:
        """Open the key file of a database.

        Raises:
            KeyFileError: it is missing, damaged, or belongs to another database, or the master key is another one.
        """
        if not place.find(file_id):
            raise KeyFileError(
                f"{place} is missing, and nothing in the memory can be read without its keys: restore the key file "
                "from a copy, or put it back"
            )
        with mapped(place), place.open("rb") as file:
            headers = _headers(file)
        if not headers:
            raise KeyFileError(f"{place} is no key file, or damaged: restore it from a copy")
        found, _, is_wrapped, sealed = headers[_newest(headers)]
        if found.hex() != file_id:
            raise KeyFileError(f"{place} holds the keys of another memory: put back the key file of this one")
        if is_wrapped and master is None:
            raise KeyFileError(f"{place} is locked with a master key, and none was given: give master_key")
        key = cls(place, found, unwrap(sealed, found, master, place) if is_wrapped else sealed[:32])
        key.is_settled = len(headers) == 1 and is_wrapped is (master is not None)
        return key

    def user_hash(self, user: str) -> str:
        """Return the keyed hash of a user's key, by which the user's row is found."""
        return _hash(self._users, user)

    def derived(self, purpose: str) -> bytes:
        """Return a secret for another purpose, 32 bytes."""
        return _derive(self._root, self._root, purpose.encode())

    def mark_used(self) -> None:
        """Note that a database uses the file, so that no other takes it over."""
        with mapped(self.place), self.place.open("r+b") as file:
            if read_at(file, _IN_USE, 1) != b"\x01":
                write_at(file, _IN_USE, b"\x01")
                file.sync()

    def noted(self, place: int) -> int:
        """Return the number that was noted at `TIME` or `ENTRIES`; 0 if none was."""
        with mapped(self.place):
            return int.from_bytes(self.place.peek(place, 8), "little")

    def note(self, place: int, number: int) -> None:
        """Note a number. It isn't synced: after a power cut, an earlier one may stand there."""
        _note(self.place, place, number)

    def settle(self, master: MasterKey | None) -> None:
        """Lock the file with a master key: write another header, and then overwrite the former one.

        Call it under the write lock of the database.
        """
        with mapped(self.place), self.place.open("r+b") as file:
            headers = _headers(file)
            place = _newest(headers)
            header = self._header(headers[place][1] + 1, master)
            for at, data in ((_PLACES[1 - _PLACES.index(place)], header), (place, bytes(len(header)))):
                write_at(file, at, data)
                file.sync()

    @contextmanager
    def slots(self) -> Iterator["Slots"]:
        """Give access to the slots for one transaction; the file is opened when it is needed."""
        slots = Slots(self.place, self._root)
        try:
            yield slots
        finally:
            slots.close()

    def _header(self, generation: int, master: MasterKey | None) -> bytes:
        file_id = bytes.fromhex(self.file_id)
        sealed = self._root if master is None else wrap(self._root, file_id, master)
        packed = _HEADER.pack(_MAGIC, file_id, generation, master is not None, sealed)
        return packed + blake2b(packed, digest_size=_CHECKSUM).digest()


class Slots:
    """The slots of a key file, for one transaction."""

    def __init__(self, place: KeyPlace, root: bytes) -> None:
        self._place, self._root = place, root
        self._file: KeyBytes | None = None
        self._block, self._block_number = b"", -1
        """What was read last."""

    def key(self, slot: int) -> DataKey:
        """Return the key of a slot.

        Raises:
            KeyIsGone: the file has no such slot.
        """
        data = self._bytes(slot)
        if len(data) < _SLOT or not any(data):
            raise KeyIsGone
        return DataKey(data, self._root)

    def fits(self, slot: int, sealed: bytes) -> bool:
        """Return whether the key of something sealed still exists."""
        return len(sealed) >= MARK and self._bytes(slot)[:MARK] == sealed[:MARK]

    def find(self, sealed: bytes) -> list[int]:
        """Return the slots in which the key of something sealed stands: one, or none."""
        return [slot for slot in range(self.count()) if self.fits(slot, sealed)]

    def refresh(self) -> None:
        """Read keys anew: some of those that were read may be destroyed by now."""
        self._block_number = -1

    def noted(self, place: int) -> int:
        """Return the number at `CHANGES` or `RENEWALS`."""
        return int.from_bytes(read_at(self._opened(), place, 8), "little")

    def count(self) -> int:
        """Return the number of slots."""
        return max(0, self._opened().size() - _FIRST) // _SLOT

    def make(self, count: int) -> None:
        """Make at least this many slots in all, with a secret in each."""
        have = self.count()
        if count > have:
            more = -(-(count - have) // _CHUNK) * _CHUNK
            self._write({have: os.urandom(_SLOT * more)})

    def fill(self, slot: int) -> None:
        """Write a secret to a slot that has none."""
        self._write({slot: os.urandom(_SLOT)})

    def renew(self, slots: Iterable[int], numbers: Mapping[int, int]) -> None:
        """Overwrite slots with new secrets, and wait until they are on the disk.

        Args:
            slots: their numbers.
            numbers: what `noted` returns from then on, by place.
        """
        wanted = sorted(set(slots))
        if wanted and not 0 <= wanted[0] <= wanted[-1] < self.count():
            raise StoreCorruptError(f"the memory names a key that {self._place} doesn't have: restore it from a copy")
        runs = ([number for _, number in run] for _, run in groupby(enumerate(wanted), lambda each: each[1] - each[0]))
        self._write({run[0]: os.urandom(_SLOT * len(run)) for run in runs}, numbers)

    def note_taken(self, number: int) -> None:
        """Note that a transaction takes slots, for those after it, should it not be finished."""
        _note(self._place, TAKEN, number)

    def is_filled(self, slot: int) -> bool:
        """Return whether a slot holds a secret; a power cut may have left zeros."""
        return any(read_at(self._opened(), _FIRST + _SLOT * slot, _SLOT))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        self._file, self._block_number = None, -1

    def _bytes(self, slot: int) -> bytes:
        if not 0 <= slot < _MOST_SLOTS:
            return b""
        number, at = divmod(_SLOT * slot, _BLOCK)
        if number != self._block_number:
            self._block, self._block_number = read_at(self._opened(), _FIRST + number * _BLOCK, _BLOCK), number
        return self._block[at : at + _SLOT]

    def _write(self, secrets: dict[int, bytes], numbers: Mapping[int, int] = _NONE) -> None:
        self.close()
        with mapped(self._place), self._place.open("r+b") as file:
            for slot, data in secrets.items():
                write_at(file, _FIRST + _SLOT * slot, data)
            for place, number in numbers.items():
                write_at(file, place, number.to_bytes(8, "little"))
            file.sync()

    def _opened(self) -> KeyBytes:
        if self._file is None:
            with mapped(self._place):
                self._file = self._place.open("rb")
        return self._file


def _headers(file: KeyBytes) -> dict[int, tuple[bytes, int, bool, bytes]]:
    """Return by place the headers that are whole: id, generation, whether wrapped, and the root secret."""
    found: dict[int, tuple[bytes, int, bool, bytes]] = {}
    for place in _PLACES:
        data = read_at(file, place, _HEADER.size + _CHECKSUM)
        packed, checksum = data[: _HEADER.size], data[_HEADER.size :]
        if packed[: len(_MAGIC)] == _MAGIC and blake2b(packed, digest_size=_CHECKSUM).digest() == checksum:
            found[place] = _HEADER.unpack(packed)[1:]
    return found


def _newest(headers: dict[int, tuple[bytes, int, bool, bytes]]) -> int:
    return max(headers, key=lambda place: headers[place][1])


def _derive(secret: bytes, root: bytes, purpose: bytes) -> bytes:
    return blake2b(secret, key=root, digest_size=32, person=purpose).digest()


def _hash(key: bytes, text: str) -> str:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), key=key, digest_size=16).digest()
    return urlsafe_b64encode(digest).decode().rstrip("=")


def _note(where: KeyPlace, place: int, number: int) -> None:
    with mapped(where), where.open("r+b") as file:
        write_at(file, place, number.to_bytes(8, "little"))
