"""What a memory was made from, and what follows from it: it goes with any of them, and outlives none."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from meve.errors import UnknownIdError, ValidationError
from meve.memory.records import SHARED, MemoryRecord, StoredRecord, checked_text
from meve.memory.stores.protocol import Transaction

SESSIONS = "sessions"
"""Where a summary's metadata tells which conversations it is of."""


def checked_origins(ids: object) -> tuple[str, ...]:
    """Ids of origins, sorted, each once.

    Raises:
        ValidationError: not a collection of texts.
    """
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise ValidationError(f"derived_from is {ids!r:.80}: give a list of ids")
    return tuple(sorted({checked_text(each, "an id in derived_from") for each in ids}))


def made_from(
    transaction: Transaction, user: str, record: MemoryRecord, ids: Sequence[str], now: datetime
) -> MemoryRecord:
    """A record that depends on others, and on all that those were made from.

    Raises:
        UnknownIdError: the user has none of an id, or it is over.
    """
    if not ids:
        return record
    origins = []
    for each in ids:
        found = one(transaction, user, each)
        if found is None or found.record.expired(now):
            raise UnknownIdError(f"no memory {each!r:.80} of this user to make another from: it may have gone by now")
        origins.append(found.record)
    every = {each for origin in origins for each in (origin.id, *origin.derived_from)}
    return bounded(transaction, user, replace(record, derived_from=tuple(sorted(every))))


def bounded(
    transaction: Transaction, user: str, record: MemoryRecord, before: MemoryRecord | None = None
) -> MemoryRecord:
    """A record that lives no longer than its origins; where one of them is gone, than it was to live before."""
    found = [one(transaction, user, each) for each in record.derived_from] if user != SHARED else []
    ends = [record.expires_at, *(origin.record.expires_at for origin in found if origin is not None)]
    if before is not None and None in found:
        ends.append(before.expires_at)
    return replace(record, expires_at=min((end for end in ends if end is not None), default=None))


def shortened(transaction: Transaction, user: str, origin: MemoryRecord) -> list[MemoryRecord]:
    """Let what was made from a record live no longer than it does now; those that this changed."""
    changed = []
    for stored in transaction.holding(user, origin.id):
        record = stored.record
        made = bounded(transaction, user, record)
        if record.id == origin.id or record.hold or made.expires_at == record.expires_at:
            continue
        made = replace(made, version=record.version + 1)
        put(transaction, user, replace(stored, record=made))
        changed.append(made)
    return changed


def of_session(found: Sequence[StoredRecord], session: str) -> list[StoredRecord]:
    """Of a user's records those of a session, and what was made from any of them."""
    own = {s.record.id for s in found if session in (s.record.session_id, *s.record.metadata.get(SESSIONS, ()))}
    return [s for s in found if s.record.id in own or not own.isdisjoint(s.record.derived_from)]


def one(transaction: Transaction, user: str, record_id: str) -> StoredRecord | None:
    """A record, archived or not."""
    return transaction.find(user, record_id) or transaction.archived(user, record_id)


def put(transaction: Transaction, user: str, stored: StoredRecord) -> None:
    """A record becomes this one where it is: in the archive, or not."""
    if transaction.archived(user, stored.record.id) is None:
        transaction.replace(user, stored)
    else:
        transaction.archive(user, stored)
