"""The hash chain of the audit log: the digest of each entry covers the entry and the digest before it.

Without a key, whoever can write the file can also recompute the chain: it shows accidents, not intent. With a key that
is kept elsewhere, altered, missing and reordered entries show. A removed end shows by the seal over the newest entry,
unless an older seal was put back: against that, keep `head()` elsewhere and pass it to `verify`.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from json.encoder import encode_basestring_ascii
from math import isfinite
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Self, TypeAlias

from meve.errors import AuditError, ValidationError
from meve.memory.records import SHARED, UserId, user_of

Action: TypeAlias = Literal[
    "add", "retrieve", "use", "update", "expire", "prune", "merge", "delete", "hold", "release", "archive", "restore",
    "supersede", "reembed",
]  # fmt: skip

PSEUDONYM, RECORD = "h:", "r:"
"""The beginnings of a keyed hash that stands in the log in place of a user's key, and of a record's id."""
_HASHED_ID = re.compile(RECORD + "[0-9a-f]{32}")
INITIAL_DIGEST = b"\x00" * 32
"""The digest before the first entry."""
_encode_detail = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
_encode_entry = json.JSONEncoder(separators=(",", ":")).encode


def encode_detail(detail: Mapping[str, Any]) -> str:
    """Return the detail of an entry as JSON, its names in order."""
    written = []
    for name, value in sorted(detail.items()):  # texts and numbers take a third of the encoder's time here
        if type(value) is str:
            written.append(f"{encode_basestring_ascii(name)}:{encode_basestring_ascii(value)}")
        elif type(value) is float and isfinite(value):
            written.append(f"{encode_basestring_ascii(name)}:{value!r}")
        else:
            return _encode_detail(dict(detail))
    return f"{{{','.join(written)}}}"


def _write_entry(entry: tuple[int, int, str, str, str, str, str]) -> str:
    """Return an entry as JSON; a damaged one may hold values of other types."""
    seq, at, *texts = entry
    if type(seq) is int and type(at) is int and {*map(type, texts)} == {str}:
        return f"[{seq},{at},{','.join(map(encode_basestring_ascii, texts))}]"  # in half the time
    return _encode_entry(entry)


class EventDraft(NamedTuple):
    """An event of a record that is about to be logged. Holds no content."""

    at: datetime
    user: str
    """The user's key."""
    record: str
    """The record's id; empty for an event of no record."""
    action: Action
    reason: str
    detail: Mapping[str, Any] = MappingProxyType({})
    """JSON-plain scores, versions and keyed hashes; never the text of memories, queries or answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """An entry of the audit log."""

    seq: int
    """Position in the log, from 1."""
    at: datetime
    user_id: UserId | None
    """None for the shared space. If the entry holds a pseudonym, and no user was asked for, the pseudonym."""
    record_id: str
    action: Action
    reason: str
    detail: Mapping[str, Any]
    digest: str
    """Hexadecimal; covers all other fields and the entry before."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data."""
        data = {name: getattr(self, name) for name in self.__slots__}
        return {**data, "at": self.at.isoformat(), "detail": dict(self.detail)}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditHead:
    """Position and digest of the newest entry. Keep it elsewhere to detect later that the end was removed."""

    seq: int
    digest: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.digest}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str` returned.

        Raises:
            ValidationError: it is no head.
        """
        seq, _, digest = text.strip().partition(":")
        if not re.fullmatch("[0-9]{1,18}", seq) or not re.fullmatch("[0-9a-f]{64}", digest):
            raise ValidationError(f"head must be a number, ':' and 64 hexadecimal digits, got {text!r:.80}")
        return cls(seq=int(seq), digest=digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDifference:
    """A record that isn't as the log says. Holds no content."""

    record_id: str
    """Empty if not even the id can be read."""
    user_id: UserId | None
    """Its owner by the log; None for the shared space. A pseudonym if only that is known."""
    differs: tuple[str, ...]
    """What differs: `text`, `owner`, `expiry`, `hold`, `class`, `metadata` (with tags and session), `history` (when it
    was made, held and was replaced, origins and archive), `score`, `other`; or `missing`, `planted`, `unreadable`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditVerification:
    """The result of verifying the log, and the records against the log."""

    ok: bool
    """Whether the log is intact, and no record differs from it."""
    events: int
    """Number of intact entries."""
    keyed: bool
    """Whether the chain uses a key; without one it shows accidents only."""
    broken_at: int | None = None
    """Position of the first entry that is altered, missing or out of order."""
    problem: str = ""
    records: int = 0
    """Number of records that are as the log says. Records are compared if the log is intact and uses a key."""
    not_covered: int = 0
    """Number of records of whose state the log has no hash: written without a key, or before there were such hashes."""
    checkpoints: int = 0
    """Number of signed checkpoints through whose heads the log goes."""
    differences: tuple[RecordDifference, ...] = ()


class AuditRow(NamedTuple):
    """An entry as it is stored."""

    seq: int
    at: int
    """Microseconds since 1970, UTC."""
    user: str
    record: str
    action: Action
    reason: str
    detail: str
    """JSON."""
    digest: bytes


class AuditChain:
    """Computes and verifies digests.

    Args:
        key: 16 bytes or more, kept outside of the file; None for a chain without a key.
        pseudonyms: whether events without a user name the keyed hash of the user's key.
        names_key: makes the keyed hashes of ids, and of users if there is no `key`; the store holds it. None if new
            entries hold ids and users as they are, unless there are `pseudonyms`.

    Raises:
        AuditError: a key that is too short, or none for pseudonyms.
    """

    def __init__(self, key: bytes | None = None, *, pseudonyms: bool = False, names_key: bytes | None = None) -> None:
        if key is not None and (not isinstance(key, bytes) or len(key) < 16):
            raise AuditError("audit_key must be at least 16 bytes: give 32 random bytes")
        if pseudonyms and key is None:
            raise AuditError("audit.pseudonyms of the policy needs an audit_key: without it, ids can be guessed")
        self._key, self._names_key = key, names_key
        self.keyed = key is not None
        self.pseudonyms = pseudonyms

    def digest(self, before: bytes, entry: tuple[int, int, str, str, str, str, str]) -> bytes:
        """Return the digest of an entry's fields and of the digest before; 32 bytes."""
        return self._hash(before + _write_entry(entry).encode())

    def seal(self, seq: int, digest: bytes) -> bytes:
        """Return the seal over the newest entry."""
        return self._hash(b"head" + seq.to_bytes(8, "big") + digest)

    def hash_content(self, text: str, user: str = "") -> str:
        """Return a hash that identifies a text of a user; that of another user with the same text is different.

        Without a key, short texts can be guessed from it.
        """
        return self._hash(b"content" + f"{user}\0{text}".encode()).hex()

    def mac(self, purpose: str, text: str) -> str:
        """Return a hash that is keyed if there is a key; different for each purpose."""
        return self._hash(f"{purpose}\0{text}".encode()).hex()

    def pseudonym(self, user: str) -> str:
        """Return the keyed hash that stands for a user's key; without a key, and for the shared space, as it is."""
        if user == SHARED or user.startswith(PSEUDONYM) or not (self.keyed or self._names_key):
            return user
        hashed = self.mac("user", user) if self.keyed else self._hash_name(user)
        return PSEUDONYM + hashed[:32]

    def record_name(self, user: str, record_id: str) -> str:
        """Return the keyed hash that stands for the id of a user's record; as it is without a `names_key`."""
        if self._names_key is None or not record_id or _HASHED_ID.fullmatch(record_id):
            return record_id
        return RECORD + self._hash_name(f"{self.pseudonym(user)}\0{record_id}")[:32]

    def place(self, seq: int, digest: str) -> str:
        """Return a name of an entry's place in the log that tells neither its number nor the digest."""
        text = f"place\0{seq}\0{digest}"
        return (self._hash_name(text) if self._names_key and not self.keyed else self.mac("place", text))[:32]

    @property
    def hides_names(self) -> bool:
        """Whether new entries hold keyed hashes in place of users."""
        return self.pseudonyms or self._names_key is not None

    @property
    def fingerprint(self) -> str:
        """A hash that identifies the key without revealing it; empty without a key."""
        return self._hash(b"fingerprint").hex() if self.keyed else ""

    def verify(
        self, rows: Iterable[AuditRow], seq: int, digest: bytes, seal: bytes, kept: AuditHead | None
    ) -> AuditVerification:
        """Check all entries, in order, against their digests, the stored head, its seal, and a head kept elsewhere."""
        before, count, met = INITIAL_DIGEST, 0, kept is None or kept.seq == 0
        for row in rows:
            if row.seq != count + 1:
                return self._fail(count, f"entry {count + 1} is missing: entry {row.seq} follows entry {count}")
            if not hmac.compare_digest(self.digest(before, row[:-1]), row.digest):
                return self._fail(count, f"entry {row.seq} was altered, or the entry before it")
            before, count = row.digest, row.seq
            if kept is not None and kept.seq == row.seq:
                met = kept.digest == row.digest.hex() or self._was(kept, row)
                if not met:
                    return self._fail(count - 1, f"entry {row.seq} differs from the head that was kept")
        if count != seq or before != digest or not hmac.compare_digest(self.seal(seq, digest), seal):
            return self._fail(count, f"the log has {count} entries, and its seal covers {seq}: the end is missing")
        if not met:
            return self._fail(count, f"the log has {count} entries, fewer than the head that was kept covers")
        return AuditVerification(ok=True, events=count, keyed=self.keyed)

    def _was(self, kept: AuditHead, row: AuditRow) -> bool:
        """Return whether an entry was this head before keyed hashes took the place of its names."""
        former = json.loads(row.detail).get("former")
        return isinstance(former, str) and former == self.place(kept.seq, kept.digest)

    def _fail(self, count: int, problem: str) -> AuditVerification:
        return AuditVerification(ok=False, events=count, keyed=self.keyed, broken_at=count + 1, problem=problem)

    def _hash_name(self, text: str) -> str:
        assert self._names_key is not None
        return hmac.digest(self._names_key, text.encode("utf-8", "surrogatepass"), "sha256").hex()

    def _hash(self, data: bytes) -> bytes:
        return hmac.digest(self._key, data, "sha256") if self._key is not None else hashlib.sha256(data).digest()


def note_loss(result: AuditVerification, written: int, lost: str | None) -> AuditVerification:
    """Return a verification, which fails if entries are missing that had been written.

    Args:
        result: the verification of the entries that are there.
        written: the number of entries that were written.
        lost: the numbers of entries after and before a loss that others were written after; None if there was none.
    """
    if not result.ok or (lost is None and written <= result.events):
        return result
    left = result.events
    problem = f"the log has {left} entries, and {written} were written"
    if lost is not None:
        numbers = re.fullmatch("([0-9]{1,18}) ([0-9]{1,18})", lost)
        left, last = (int(numbers[1]), int(numbers[2])) if numbers else (0, written)
        problem = f"entries {left + 1} to {last} were lost, and others written in their place"
    problem += ": the write-ahead log was lost, or an older copy of the file put back"
    return replace(result, ok=False, events=min(left, result.events), broken_at=left + 1, problem=problem)


def to_audit_event(row: AuditRow, at: datetime) -> AuditEvent:
    """Convert a stored entry to a public one."""
    return AuditEvent(
        seq=row.seq,
        at=at,
        user_id=user_in_event(row.user),
        record_id=row.record,
        action=row.action,
        reason=row.reason,
        detail=json.loads(row.detail),
        digest=row.digest.hex(),
    )


def user_in_event(user: str) -> UserId | None:
    """Return the user of a key in the log, which may be a pseudonym; None for the shared space."""
    return user if user.startswith(PSEUDONYM) else user_of(user)
