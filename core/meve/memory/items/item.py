"""An item, the value under a key of a namespace: its checks, its record, and back."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from meve.errors import ValidationError
from meve.memory._passages import MAX_PASSAGES, PARTS
from meve.memory._timestamps import from_micros, to_micros
from meve.memory.policy import PolicyClass
from meve.memory.records import ID_LENGTH, VALUE_LENGTH, MemoryRecord, check_metadata

Label: TypeAlias = str | int
"""One step of a namespace. 1 and "1" are different; texts may be empty, and may contain dots or NUL."""
Namespace: TypeAlias = tuple[Label, ...]
NAMES_LENGTH = 65_536
"""The most characters of a namespace and a key as JSON."""
GENERAL_NAMES = {"content", "data", "fact", "facts", "memory", "note", "text", "value"}
"""Names of fields that tell nothing about their text."""
_MAX_INT = 10**1_000
_encode = json.JSONEncoder(sort_keys=True).encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A value under a key. The value is a copy: changing it changes nothing in the store."""

    namespace: Namespace
    key: str
    value: dict[str, Any]
    created_at: datetime
    """When the key was first put."""
    updated_at: datetime
    """When it was last put."""
    expires_at: datetime | None
    """The moment of expiry: from then on it is never returned. None means that it doesn't expire."""
    score: float | None = None
    """Its relevance to the query, in [0, 1]; None without a query, or if the item isn't searchable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """A value to put under a key."""

    namespace: Namespace
    key: str
    value: Mapping[str, Any]
    """JSON-plain."""
    text: str | Sequence[str] | None = None
    """The text by which it is searched: None for all texts of the value, empty for none. Of several texts, each is
    embedded by itself, and the best counts."""
    ttl: timedelta | None = None
    """Its lifetime; None for the lifetime until `expires_at`, or that of its class."""
    expires_at: datetime | None = None
    policy_class: PolicyClass = "canonical"
    """Its class; canonical items are kept until they are deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """A key to delete."""

    namespace: Namespace
    key: str


def check_namespace(namespace: object) -> Namespace:
    """Return a namespace as a tuple.

    Raises:
        ValidationError: it is no tuple or list, or a label is neither a string nor an int.
    """
    if isinstance(namespace, str) or not isinstance(namespace, tuple | list):
        raise ValidationError(f"namespace must be a tuple of strings and ints, got {namespace!r:.80}")
    for label in namespace:
        if isinstance(label, bool) or not isinstance(label, str | int):
            raise ValidationError(
                f"a label of a namespace must be a string or an int, got {label!r:.80} in {namespace!r:.120}"
            )
    return tuple(namespace)


def item_id(namespace: Namespace, key: object) -> str:
    """Return the id of an item's record: namespace and key as JSON, or their hash if that is too long.

    Raises:
        ValidationError: the namespace or the key is invalid.

    >>> item_id(("memories", 7), "a.b")
    '[["memories",7],"a.b"]'
    """
    if not isinstance(key, str):
        raise ValidationError(f"key must be a string, got {key!r:.80}")
    labels = list(check_namespace(namespace))
    if any(isinstance(label, int) and abs(label) >= _MAX_INT for label in labels):
        raise ValidationError("a label of a namespace must be an int of at most 1,000 digits, or a string: shorten it")
    name = json.dumps([labels, key], separators=(",", ":"))
    if len(name) > NAMES_LENGTH:
        raise ValidationError(
            f"namespace and key must have at most {NAMES_LENGTH:,} characters as JSON, got {len(name):,}: shorten them"
        )
    if len(name) <= ID_LENGTH:
        return name
    return f"item {hashlib.sha256(name.encode()).hexdigest()}"


def namespace_of(record: MemoryRecord) -> Namespace | None:
    """Return the namespace of an item's record; None for other records."""
    return tuple(record.metadata["namespace"]) if record.kind == "item" else None


def updated_micros(record: MemoryRecord) -> int:
    """Return when an item was last put, in microseconds since 1970."""
    return int(record.metadata["updated"])


def refresh_ttl(record: MemoryRecord) -> timedelta | None:
    """Return the lifetime of an item after each refreshing read; None if reads don't refresh it."""
    seconds = record.metadata["ttl"]
    return None if seconds is None else timedelta(seconds=seconds)


def item_of(record: MemoryRecord, score: float | None = None) -> Item:
    """Return the item of a record."""
    stored = record.metadata
    return Item(
        namespace=tuple(stored["namespace"]),
        key=stored["key"],
        value=_copied(stored["value"]),
        created_at=record.created_at,
        updated_at=from_micros(stored["updated"]),
        expires_at=record.expires_at,
        score=score,
    )


def metadata_of(put: Put, now: datetime) -> dict[str, Any]:
    """Return the metadata of an item's record, but for the parts of its text.

    Raises:
        PassageError: JSON can't hold the value.
        ValidationError: the lifetime is none.
    """
    if not isinstance(put.ttl, timedelta | None):
        raise ValidationError(f"ttl must be a timedelta above zero, got {put.ttl!r:.80}")
    return {
        "namespace": list(put.namespace),
        "key": put.key,
        "value": check_metadata(put.value, f"the value of key {put.key!r:.80}", VALUE_LENGTH),
        "updated": to_micros(now),
        "ttl": None if put.ttl is None else put.ttl.total_seconds(),
    }


def parts_of(texts: Sequence[str]) -> dict[str, Any]:
    """Return the metadata that tells the texts of an item apart; none for a single one.

    Texts beyond the first `MAX_PASSAGES` - 1 are one.
    """
    lengths = [len(text) for text in (*texts[: MAX_PASSAGES - 1], "\n".join(texts[MAX_PASSAGES - 1 :])) if text]
    return {PARTS: lengths} if len(lengths) > 1 else {}


def canonical(value: Mapping[str, Any]) -> str:
    """Return a value as JSON, equal for equal values."""
    return _encode(value)


def value_text(value: Mapping[str, Any]) -> str:
    """Return all texts of a value as one, each after its name; a single text without a name such as `text`.

    >>> value_text({"content": {"text": "Likes tea."}}), value_text({"employer": "Acme"})
    ('Likes tea.', 'employer: Acme')
    >>> value_text({"drink": "tea", "cups": [2, 3], "at": None})
    'drink: tea; cups: 2; cups: 3'
    """
    texts = list(_leaves("", value))
    if len(texts) == 1 and texts[0][0].lower() in GENERAL_NAMES:
        return texts[0][1]
    return "; ".join(f"{name}: {text}" for name, text in texts)


def named_texts(value: Mapping[str, Any]) -> str:
    r"""Return all texts of a value, each on a line of its own after its name.

    >>> named_texts({"login": {"user": "ann", "password": "hunter2"}})
    'user: ann\npassword: hunter2'
    """
    return "\n".join(f"{name}: {text}" for name, text in _leaves("", value))


def searchable(text: str, most: int) -> str:
    """Return a text without characters that can't be stored, cut to a length."""
    return text.replace("\x00", " ").encode("utf-8", "replace").decode()[:most].strip()


def searchable_texts(text: str | Sequence[str], most: int) -> list[str]:
    r"""Return one or several different texts, searchable, and together not longer than `most`.

    Raises:
        ValidationError: it is neither a string nor a list of strings.

    >>> searchable_texts(["tea", "", "a\x00cup"], 7)
    ['tea', 'a c']
    """
    texts = [text] if isinstance(text, str) else text
    if not isinstance(texts, list | tuple) or not all(isinstance(each, str) for each in texts):
        raise ValidationError(f"text must be a string, a list of strings, or None, got {text!r:.80}")
    cut: list[str] = []
    for each in dict.fromkeys(texts):
        if most > 0 and (short := searchable(each, most)):
            cut.append(short)
            most -= len(short) + 1
    return cut


def _leaves(name: str, value: object) -> Iterable[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves(str(key), each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _leaves(name, each)
    elif value is not None and str(value).strip():
        yield name, str(value)


def _copied(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value
