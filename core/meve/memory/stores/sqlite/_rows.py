"""Records as rows of a table and back; archived records as compressed bytes."""

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, get_args

import numpy as np

from meve.errors import StoreCorruptError
from meve.memory._timestamps import from_micros, micros_or_none, moment_or_none, to_micros
from meve.memory.policy import PolicyClass, RecordSource
from meve.memory.records import MemoryRecord, RecordKind, SharedScore, StoredRecord, kind_of, user_of
from meve.memory.stores.protocol import Field

COLUMNS = (
    "id", "kind", "text", "source", "class", "created", "expires", "session", "tags", "metadata", "reflection",
    "touched", "used", "uses", "valid_from", "valid_to", "superseded", "restored", "flagged", "hold", "pinned",
    "derived", "archived", "version", "tokens", "model", "vector",
)  # fmt: skip
_COLUMNS_5 = tuple(name for name in COLUMNS if name != "model")
_COLUMNS_4 = tuple(name for name in _COLUMNS_5 if name not in {"valid_from", "valid_to", "restored", "pinned"})
_COLUMNS_3 = tuple(name for name in _COLUMNS_4 if name not in {"kind", "archived"})
"""The columns of versions 5, 4 and 3 of the schema."""
_KINDS, _SOURCES, _CLASSES = (frozenset(get_args(choices)) for choices in (RecordKind, RecordSource, PolicyClass))


def to_row(stored: StoredRecord) -> tuple[Any, ...]:
    """Return the values of `COLUMNS`."""
    r = stored.record
    return (
        r.id, r.kind, r.text, r.source, r.policy_class, to_micros(r.created_at), micros_or_none(r.expires_at),
        r.session_id, _json(r.tags), json.dumps(dict(r.metadata)), r.reflection, micros_or_none(r.touched_at),
        micros_or_none(r.used_at), r.uses, micros_or_none(r.valid_from), micros_or_none(r.valid_to), r.superseded_by,
        micros_or_none(r.restored_at), r.flagged, r.hold, int(r.pinned), _json(r.derived_from), int(r.archived),
        r.version, stored.tokens, stored.model, np.asarray(stored.vector, dtype="<f4").tobytes(),
    )  # fmt: skip


def from_rows(rows: Iterable[tuple[Any, ...]]) -> list[StoredRecord]:
    """Return the records of rows: the user's key, the row's number, and the values of `COLUMNS`."""
    with readable():
        return [_from_row(*row) for row in rows]


def _from_row(user: str, row: int, *values: Any) -> StoredRecord:  # noqa: ANN401
    (
        record_id, kind, text, source, policy_class, created, expires, session, tags, metadata, reflection, touched,
        used, uses, valid_from, valid_to, superseded, restored, flagged, hold, pinned, derived, archived, version,
        tokens, model, vector,
    ) = values  # fmt: skip
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
    return StoredRecord(record=record, vector=np.frombuffer(vector, dtype="<f4"), tokens=tokens, model=model, row=row)


def shared_score_row(score: SharedScore) -> tuple[Any, ...]:
    return (score.reflection, micros_or_none(score.touched_at), micros_or_none(score.used_at), score.uses)


def shared_score_of(row: tuple[Any, ...]) -> SharedScore:
    score, touched, used, uses = row
    return SharedScore(reflection=score, touched_at=moment_or_none(touched), used_at=moment_or_none(used), uses=uses)


def pack(stored: StoredRecord) -> bytes:
    """Compress a record for the archive, its vector in half precision."""
    *values, vector = to_row(stored)
    return _pack(values, np.frombuffer(vector, dtype="<f4").astype("<f2").tobytes())


def unpack(user: str, row: int, body: bytes) -> StoredRecord:
    """Return the record that `pack` was given."""
    with readable():
        values, halves = _unpack(body)
        vector = np.frombuffer(halves, dtype="<f2").astype("<f4").tobytes()
        return _from_row(user, row, *values, vector)


def repack_version_3(body: bytes) -> bytes:
    """Return an archived record of version 3 of the schema as one of version 4."""
    values, halves = _unpack(body)
    named = dict(zip(_COLUMNS_3, values, strict=False))  # without the vector
    named |= {"kind": kind_of(named["source"]), "archived": 1}
    return _pack([named[name] for name in _COLUMNS_4[:-1]], halves)


def repack_version_4(body: bytes) -> bytes:
    """Return an archived record of version 4 of the schema as one of version 5."""
    values, halves = _unpack(body)
    named = dict(zip(_COLUMNS_4, values, strict=False))  # without the vector
    closed = None if named["superseded"] is None else named["created"]
    named |= {"valid_from": None, "valid_to": closed, "restored": None, "pinned": 0}
    return _pack([named[name] for name in _COLUMNS_5[:-1]], halves)


def repack_version_5(body: bytes, model: str) -> bytes:
    """Return an archived record of version 5 of the schema as one of version 6; `model` made its vector."""
    values, halves = _unpack(body)
    return _pack([*values, model], halves)


def superseded_by(body: bytes) -> str | None:
    """Return which record replaced an archived one of version 4 of the schema."""
    superseded: str | None = _unpack(body)[0][_COLUMNS_4.index("superseded")]
    return superseded


def _pack(values: list[Any], halves: bytes) -> bytes:
    body = json.dumps(values, ensure_ascii=False).encode()
    return zlib.compress(len(body).to_bytes(4, "big") + body + halves)


def _unpack(body: bytes) -> tuple[list[Any], bytes]:
    data = zlib.decompress(body)
    end = 4 + int.from_bytes(data[:4], "big")
    return json.loads(data[4:end]), data[end:]


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
    except (ValueError, TypeError, OverflowError, zlib.error) as cause:
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
}
"""By field: its column, and the function that decodes the column's value."""
