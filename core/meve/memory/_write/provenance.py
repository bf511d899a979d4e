"""Derived records: each is erased with any of its origins, and expires no later than any of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from meve.errors import PolicyError, UnknownIdError
from meve.memory._contradiction.claims import have_equal_words, parse_claim
from meve.memory.records import SHARED, MemoryRecord, StoredRecord, check_ids, is_copy, is_own_history, without_copies
from meve.memory.stores._record_transaction import RecordTransaction

SESSIONS = "sessions"
"""The metadata key under which a summary lists the sessions of its origins."""


def check_origins(ids: object) -> tuple[str, ...]:
    """Return the checked ids of origins, sorted, each once."""
    return tuple(sorted(set(check_ids(ids, "derived_from"))))


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
    every = {each for origin in origins for each in (origin.id, *find_origins(transaction, user, origin))}
    return limit_expiry(transaction, user, replace(record, derived_from=tuple(sorted(every))))


def find_origins(transaction: RecordTransaction, user: str, record: MemoryRecord) -> tuple[str, ...]:
    """Return the ids that a record is derived from, without its copies, which end by themselves."""
    closed = transaction.replaced_by(user, [record.id]) if record.derived_from else []
    return without_copies(record, (stored.record for stored in closed)).derived_from


def check_standing(
    transaction: RecordTransaction, user: str, record: MemoryRecord, former: MemoryRecord | None = None
) -> None:
    """Check that a pinned record or an instruction is what the user said himself, and derived from nothing else.

    Text of documents, tools and assistants must not become an instruction to the model, however it is rewritten.

    Args:
        transaction: the transaction.
        user: the user's key.
        record: the record.
        former: the record in place of which it is written now.

    Raises:
        PolicyError: it isn't.
    """
    if not record.pinned and record.policy_class != "instruction":
        return
    origins = [transaction.find(user, each) for each in record.derived_from] if user != SHARED else []
    origins = [each for each in origins if each is None or not is_copy(each.record, record)]
    sources = [record.source, *("an unknown record" if s is None else s.record.source for s in origins)]
    sources += [each.source for each in _find_former(transaction, user, record, former)]
    if user == SHARED or any(source != "chat_user" for source in sources):
        raise PolicyError(
            f"only what the user said (source chat_user) may be pinned or an instruction, and this comes from "
            f"{', '.join(dict.fromkeys(sources))}: choose another class, or let the user say it"
        )


def _find_former(
    transaction: RecordTransaction, user: str, record: MemoryRecord, former: MemoryRecord | None
) -> list[MemoryRecord]:
    """Return the records in place of which callers wrote this one, in one or several steps."""
    found: dict[str, MemoryRecord] = {}
    later = [record, *([] if former is None else [former])]
    while later:
        found.update((each.id, each) for each in later)
        closed = [
            s.record for s in transaction.replaced_by(user, [each.id for each in later]) if s.record.id not in found
        ]
        later = [r for r in closed if _is_former(r, found[r.superseded_by or ""])]
    return list(found.values())


def _is_former(record: MemoryRecord, by: MemoryRecord) -> bool:
    """Return whether a caller wrote one record in place of the other, which is no copy that was merged into it."""
    return is_own_history(record, by) and not is_copy(record, by)


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
    """Return the records of one session, and those derived from them.

    What only repeats a record of the session, and was told elsewhere, isn't derived from it.
    """
    by_id = {s.record.id: s.record for s in records}
    ids = {each for each, record in by_id.items() if session in _sessions_of(record)}
    while (
        derived := {
            each
            for each, record in by_id.items()
            if any(origin in ids and not _repeats(by_id[origin], record) for origin in record.derived_from)
        }
        - ids
    ):
        ids |= derived
    return [s for s in records if s.record.id in ids]


def release_copies(
    transaction: RecordTransaction, user: str, records: Iterable[StoredRecord], tag: Callable[[str], Iterable[str]]
) -> list[MemoryRecord]:
    """Take what copies left in the records that they were merged into, where those stay. Return those that changed.

    Args:
        transaction: the transaction that erases the copies.
        user: the user's key.
        records: the records that are erased.
        tag: returns the tags of a text; a record keeps only those of a copy that its own text gets.
    """
    erased = {s.record.id: s.record for s in records}
    changed = []
    for by in {r.superseded_by for r in erased.values() if r.superseded_by is not None} - erased.keys():
        stored = transaction.find(user, by)
        copies = [r for r in erased.values() if stored is not None and _repeats(r, stored.record)]
        if stored is None or not copies:
            continue
        record, taken = stored.record, {name for copy in copies for name in copy.tags}
        record = replace(
            record,
            derived_from=tuple(each for each in record.derived_from if each not in erased),
            tags=tuple(sorted({*record.tags} - taken | ({*record.tags} & {*tag(record.text)}))),
            version=record.version + 1,
        )
        transaction.replace(user, replace(stored, record=record))
        changed.append(record)
    return changed


def _repeats(record: MemoryRecord, by: MemoryRecord) -> bool:
    """Return whether a record was merged into another one that says the same in equal words, still."""
    return is_copy(record, by) and have_equal_words(parse_claim(record.text), parse_claim(by.text))


def _sessions_of(record: MemoryRecord) -> list[str | None]:
    listed = record.metadata.get(SESSIONS) if record.kind == "summary" else None
    return [record.session_id, *(listed if isinstance(listed, list) else ())]
