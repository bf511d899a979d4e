"""Expiry: when a record expires, whether it has, and its removal. No read returns an expired record.

Reads that don't return whole records apply the same rule: `RecordQuery.alive_at` in the store, `Scope` in the index.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from meve.errors import ValidationError, show
from meve.memory._timestamps import check_moment
from meve.memory.policy import CHAT_SOURCES, Policy, PolicyClass, RecordSource

if TYPE_CHECKING:
    from meve.memory._runtime import MemoryRuntime
    from meve.memory.records import MemoryRecord, StoredRecord
    from meve.memory.stores._reading import UnreadableRecord
    from meve.memory.stores._record_transaction import RecordTransaction


def has_passed(expires_at: datetime | None, now: datetime) -> bool:
    """Return whether an expiry is now or in the past; False for no expiry."""
    return expires_at is not None and now >= expires_at


def expiry_of(
    policy: Policy,
    policy_class: PolicyClass,
    source: RecordSource,
    now: datetime,
    ttl: timedelta | None = None,
    expires_at: datetime | None = None,
) -> datetime | None:
    """Return when a record that is written now expires; None for never."""
    if ttl is not None and expires_at is not None:
        raise ValidationError("give only one of ttl and expires_at, got both")
    if expires_at is not None:
        moment = check_moment(expires_at, "expires_at")
        if has_passed(moment, now):
            raise ValidationError(
                f"expires_at must be after {now.isoformat()}, got {moment.isoformat()}, which has passed"
            )
        return moment
    if ttl is not None:
        if not isinstance(ttl, timedelta) or ttl <= timedelta(0):
            raise ValidationError(f"ttl must be a timedelta above zero, got {show(ttl, 80)}")
        return after(now, ttl)
    said_by_user = source == "chat_user"
    own = None if said_by_user and policy_class == "factual" else policy.rule(policy_class).ttl
    most = policy.user_ttl if said_by_user else policy.chat_ttl if source in CHAT_SOURCES else None
    ttl = min((each for each in (own, most) if each is not None), default=None)
    return None if ttl is None else after(now, ttl)


def after(now: datetime, ttl: timedelta) -> datetime | None:
    """Return the moment this long after now; None if it is after the year 9999."""
    try:
        return now + ttl
    except OverflowError:
        return None


def find_removable(records: "Iterable[StoredRecord]", now: datetime) -> "Iterator[MemoryRecord]":
    """Return the expired records that aren't on hold."""
    return (stored.record for stored in records if stored.record.expired(now) and not stored.record.hold)


def reason_of(record: "MemoryRecord | UnreadableRecord") -> str:
    """Return the reason in the audit log for the removal of an expired record."""
    return f"expired at {record.expires_at}"


def remove_expired(
    runtime: "MemoryRuntime", transaction: "RecordTransaction", user: str, record_id: str, now: datetime
) -> None:
    """Remove a record and its copies if it has expired and isn't on hold, so that its id can be used again."""
    from meve.memory.stores._closed_records import find_copies

    stored = transaction.find(user, record_id)
    for record in find_removable([stored] if stored else [], now):
        for each in (record, *find_copies(transaction, user, record)):
            transaction.erase(user, each)
            transaction.log(runtime.event(user, each, "expire", reason_of(record), now))
