"""What a kernel knows of a turn, and the one way to write it, and everything that is signed, as bytes."""

import hashlib
import hmac
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date
from typing import Any

from meve.conversation.graph import PlacedTurn, to_seconds
from meve.conversation.slices import SlicePolicy
from meve.errors import ConfigurationError, ValidationError

MAX_ID = 256
"""The most characters of an id, a phase or a tenant's name."""
MAX_PARENTS = 64
MAX_PHASES = 64

_BLANK = r"\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"  # as str.strip removes it
NAME_PATTERN = rf"[{_BLANK}]*[^\x00{_BLANK}][^\x00]*"
"""A text that isn't blank and holds no U+0000, which PostgreSQL can't store; for Python and for JSON Schema."""
_VALID_NAME = re.compile(NAME_PATTERN)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
_PLAIN = {str, int, bool, type(None)}


def write_canonical(data: Any) -> bytes:  # noqa: ANN401 - JSON has any type
    r"""Return JSON data as bytes, the same for equal data and different for other data.

    Text stands as UTF-8 and isn't normalised, so ids that only look alike stay different. Numbers with a fraction must
    be written as texts before, since languages print them differently.

    Raises:
        ValidationError: a float, a mapping with keys that aren't text, or text with lone surrogates.

    >>> write_canonical({"b": [1, None], "a": "e\u0301"}) == b'{"a":"e\xcc\x81","b":[1,null]}'
    True
    """
    _check_parts(data)
    return encode_text(_ENCODER.encode(data))


def encode_text(text: str) -> bytes:
    """Return text as UTF-8.

    Raises:
        ValidationError: lone surrogates.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as cause:
        raise ValidationError("text to be signed must be valid UTF-8: remove lone surrogates") from cause


def _check_parts(data: object) -> None:
    """Check data level by level, since the many texts of a slice are on one level and are checked together."""
    level = [data]
    while not set(map(type, level)) <= _PLAIN:
        level = [part for each in level for part in _list_parts(each)]


def _list_parts(data: object) -> Iterable[object]:
    if isinstance(data, list | tuple):
        return data
    if isinstance(data, Mapping):
        if not all(isinstance(key, str) for key in data):
            raise ValidationError("keys of signed data must be text")
        return data.values()
    if not isinstance(data, str | int | None):
        raise ValidationError(f"signed data must hold text and whole numbers, got {data!r:.40}")
    return ()


def check_name(value: object, name: str, *, may_be_empty: bool = False) -> str:
    r"""Return a text that can be signed and stored as an id.

    Raises:
        ValidationError: no text, blank, longer than 256 characters, or with lone surrogates or U+0000.

    >>> check_name("\ud83d", "anchor")
    Traceback (most recent call last):
    meve.errors.ValidationError: anchor must be valid UTF-8: remove lone surrogates
    """
    if not isinstance(value, str) or not (_VALID_NAME.fullmatch(value) or (may_be_empty and value == "")):
        raise ValidationError(f"{name} must be text that isn't blank, without U+0000, got {value!r:.80}")
    if len(value) > MAX_ID:
        raise ValidationError(f"{name} must have at most {MAX_ID} characters, got {len(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValidationError(f"{name} must be valid UTF-8: remove lone surrogates") from None
    return value


def content_hash(turn: PlacedTurn, tenant: str, conversation: str, key: bytes | None = None) -> str:
    """Return the hash of what a turn says, by whom and when, as 64 hexadecimal digits.

    The same words elsewhere have another hash.

    Args:
        turn: the turn.
        tenant: the tenant's name.
        conversation: the conversation's id.
        key: a secret of the applications, so that nobody who reads the kernel's file can test guesses of a
            text; with one the hash is HMAC-SHA256, without one SHA-256.
    """
    time = turn.time.isoformat() if isinstance(turn.time, date) else turn.time
    message = write_canonical(["meve-content-1", tenant, conversation, turn.id, turn.speaker, time, turn.text])
    return hashlib.sha256(message).hexdigest() if key is None else hmac.digest(key, message, "sha256").hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEntry:
    """What a kernel stores of a turn: its place, and a hash of its content.

    Raises:
        ValidationError: an invalid value.
    """

    id: str
    parents: tuple[str, ...] = ()
    """The ids of the turns that it replies to, the main one first; at most 64."""
    phase: str = ""
    time: float | None = None
    """Seconds since 1970 in UTC; None if unknown."""
    content: str
    """The hash of the content, 64 hexadecimal digits."""

    def __post_init__(self) -> None:
        check_name(self.id, "the id of a turn")
        check_name(self.phase, f"the phase of turn {self.id!r:.80}", may_be_empty=True)
        if not isinstance(self.parents, tuple) or len(self.parents) > MAX_PARENTS:
            raise ValidationError(f"turn {self.id!r:.80} must have at most {MAX_PARENTS} parents, in a tuple")
        for parent in self.parents:
            check_name(parent, f"a parent of turn {self.id!r:.80}")
        if len(set(self.parents)) < len(self.parents):
            raise ValidationError(f"turn {self.id!r:.80} names a parent twice")
        time = self.time
        if time is not None and (isinstance(time, bool) or not isinstance(time, int | float) or not _is_finite(time)):
            raise ValidationError(f"the time of turn {self.id!r:.80} must be seconds or None, got {time!r:.40}")
        object.__setattr__(self, "time", None if time is None else float(time) + 0.0)  # as databases hold it: no -0.0
        if not isinstance(self.content, str) or not _HASH.fullmatch(self.content):
            raise ValidationError(f"the content of turn {self.id!r:.80} must be a hash of 64 hexadecimal digits")

    @classmethod
    def from_turn(cls, turn: PlacedTurn, tenant: str, conversation: str, key: bytes | None = None) -> "TurnEntry":
        """Return the entry for a turn of a conversation; `key` as for `content_hash`."""
        return cls(
            id=turn.id,
            parents=turn.parents,
            phase=turn.phase,
            time=to_seconds(turn.time),
            content=content_hash(turn, tenant, conversation, key),
        )

    @property
    def digest(self) -> str:
        """The hash of all of this, 64 hexadecimal digits."""
        time = None if self.time is None else repr(float(self.time))
        message = write_canonical(["meve-turn-1", self.id, list(self.parents), self.phase, time, self.content])
        return hashlib.sha256(message).hexdigest()


def _is_finite(time: float) -> bool:
    try:
        return math.isfinite(time)
    except OverflowError:
        return False


def write_policy(policy: SlicePolicy) -> dict[str, Any]:
    """Return a policy as JSON data."""
    return asdict(policy) | {"phases": dict(policy.phases)}


def read_policy(data: object) -> SlicePolicy:
    """Return the policy of JSON data; missing values are the defaults.

    Raises:
        ValidationError: an unknown name, or a value out of range.
    """
    known = [field.name for field in fields(SlicePolicy)]
    if not isinstance(data, Mapping) or not set(data) <= set(known):
        raise ValidationError(f"policy must be a mapping with some of {', '.join(known)}, got {data!r:.80}")
    phases = data.get("phases", {})
    if not isinstance(phases, Mapping) or len(phases) > MAX_PHASES:
        raise ValidationError(f"policy.phases must be a mapping with at most {MAX_PHASES} weights, got {phases!r:.80}")
    for phase in phases:
        check_name(phase, "a phase of the policy", may_be_empty=True)
    most = data.get("max_turns")
    if isinstance(most, float) and most.is_integer():
        data = {**data, "max_turns": int(most)}  # 1.0 is an integer in JSON Schema
    try:
        return SlicePolicy(**data)
    except ConfigurationError as cause:
        raise ValidationError(f"policy: {cause}") from cause


def describe_policy(policy: SlicePolicy) -> dict[str, Any]:
    """Return a policy as data for `write_canonical`: 1 and 1.0 are one number."""
    data = {name: repr(float(getattr(policy, name))) for name in ("parent", "child", "sibling", "min_priority")}
    phases = {phase: repr(float(weight)) for phase, weight in policy.phases.items()}
    return {**data, "phases": phases, "max_turns": policy.max_turns}


def chain_version(version: str, entries: Sequence[TurnEntry]) -> str:
    """Return the version of a graph after entries were added; each version tells all entries before it."""
    for entry in entries:
        version = hashlib.sha256(f"{version}:{entry.digest}".encode()).hexdigest()
    return version


def first_version(tenant: str, conversation: str) -> str:
    """Return the version of a conversation without turns."""
    return hashlib.sha256(write_canonical(["meve-graph-1", tenant, conversation])).hexdigest()
