"""Derived records: each is erased with any of its origins, and expires no later than any of them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from meve.errors import PolicyError, UnknownIdError, ValidationError
from meve.memory.records import SHARED, MemoryRecord, StoredRecord, check_text
from meve.memory.stores._record_store import RecordTransaction

SESSIONS = "sessions"
"""The metadata key under which a summary lists the sessions of its origins."""


def check_origins(ids: object) -> tuple[str, ...]:
    """Return the checked ids of origins, sorted, each once."""
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise ValidationError(f"derived_from must be a list of ids, got {ids!r:.80}")
    return tuple(sorted({check_text(each, "an id in derived_from") for each in ids}))


def derive(
    transaction: RecordTransaction, user: str, record: MemoryRecord, ids: Sequence[str], now: datetime
) -> MemoryRecord:
    """Return a record with its origins, their origins, and an expiry no later than any of theirs."""
    if not ids:
        return record
    origins = []
    for each in ids:
        origin = transaction.find(user, each)
        if origin is None or origin.record.expired(now):
            raise UnknownIdError(f"derived_from names {each!r:.80}, which this user doesn't have: it may have expired")
        origins.append(origin.record)
    every = {each for origin in origins for each in (origin.id, *origin.derived_from)}
    return limit_expiry(transaction, user, replace(record, derived_from=tuple(sorted(every))))


def check_standing(transaction: RecordTransaction, user: str, record: MemoryRecord) -> None:
    """Check that a pinned record or an instruction is what the user said himself, and derived from nothing else.

    Text of documents, tools and assistants must not become an instruction to the model, however it is rewritten.

    Raises:
        PolicyError: it isn't.
    """
    if not record.pinned and record.policy_class != "instruction":
        return
    origins = [transaction.find(user, each) for each in record.derived_from] if user != SHARED else []
    sources = [record.source, *("an unknown record" if s is None else s.record.source for s in origins)]
    if user == SHARED or any(source != "chat_user" for source in sources):
        raise PolicyError(
            f"only what the user said (source chat_user) may be pinned or an instruction, and {record.id!r:.80} comes "
            f"from {', '.join(dict.fromkeys(sources))}: choose another class, or let the user say it"
        )


def limit_expiry(
    transaction: RecordTransaction, user: str, record: MemoryRecord, before: MemoryRecord | None = None
) -> MemoryRecord:
    """Return a record that expires no later than its origins; if it replaced one, or one is gone, than `before`."""
    origins = [transaction.find(user, each) for each in record.derived_from] if user != SHARED else []
    origins = [None if each is None or each.record.superseded_by == record.id else each for each in origins]
    limits = [record.expires_at, *(origin.record.expires_at for origin in origins if origin is not None)]
    if before is not None and None in origins:
        limits.append(before.expires_at)
    return replace(record, expires_at=min((each for each in limits if each is not None), default=None))


def limit_derived(transaction: RecordTransaction, user: str, origin: MemoryRecord) -> list[MemoryRecord]:
    """Make the records derived from an origin expire no later than it. Return those that changed."""
    changed = []
    for stored in transaction.with_derived(user, [origin.id]):
        record = stored.record
        limited = limit_expiry(transaction, user, record)
        if record.id == origin.id or record.hold or limited.expires_at == record.expires_at:
            continue
        limited = replace(limited, version=record.version + 1)
        transaction.replace(user, replace(stored, record=limited))
        changed.append(limited)
    return changed


def of_session(records: Sequence[StoredRecord], session: str) -> list[StoredRecord]:
    """Return the records of one session, and those derived from them."""
    ids = {s.record.id for s in records if session in _sessions_of(s.record)}
    while derived := {s.record.id for s in records if not ids.isdisjoint(s.record.derived_from)} - ids:
        ids |= derived
    return [s for s in records if s.record.id in ids]


def _sessions_of(record: MemoryRecord) -> list[str | None]:
    listed = record.metadata.get(SESSIONS) if record.kind == "summary" else None
    return [record.session_id, *(listed if isinstance(listed, list) else ())]
