"""What is kept under a key: an item of a namespace, how it becomes a record, and how it is read back from one."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from meve.errors import PassageError, ValidationError
from meve.memory.policy import PolicyClass
from meve.memory.records import MemoryRecord, checked_metadata
from meve.memory.stores.sqlite._rows import micros, moment

Label: TypeAlias = str | int
"""One step of a namespace; 1 and "1" are two. Any text: with dots, with NUL, empty."""
Namespace: TypeAlias = tuple[Label, ...]

_LONGEST = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A value under a key. The value is a copy: what becomes of it changes nothing that is stored."""

    namespace: Namespace
    key: str
    value: dict[str, Any]
    created_at: datetime
    """When the key was put first."""
    updated_at: datetime
    """When it was put last."""
    expires_at: datetime | None
    """From this moment on it is never handed out; None for never."""
    score: float | None = None
    """How like it is to the question, in [0, 1]; None where nothing was asked, or where it isn't searchable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """A value that is to lie under a key."""

    namespace: Namespace
    key: str
    value: Mapping[str, Any]
    """JSON-plain."""
    text: str | None = None
    """What it is searched by; all that the value says if None, and nothing if empty."""
    ttl: timedelta | None = None
    """How long it lives; as its class if neither this nor `expires_at` is given."""
    expires_at: datetime | None = None
    policy_class: PolicyClass = "canonical"
    """Canonical ones live until they are deleted, and nothing prunes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """A key under which nothing is to lie."""

    namespace: Namespace
    key: str


def checked_namespace(namespace: object) -> Namespace:
    """A namespace whose every label can be kept.

    Raises:
        ValidationError: no tuple or list, or a label that is neither text nor an int.
    """
    if isinstance(namespace, str) or not isinstance(namespace, tuple | list):
        raise ValidationError(f"the namespace is {namespace!r:.80}: give a tuple of labels")
    for label in namespace:
        if isinstance(label, bool) or not isinstance(label, str | int):
            raise ValidationError(f"label {label!r:.80} of namespace {namespace!r:.120}: give a string or an int")
    return tuple(namespace)


def item_id(namespace: Namespace, key: object) -> str:
    """The id of the record that holds an item; what it was made of can be told from it, if that isn't too long.

    Raises:
        ValidationError: a namespace or a key that can't be.

    >>> item_id(("memories", 7), "a.b")
    '[["memories",7],"a.b"]'
    """
    if not isinstance(key, str):
        raise ValidationError(f"the key is {key!r:.80}: give text")
    made = _json([list(checked_namespace(namespace)), key])
    if len(made) <= _LONGEST:
        return made
    return f"item {hashlib.sha256(made.encode()).hexdigest()}"


def namespace_of(record: MemoryRecord) -> Namespace | None:
    """The namespace of the item that a record holds; None for one that holds none."""
    return tuple(record.metadata["namespace"]) if record.source == "item" else None


def updated(record: MemoryRecord) -> int:
    """When an item was put last, in microseconds since 1970."""
    return int(record.metadata["updated"])


def lifetime(record: MemoryRecord) -> timedelta | None:
    """How long an item lives from each reading on that refreshes it; None for one that no reading refreshes."""
    seconds = record.metadata["ttl"]
    return None if seconds is None else timedelta(seconds=seconds)


def item_of(record: MemoryRecord, score: float | None = None) -> Item:
    """The item that a record holds."""
    held = record.metadata
    return Item(
        namespace=tuple(held["namespace"]),
        key=held["key"],
        value=_copied(held["value"]),
        created_at=record.created_at,
        updated_at=moment(held["updated"]),
        expires_at=record.expires_at,
        score=score,
    )


def metadata_of(put: Put, now: datetime) -> dict[str, Any]:
    """What a record keeps of an item.

    Raises:
        PassageError: a value that JSON can't hold.
    """
    if not isinstance(put.value, Mapping):
        raise PassageError(f"the value of {put.key!r:.80} is {put.value!r:.80}: give a mapping from names to values")
    return {
        "namespace": list(put.namespace),
        "key": put.key,
        "value": checked_metadata(put.value),
        "updated": micros(now),
        "ttl": None if put.ttl is None else put.ttl.total_seconds(),
    }


def canonical(value: Mapping[str, Any]) -> str:
    """A value as one text, equal for equal values: what the log's hash is of."""
    return json.dumps(value, sort_keys=True)


def spelled(value: Mapping[str, Any]) -> str:
    """All that a value says, as what is searched: a single text as it is, several after their names.

    >>> spelled({"content": {"text": "Likes tea."}})
    'Likes tea.'
    >>> spelled({"drink": "tea", "cups": [2, 3], "at": None})
    'drink: tea; cups: 2; cups: 3'
    """
    said = list(_leaves("", value))
    return said[0][1] if len(said) == 1 else "; ".join(f"{name}: {text}" for name, text in said)


def searchable(text: str, most: int) -> str:
    """A text as a record may hold it: what can't be written is left out, and so is what is too long."""
    return text.replace("\x00", " ").encode("utf-8", "replace").decode()[:most].strip()


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


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
