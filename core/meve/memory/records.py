"""The records of a memory, their owners' keys, and the checks of their values."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from meve._json_limits import NESTING, is_nested_deeper
from meve.conversation.outcomes import NO_OUTCOMES, OutcomeStatistics
from meve.errors import PassageError, ValidationError, show
from meve.memory._expiry import has_passed
from meve.memory.policy import PolicyClass, RecordSource
from meve.types import FloatArray

UserId: TypeAlias = str | int
"""The owner of a memory. The int 1 and the str "1" are different users."""

RecordKind: TypeAlias = Literal["fact", "item", "message", "summary"]
"""Facts are added by `memory.add`, items by `memory.items`, messages by `memory.messages`; summaries replace facts."""

HalfArray: TypeAlias = npt.NDArray[np.float16]
"""Vectors in half precision."""

SHARED = ""
"""The key of the shared space, from which every user recalls; no user's key is empty."""

SCOPES = ("agent_id", "run_id")
"""Scopes of records besides the user, kept in metadata: options of `add`, and filters of `search`."""

ID_LENGTH = 512
NAME_LENGTH = 2_000
"""The most characters of a session's, a user's and a tag's name."""
REASON_LENGTH = 20_000
"""The most characters of a reason for the audit log."""
MAX_TAGS = 256
METADATA_LENGTH, VALUE_LENGTH = 1_000_000, 16_000_000
"""The most characters of metadata, and of the value of an item or a message, as JSON."""
_MAX_INT = 10**1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord:
    """One memory. Times are aware, in UTC."""

    id: str
    """Unique among the records of its user."""
    user_id: UserId | None
    """Its owner; None in the shared space."""
    text: str
    source: RecordSource
    policy_class: PolicyClass
    created_at: datetime
    expires_at: datetime | None
    """The moment of expiry: from then on it is never returned. None means that it doesn't expire."""
    kind: RecordKind = "fact"
    session_id: str | None = None
    tags: tuple[str, ...] = ()
    """Sorted, in lower case, each once."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """JSON-plain values."""
    reflection: float = 50.0
    """Its usefulness at `touched_at`, from 0 to 100; decays with idle time when it is read."""
    touched_at: datetime | None = None
    """When it was last recalled; None for never."""
    used_at: datetime | None = None
    """When an answer last used it; None for never."""
    uses: int = 0
    """The number of answers that used it."""
    outcomes: OutcomeStatistics = NO_OUTCOMES
    """How useful it was where it was recalled: by `reflect` and `record_outcome`."""
    valid_from: datetime | None = None
    """From when on it holds; None for `created_at`."""
    valid_to: datetime | None = None
    """Until when it held; None if it still holds. Closed memories are recalled only on request."""
    superseded_by: str | None = None
    """The id of the memory that replaced it, because it contradicts it, says the same or summarises it."""
    restored_at: datetime | None = None
    """When `restore` took it back; from then on, maintenance doesn't prune, archive or summarise it."""
    flagged: str = ""
    """Why it should be reviewed; empty for no reason."""
    hold: str = ""
    """Why it may not be changed or erased; empty for no hold."""
    pinned: bool = False
    """Whether it stands in every prompt of its user, and is never pruned, summarised or archived."""
    derived_from: tuple[str, ...] = ()
    """The ids of the memories that it was merged, summarised or otherwise derived from."""
    archived: bool = False
    """Whether it is archived: searches leave it out, and lists include it only on request."""
    version: int = 1
    """Rises with each change."""

    @property
    def is_closed(self) -> bool:
        """Whether another memory replaced it."""
        return self.valid_to is not None or self.superseded_by is not None

    @property
    def is_standing(self) -> bool:
        """Whether it stands in every prompt: what the user said himself, pinned or of the class `instruction`."""
        return self.source == "chat_user" and (self.pinned or self.policy_class == "instruction")

    def was_valid(self, at: datetime) -> bool:
        """Return whether it held at a moment."""
        begin, end = validity(self)
        return begin <= at and (end is None or at < end)

    def expired(self, now: datetime) -> bool:
        """Return whether it has expired."""
        return has_passed(self.expires_at, now)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data, times in ISO 8601."""
        data: dict[str, Any] = {}
        for name in self.__slots__:
            value = getattr(self, name)
            data[name] = value.isoformat() if isinstance(value, datetime) else value
        data["outcomes"] = asdict(self.outcomes)
        return {**data, "tags": list(self.tags), "derived_from": list(self.derived_from), "metadata": {**self.metadata}}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecord:
    """A record with its embedding and its size."""

    record: MemoryRecord
    vector: FloatArray
    """The embedding of its text, shape (d,)."""
    tokens: int
    """The number of tokens of its text, by the memory's tokenizer."""
    model: str = ""
    """The embedder that made the vectors: its name and dimension. Vectors of different models are never compared."""
    passages: HalfArray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float16))
    """The embeddings of the passages of a long text, shape (m, d), of length 1 and in half precision; none for a short
    one."""
    outline: str = ""
    """What tells its text apart from most others; empty for a long text, and for records of an earlier version."""
    row: int = 0
    """The store's number of the record. It rises with each new record, and is never reused."""
    altered: tuple[str, ...] = ()
    """Fields that the store keeps a second time, to find the record by, and whose second value differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedScore:
    """The usefulness of a shared record to one user; see the fields of `MemoryRecord`."""

    reflection: float
    touched_at: datetime | None = None
    used_at: datetime | None = None
    uses: int = 0
    outcomes: OutcomeStatistics = NO_OUTCOMES


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStats:
    """The size of a memory."""

    records: int
    """Active records."""
    archived: int
    users: int
    """Users that have a record, archived or not, without the shared space."""
    events: int
    """Entries of the audit log."""
    bytes: int
    """The size of the store's files."""


def validity(record: MemoryRecord) -> tuple[datetime, datetime | None]:
    """Return from when on and until when a record holds; None for no end."""
    begin = record.valid_from or record.created_at
    return begin, record.valid_to or (begin if record.superseded_by is not None else None)


def is_part(record: MemoryRecord, by: MemoryRecord) -> bool:
    """Return whether a record was closed by one that contains it: as a copy, an earlier version or a part of a summary.

    If not, a judge or a caller found that the other statement replaces it, or an extractor that it says more.
    """
    if record.superseded_by != by.id or record.id not in by.derived_from:
        return False
    return by.kind == "summary" or not record.flagged.endswith(f" {by.id}")


def is_copy(record: MemoryRecord, by: MemoryRecord) -> bool:
    """Return whether a fact was merged into another one, since both said the same in equal words."""
    return record.kind == by.kind == "fact" and is_part(record, by)


def without_copies(record: MemoryRecord, others: Iterable[MemoryRecord]) -> MemoryRecord:
    """Return a record that isn't derived from its copies among others: it says the same by itself."""
    copies = {each.id for each in others if is_copy(each, record)}
    return replace(record, derived_from=tuple(each for each in record.derived_from if each not in copies))


def is_own_history(record: MemoryRecord, by: MemoryRecord) -> bool:
    """Return whether deleting a record deletes one that it closed: a part, or what a caller wrote it in place of.

    What a judge or an extractor closed has the reason in `flagged`: a guess must not widen an erasure.
    """
    return is_part(record, by) or (record.superseded_by == by.id and not record.flagged)


def kind_of(source: RecordSource) -> RecordKind:
    """Return the kind of a record of this source."""
    return source if source in ("item", "message", "summary") else "fact"


def user_key(user_id: object) -> str:
    """Return the key under which a user's records are stored; different for every user.

    Raises:
        ValidationError: the user is None, blank, or neither a string nor an int.

    >>> user_key("alice"), user_key(1), user_key("1")
    ('s:alice', 'i:1', 's:1')
    """
    if isinstance(user_id, bool) or not isinstance(user_id, str | int):
        raise ValidationError(
            f"user_id must be a string or an int, got {show(user_id, 80)}: for records of all users call add_shared"
        )
    if isinstance(user_id, int):
        if abs(user_id) >= _MAX_INT:
            raise ValidationError("user_id must be an int of at most 1,000 digits, or a string: shorten it")
        return "i:" + int.__repr__(user_id)  # of subclasses, too, whatever their own text is
    if not user_id.strip():
        raise ValidationError(f"user_id must not be blank, got {show(user_id, 40)}")
    return "s:" + str.__str__(check_text(user_id, "user_id", NAME_LENGTH))


def user_of(key: str) -> UserId | None:
    """Return the user of a key; None for the shared space."""
    kind, _, name = key.partition(":")
    return None if key == SHARED else int(name) if kind == "i" else name


def other_type_of(key: str) -> UserId | None:
    """Return the user of the other type whose id reads the same: 5 for the key of "5"; None if there is none.

    >>> other_type_of("s:5"), other_type_of("i:5"), other_type_of("s:05")
    (5, '5', None)
    """
    kind, _, name = key.partition(":")
    if kind == "i":
        return name
    is_int = len(name) <= 1_000 and name.removeprefix("-").isdecimal() and name.isascii() and str(int(name)) == name
    return int(name) if is_int else None


def check_text(value: object, name: str, most: int | None = None) -> str:
    """Return a text that can be stored.

    Raises:
        PassageError: it is no text, blank, no valid UTF-8, holds a NUL, or has more than `most` characters.
    """
    if not isinstance(value, str):
        raise PassageError(f"{name} must be text, got {show(value, 80)}")
    if not value.strip():
        raise PassageError(f"{name} must not be blank, got {show(value, 40)}")
    if "\x00" in value:
        raise PassageError(f"{name} must not contain a NUL character, got {show(value, 80)}: remove it")
    try:
        value.encode()
    except UnicodeEncodeError as cause:
        raise PassageError(f"{name} must be valid UTF-8, got {show(value, 80)}: remove lone surrogates") from cause
    if most is not None and len(value) > most:
        raise PassageError(
            f"{name} must have at most {most:,} characters, got {len(value):,}: "
            + ("split it, or raise limits.text" if name == "text" else "shorten it")
        )
    return value


def check_id(value: object, name: str = "id") -> str:
    """Return a record's id.

    Raises:
        PassageError: it is no text, blank, can't be stored, or has more than 512 characters.
    """
    return check_text(value, name, ID_LENGTH)


def check_choice(value: object, name: str, kind: Any) -> Any:  # noqa: ANN401
    """Return a value of a Literal.

    Raises:
        ValidationError: the value isn't one of them.
    """
    if not isinstance(value, str) or value not in get_args(kind):
        raise ValidationError(f"{name} must be one of {', '.join(get_args(kind))}, got {show(value, 80)}")
    return value


def check_tags(tags: object) -> tuple[str, ...]:
    """Return tags as they are stored: in lower case, sorted, each once.

    Raises:
        ValidationError: `tags` is no collection of texts.

    >>> check_tags(["Gardening", " soil ", "gardening"])
    ('gardening', 'soil')
    """
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise ValidationError(f"tags must be a list of texts, got {show(tags, 80)}")
    checked = tuple(sorted({check_text(tag, "a tag", NAME_LENGTH).strip().casefold() for tag in tags}))
    if len(checked) > MAX_TAGS:
        raise ValidationError(f"tags must be at most {MAX_TAGS}, got {len(checked):,}: give fewer")
    return checked


def check_metadata(metadata: object, name: str = "metadata", most: int = METADATA_LENGTH) -> dict[str, Any]:
    """Return metadata as it comes back from JSON.

    Raises:
        PassageError: it is no mapping from strings to values that JSON can hold, is nested too deep, has more than
            `most` characters as JSON, or has names that JSON makes equal, such as 1 and "1".
    """
    if not isinstance(metadata, Mapping) or not all(isinstance(key, str) for key in metadata):
        raise PassageError(f"{name} must be a mapping from strings to JSON values, got {show(metadata, 80)}")
    if is_nested_deeper(metadata, NESTING, most):
        raise PassageError(f"{name} must be nested at most {NESTING} deep and hold at most {most:,} values, got more")
    try:
        text = json.dumps(dict(metadata), allow_nan=False)
        stored: dict[str, Any] = json.loads(text)
    except (TypeError, ValueError, RecursionError) as cause:
        raise PassageError(f"{name} must hold only JSON values, got {show(metadata, 120)}: {cause}") from cause
    if len(text) > most:
        raise PassageError(f"{name} must have at most {most:,} characters as JSON, got {len(text):,}: shorten it")
    if _count_names(metadata) != _count_names(stored):
        raise PassageError(f"{name} must not hold names that JSON makes equal, such as 1 and '1': rename one of them")
    return stored


def _count_names(value: object) -> int:
    if isinstance(value, Mapping):
        return len(value) + sum(map(_count_names, value.values()))
    return sum(map(_count_names, value)) if isinstance(value, list | tuple) else 0


def check_scopes(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the checked values of the options in `SCOPES` that are given, which are metadata of a record.

    Raises:
        PassageError: a value is no text, or blank.

    >>> check_scopes({"agent_id": "planner", "run_id": None, "limit": 3})
    {'agent_id': 'planner'}
    """
    return {name: check_text(options[name], name, ID_LENGTH) for name in SCOPES if options.get(name) is not None}


def check_ids(values: object, name: str) -> list[str]:
    """Return the ids of records.

    Raises:
        ValidationError: `values` is no collection of texts, or an id is invalid.
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValidationError(f"{name} must be a list of ids, got {show(values, 80)}")
    return [check_text(each, f"an id in {name}") for each in values]


def check_count(value: object, name: str) -> int:
    """Return a whole number of 0 or more.

    Raises:
        ValidationError: it is anything else.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValidationError(f"{name} must be a whole number, 0 or more, got {show(value, 40)}")
    return value


def check_flag(value: object, name: str) -> bool:
    """Return True or False.

    Raises:
        ValidationError: it is anything else.
    """
    if not isinstance(value, bool):
        raise ValidationError(f"{name} must be True or False, got {show(value, 40)}")
    return value
