"""The chain that an audit log hangs on: each entry's digest covers the entry and the digest before it.

Without a key anybody who can write the file can also compute the chain anew: it then shows accidents, not intent. With
a key that is kept elsewhere an altered, missing or reordered entry shows whoever did it; a tail that was cut off
shows by the seal over the newest entry, unless the seal of that older state was kept and put back. Against that, keep
`head()` elsewhere and hand it to `verify`.
"""

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

from meve.errors import AuditError
from meve.memory.records import UserId, user_of

Action: TypeAlias = Literal[
    "add", "retrieve", "use", "update", "expire", "prune", "merge", "delete", "hold", "release", "archive", "restore",
    "supersede",
]  # fmt: skip

START = b"\x00" * 32
"""What stands before the first entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happens to a record, on its way into the log. Holds no content."""

    at: datetime
    user: str
    """The user's key."""
    record: str
    """The record's id; empty where it concerns none."""
    action: Action
    reason: str
    detail: Mapping[str, Any] = field(default_factory=dict)
    """JSON-plain: scores, versions, keyed hashes; never text of memories, queries or answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """An entry of the log."""

    seq: int
    """Its place, from 1."""
    at: datetime
    user_id: UserId | None
    """None for the shared space."""
    record_id: str
    action: Action
    reason: str
    detail: Mapping[str, Any]
    digest: str
    """Hexadecimal; covers all of the above, and the entry before."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data."""
        made = {name: getattr(self, name) for name in self.__slots__}
        return {**made, "at": self.at.isoformat(), "detail": dict(self.detail)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The newest entry: what to keep elsewhere, to see later that nothing was cut off."""

    seq: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What a check of the log found."""

    ok: bool
    events: int
    """How many entries hold."""
    keyed: bool
    """Whether the chain hangs on a key; without one it only shows accidents."""
    at: int | None = None
    """The place of the first entry that is altered, missing or out of order."""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
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


class Chain:
    """Makes digests.

    Args:
        key: what they hang on, 16 bytes or more, kept outside the file; None for none.

    Raises:
        AuditError: a key that is too short to be one.
    """

    def __init__(self, key: bytes | None = None) -> None:
        if key is not None and (not isinstance(key, bytes) or len(key) < 16):
            raise AuditError("the audit key must be 16 bytes or more: give 32 random ones")
        self._key = key
        self.keyed = key is not None

    def digest(self, before: bytes, entry: tuple[int, int, str, str, str, str, str]) -> bytes:
        """Of an entry's fields, `detail` as JSON, and the digest before it; 32 bytes."""
        return self._hash(before + json.dumps(entry, ensure_ascii=True, separators=(",", ":")).encode())

    def seal(self, seq: int, digest: bytes) -> bytes:
        """Over the newest entry."""
        return self._hash(b"head" + seq.to_bytes(8, "big") + digest)

    def content(self, text: str) -> str:
        """A hash of a text, to recognise it by; without the key it can't be guessed, with none it can."""
        return self._hash(b"content" + text.encode()).hex()

    @property
    def fingerprint(self) -> str:
        """Tells one key from another, without telling the key."""
        return self._hash(b"fingerprint").hex() if self.keyed else ""

    def check(self, entries: Iterable[Entry], seq: int, digest: bytes, seal: bytes, kept: Head | None) -> Verification:
        """Hold a log against itself, its seal, and a head that was kept elsewhere.

        Args:
            entries: in the order of their places.
            seq: the place of the newest, as the file has it.
            digest: the newest's digest, as the file has it.
            seal: over both.
            kept: what `head` told earlier.
        """
        before, count, met = START, 0, kept is None or kept.seq == 0
        for entry in entries:
            if entry.seq != count + 1:
                return self._bad(count, f"entry {count + 1} is missing: entry {entry.seq} follows on {count}")
            fields = (entry.seq, entry.at, entry.user, entry.record, entry.action, entry.reason, entry.detail)
            if not hmac.compare_digest(self.digest(before, fields), entry.digest):
                return self._bad(count, f"entry {entry.seq} was altered, or what stood before it")
            before, count = entry.digest, entry.seq
            if kept is not None and kept.seq == entry.seq:
                met = kept.digest == entry.digest.hex()
                if not met:
                    return self._bad(count - 1, f"entry {entry.seq} isn't the one of the head that was kept")
        if count != seq or before != digest or not hmac.compare_digest(self.seal(seq, digest), seal):
            return self._bad(
                count, f"the log ends at entry {count}, where its seal tells of {seq}: its end was cut off"
            )
        if not met:
            return self._bad(
                count, f"the log ends at entry {count}, before the head that was kept: its end was cut off"
            )
        return Verification(ok=True, events=count, keyed=self.keyed)

    def _bad(self, count: int, problem: str) -> Verification:
        return Verification(ok=False, events=count, keyed=self.keyed, at=count + 1, problem=problem)

    def _hash(self, data: bytes) -> bytes:
        return hmac.digest(self._key, data, "sha256") if self._key is not None else hashlib.sha256(data).digest()


def told(entry: Entry, at: datetime) -> AuditEvent:
    """An entry as it is shown."""
    return AuditEvent(
        seq=entry.seq,
        at=at,
        user_id=user_of(entry.user),
        record_id=entry.record,
        action=entry.action,
        reason=entry.reason,
        detail=json.loads(entry.detail),
        digest=entry.digest.hex(),
    )
