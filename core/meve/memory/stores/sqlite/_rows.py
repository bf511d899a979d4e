"""Records as rows of a table, and back; archived ones as compressed bytes."""

import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from meve.errors import StoreCorruptError
from meve.memory.policy import PolicyClass, Source
from meve.memory.records import MemoryRecord, Opinion, StoredRecord, checked_choice, user_of

COLUMNS = (
    "id", "text", "source", "class", "created", "expires", "session", "tags", "metadata", "reflection", "touched",
    "used", "uses", "superseded", "flagged", "hold", "derived", "version", "tokens", "vector",
)  # fmt: skip
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros(moment: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (moment - EPOCH) // _MICROSECOND


def moment(value: int) -> datetime:
    """What `micros` was made of."""
    return EPOCH + timedelta(microseconds=value)


def to_row(stored: StoredRecord) -> tuple[Any, ...]:
    """The values of `COLUMNS`."""
    r = stored.record
    return (
        r.id, r.text, r.source, r.policy_class, micros(r.created_at), _maybe(r.expires_at), r.session_id,
        json.dumps(r.tags), json.dumps(dict(r.metadata)), r.reflection, _maybe(r.touched_at), _maybe(r.used_at), r.uses,
        r.superseded_by, r.flagged, r.hold, json.dumps(r.derived_from), r.version, stored.tokens,
        np.asarray(stored.vector, dtype="<f4").tobytes(),
    )  # fmt: skip


def from_row(user: str, row: tuple[Any, ...]) -> StoredRecord:
    """A record of a user's, of the values of `COLUMNS`.

    Raises:
        StoreCorruptError: no record's values.
    """
    with readable():
        return _from_row(user, row)


def _from_row(user: str, row: tuple[Any, ...]) -> StoredRecord:
    values = dict(zip(COLUMNS, row, strict=True))
    checked_choice(values["class"], "class", PolicyClass)
    checked_choice(values["source"], "source", Source)
    record = MemoryRecord(
        id=values["id"],
        user_id=user_of(user),
        text=values["text"],
        source=values["source"],
        policy_class=values["class"],
        created_at=moment(values["created"]),
        expires_at=_moment(values["expires"]),
        session_id=values["session"],
        tags=_texts(values["tags"]),
        metadata={} if values["metadata"] == "{}" else json.loads(values["metadata"]),
        reflection=values["reflection"],
        touched_at=_moment(values["touched"]),
        used_at=_moment(values["used"]),
        uses=values["uses"],
        superseded_by=values["superseded"],
        flagged=values["flagged"],
        hold=values["hold"],
        derived_from=_texts(values["derived"]),
        version=values["version"],
    )
    return StoredRecord(record=record, vector=np.frombuffer(values["vector"], dtype="<f4"), tokens=values["tokens"])


def opinion_row(opinion: Opinion) -> tuple[Any, ...]:
    """Score, times and uses as they are stored."""
    return (opinion.reflection, _maybe(opinion.touched_at), _maybe(opinion.used_at), opinion.uses)


def opinion_of(row: tuple[Any, ...]) -> Opinion:
    """What `opinion_row` made."""
    return Opinion(reflection=row[0], touched_at=_moment(row[1]), used_at=_moment(row[2]), uses=row[3])


def packed(stored: StoredRecord) -> bytes:
    """A record for the archive: compressed, its vector in half precision."""
    *values, vector = to_row(stored)
    body = json.dumps(values, ensure_ascii=False).encode()
    halves = np.frombuffer(vector, dtype="<f4").astype("<f2").tobytes()
    return zlib.compress(len(body).to_bytes(4, "big") + body + halves)


def unpacked(user: str, body: bytes) -> StoredRecord:
    """What `packed` made.

    Raises:
        StoreCorruptError: something else.
    """
    with readable():
        data = zlib.decompress(body)
        at = 4 + int.from_bytes(data[:4], "big")
        vector = np.frombuffer(data[at:], dtype="<f2").astype("<f4").tobytes()
        return _from_row(user, (*json.loads(data[4:at]), vector))


@contextmanager
def readable() -> Iterator[None]:
    """What can't be read is damage.

    Raises:
        StoreCorruptError: it says what was found.
    """
    try:
        yield
    except (ValueError, TypeError, OverflowError, zlib.error) as cause:
        raise StoreCorruptError(
            f"a memory's record is damaged ({type(cause).__name__}: {cause}): restore its file from a copy"
        ) from cause


def _texts(stored: str) -> tuple[str, ...]:
    return () if stored == "[]" else tuple(json.loads(stored))


def _maybe(value: datetime | None) -> int | None:
    return None if value is None else micros(value)


def _moment(value: int | None) -> datetime | None:
    return None if value is None else moment(value)
