"""Records as rows of sealed and open columns, and back; archived records as compressed bytes."""

import json
import math
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, get_args

import numpy as np

from meve.conversation.outcomes import NO_OUTCOMES, OutcomeStatistics
from meve.errors import StoreCorruptError
from meve.memory._timestamps import from_micros, micros_or_none, moment_or_none, to_micros
from meve.memory.policy import PolicyClass, RecordSource
from meve.memory.records import MemoryRecord, RecordKind, SharedScore, StoredRecord, user_of
from meve.memory.stores._sql.key_file import DataKey
from meve.memory.stores._sql.vault import Owner
from meve.memory.stores.protocol import Field

VALUES = (
    "id", "kind", "text", "source", "class", "created", "expires", "session", "tags", "metadata", "reflection",
    "touched", "used", "uses", "valid_from", "valid_to", "superseded", "restored", "flagged", "hold", "pinned",
    "derived", "archived", "version", "tokens", "model", "outcomes", "outline", "vector", "passages",
)  # fmt: skip
"""The values of a record, in the order in which the archive packs them."""
_SEALED = (
    "id", "text", "session", "tags", "metadata", "superseded", "flagged", "hold", "derived", "outcomes", "outline",
)  # fmt: skip
"""The values that are encrypted together with the vectors; version 7 of the schema lacks the last two, 8 the last."""
FOUND_BY = ("id", "session", "superseded", "derived", "hold")
"""Columns that tell hashes of these values, to find a record by; `hold` only tells whether there is one."""
_OPEN = tuple(name for name in VALUES if name not in {*_SEALED, "vector", "passages"})
COLUMNS = ("slot", "sealed", *FOUND_BY, *_OPEN)
"""The columns of a record that isn't in the archive."""
_in_order = itemgetter(*((*_SEALED, *_OPEN, "vector", "passages").index(name) for name in VALUES))
_CONTENT = tuple(VALUES.index(name) for name in ("text", "tags", "metadata"))
_KINDS, _SOURCES, _CLASSES = (frozenset(get_args(choices)) for choices in (RecordKind, RecordSource, PolicyClass))


def to_values(stored: StoredRecord) -> tuple[Any, ...]:
    """Return the values of a record."""
    r = stored.record
    return (
        r.id, r.kind, r.text, r.source, r.policy_class, to_micros(r.created_at), micros_or_none(r.expires_at),
        r.session_id, _json(r.tags), json.dumps(dict(r.metadata)), r.reflection, micros_or_none(r.touched_at),
        micros_or_none(r.used_at), r.uses, micros_or_none(r.valid_from), micros_or_none(r.valid_to), r.superseded_by,
        micros_or_none(r.restored_at), r.flagged, r.hold, int(r.pinned), _json(r.derived_from), int(r.archived),
        r.version, stored.tokens, stored.model, _outcomes_row(r.outcomes), stored.outline,
        np.asarray(stored.vector, dtype="<f4").tobytes(), np.asarray(stored.passages, dtype="<f2").tobytes(),
    )  # fmt: skip


def content_of(values: Sequence[Any]) -> list[Any]:
    """Return the values that a user can read: text, tags and metadata. A new key goes with each change of them."""
    return [values[n] for n in _CONTENT]


def seal_row(owner: Owner, slot: int, key: DataKey, values: Sequence[Any]) -> list[Any]:
    """Return the values of `COLUMNS`."""
    named = dict(zip(VALUES, values, strict=True))
    found_by = hash_names(owner, named)
    head = _encode([*(named[name] for name in _SEALED), len(named["vector"])])
    sealed = key.seal(head + named["vector"] + named["passages"], owner.place("memories", *found_by))
    return [slot, sealed, *found_by, *(named[name] for name in _OPEN)]


def unseal_row(owner: Owner, key: DataKey, columns: Sequence[Any]) -> tuple[Any, ...]:
    """Return the values of a record from `COLUMNS` without the slot.

    Raises:
        KeyIsGone: its key was destroyed.
        ValueError: it is damaged.
    """
    sealed, *found_by = columns[: 1 + len(FOUND_BY)]
    (*head, size), vectors = _decode(key.unseal(sealed, owner.place("memories", *found_by)))
    head += [None] * (len(_SEALED) - len(head))
    row: tuple[Any, ...] = _in_order([*head, *columns[1 + len(FOUND_BY) :], vectors[:size], vectors[size:]])
    return row


def hash_names(owner: Owner, named: Mapping[str, Any]) -> list[Any]:
    """Return the values of `FOUND_BY`."""
    session, superseded = named["session"], named["superseded"]
    return [
        owner.id_hash(named["id"]),
        None if session is None else owner.session_hash(session),
        None if superseded is None else owner.id_hash(superseded),
        _json(tuple(map(owner.id_hash, _texts(named["derived"])))),
        int(bool(named["hold"])),
    ]


def from_values(user: str, row: int, values: Sequence[Any]) -> StoredRecord:
    """Return the record of values. Raise what `readable` maps if they are damaged."""
    (
        record_id, kind, text, source, policy_class, created, expires, session, tags, metadata, reflection, touched,
        used, uses, valid_from, valid_to, superseded, restored, flagged, hold, pinned, derived, archived, version,
        tokens, model, outcomes, outline, vector, passages,
    ) = values  # fmt: skip
    if not math.isfinite(reflection):
        raise ValueError(f"the reflection score is {reflection}")
    if kind not in _KINDS or source not in _SOURCES or policy_class not in _CLASSES:
        raise ValueError(f"kind, source and class are {kind!r:.40}, {source!r:.40} and {policy_class!r:.40}")
    record = MemoryRecord(
        id=record_id,
        kind=kind,
        user_id=user_of(user),
        text=text,
        source=source,
        policy_class=policy_class,
        created_at=from_micros(created),
        expires_at=moment_or_none(expires),
        session_id=session,
        tags=_texts(tags),
        metadata=_mapping(metadata),
        reflection=reflection,
        touched_at=moment_or_none(touched),
        used_at=moment_or_none(used),
        uses=uses,
        outcomes=_outcomes_of(outcomes),
        valid_from=moment_or_none(valid_from),
        valid_to=moment_or_none(valid_to),
        superseded_by=superseded,
        restored_at=moment_or_none(restored),
        flagged=flagged,
        hold=hold,
        pinned=bool(pinned),
        derived_from=_texts(derived),
        archived=bool(archived),
        version=version,
    )
    whole = np.frombuffer(vector, dtype="<f4")
    parts = np.frombuffer(passages, dtype="<f2").reshape(-1, max(1, len(whole)))
    return StoredRecord(
        record=record, vector=whole, tokens=tokens, model=model, passages=parts, outline=outline or "", row=row
    )


def shared_score_row(score: SharedScore) -> tuple[Any, ...]:
    outcomes = _outcomes_row(score.outcomes)
    return (
        score.reflection, micros_or_none(score.touched_at), micros_or_none(score.used_at), score.uses,
        outcomes and json.dumps(outcomes),
    )  # fmt: skip


def shared_score_of(row: tuple[Any, ...]) -> SharedScore:
    score, touched, used, uses, outcomes = row
    return SharedScore(
        reflection=score, touched_at=moment_or_none(touched), used_at=moment_or_none(used), uses=uses,
        outcomes=_outcomes_of(outcomes and json.loads(outcomes)),
    )  # fmt: skip


def _outcomes_row(outcomes: OutcomeStatistics) -> list[float] | None:
    return [outcomes.count, outcomes.mean, outcomes.squares] if outcomes.count else None


def _outcomes_of(stored: Sequence[float] | None) -> OutcomeStatistics:
    if stored is None:
        return NO_OUTCOMES
    count, mean, squares = stored
    return OutcomeStatistics(count=int(count), mean=float(mean), squares=float(squares))


def pack(values: Sequence[Any]) -> bytes:
    """Compress the values of a record for the archive, its vectors in half precision."""
    *others, vector, passages = values
    whole = np.frombuffer(vector, dtype="<f4").astype("<f2").tobytes()
    return pack_values([*others, len(whole)], whole + passages)


def unpack(body: bytes) -> list[Any]:
    """Return the values that `pack` was given. Raise what `readable` maps if they are damaged."""
    (*values, size), halves = unpack_values(body)
    values += [None] * (len(VALUES) - 2 - len(values))  # versions before 9 of the schema lack some
    return [*values, np.frombuffer(halves[:size], dtype="<f2").astype("<f4").tobytes(), halves[size:]]


def pack_values(values: Sequence[Any], halves: bytes) -> bytes:
    """Compress values and vectors."""
    return zlib.compress(_encode(values) + halves)


def unpack_values(body: bytes) -> tuple[list[Any], bytes]:
    """Return values and vectors."""
    return _decode(zlib.decompress(body))


def _encode(values: Sequence[Any]) -> bytes:
    body = json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogateescape")
    return len(body).to_bytes(4, "big") + body


def _decode(data: bytes) -> tuple[list[Any], bytes]:
    end = 4 + int.from_bytes(data[:4], "big")
    return json.loads(data[4:end].decode()), data[end:]


@contextmanager
def readable() -> Iterator[None]:
    """Turn errors of values that can't be read into StoreCorruptError."""
    try:
        yield
    except sqlite3.OperationalError as cause:
        if "decode" not in str(cause):
            raise
        raise StoreCorruptError(
            "a memory's record is damaged (text that is no UTF-8): restore its file from a copy"
        ) from None  # SQLite's message holds the text
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, zlib.error) as cause:
        raise StoreCorruptError(
            f"a memory's record is damaged ({type(cause).__name__}: {cause}): restore its file from a copy"
        ) from cause


def _mapping(stored: str) -> dict[str, Any]:
    value = {} if stored == "{}" else json.loads(stored)
    if not isinstance(value, dict):
        raise TypeError(f"metadata is {value!r:.40}")
    return value


def _json(texts: tuple[str, ...]) -> str:
    return json.dumps(texts) if texts else "[]"


def _texts(stored: str) -> tuple[str, ...]:
    return () if stored == "[]" else tuple(json.loads(stored))


FIELD_COLUMNS: dict[Field, tuple[str, Callable[[Any], Any] | None]] = {
    "row": ("row", None),
    "id": ("id", None),
    "session_id": ("session", None),
    "metadata": ("metadata", _mapping),
    "archived": ("archived", bool),
    "created_at": ("created", from_micros),
    "expires_at": ("expires", moment_or_none),
    "touched_at": ("touched", moment_or_none),
    "hold": ("hold", None),
}
"""By field: its column, and the function that decodes the column's value."""
