"""Put and delete items of any users. Each batch and its entries in the audit log are one transaction."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from meve._repeating import repeat_rolled_back
from meve._telemetry import reported
from meve.errors import DuplicateIdError, ValidationError, show
from meve.memory._expiry import after, expiry_of, remove_expired
from meve.memory._reports import describe_erasure, describe_item_changes
from meve.memory._runtime import MemoryRuntime
from meve.memory._write.eraser import ErasureReport, check_not_held
from meve.memory._write.writer import RecordWriter
from meve.memory.items.item import (
    Drop,
    Namespace,
    Put,
    canonical,
    item_id,
    metadata_of,
    named_texts,
    namespace_of,
    parts_of,
    refresh_ttl,
    searchable_texts,
    value_text,
)
from meve.memory.policy import PolicyClass
from meve.memory.records import MemoryRecord, StoredRecord, UserId, check_choice, user_key
from meve.memory.stores._record_transaction import RecordTransaction
from meve.memory.stores.protocol import RecordQuery

ItemChange: TypeAlias = tuple[UserId, Put | Drop]
"""A user, and the change of one of their keys."""


@dataclass(frozen=True, slots=True)
class ItemWriter:
    """Changes items, each with an entry in the audit log."""

    runtime: MemoryRuntime
    writer: RecordWriter

    def draft(self, changes: Sequence[ItemChange]) -> "Drafts":
        """Return the checked records of changes. See `Items.prepare`."""
        now = self.runtime.clock.now()
        drafts: Drafts = {}
        if isinstance(changes, str) or not isinstance(changes, Iterable):
            raise ValidationError(f"changes must be a list of pairs of a user and a change, got {show(changes, 80)}")
        for each in changes:
            if not isinstance(each, tuple) or len(each) != 2 or not isinstance(each[1], Put | Drop):
                raise ValidationError(f"a change must be a pair of a user and a Put or a Drop, got {show(each, 80)}")
            user_id, change = each
            user, record_id = user_key(user_id), item_id(change.namespace, change.key)
            drafts[user, record_id] = None if isinstance(change, Drop) else self._draft(user_id, record_id, change, now)
        return drafts

    @reported("update_memory", describe_item_changes)
    @repeat_rolled_back
    def write(self, drafts: "Drafts", reason: str) -> int:
        """Write all drafts or none, and return the number of deleted keys. See `Items.write`."""
        runtime, now = self.runtime, self.runtime.clock.now()
        stored = iter(runtime.stored_all([record for record in drafts.values() if record is not None]))
        ready = [(user, record_id, None if r is None else next(stored)) for (user, record_id), r in drafts.items()]
        with runtime.store.writing() as transaction:
            for user, record_id, fresh in ready:
                before = transaction.find(user, record_id)
                self._check(before, fresh, now)
                if fresh is not None:
                    self._put(transaction, user, before, fresh, reason, now)
                elif before is not None:
                    derived = transaction.with_derived(user, [record_id])
                    self.writer.erase(transaction, user, derived, reason, now)
        deleted = {key for key, record in drafts.items() if record is None}
        return sum((user, r.id) in deleted for user, change in transaction.changes.items() for r in change.erased)

    @repeat_rolled_back
    def refresh(self, user: str, record_ids: Collection[str]) -> None:
        """Extend the expiry of items that were put with a `ttl`."""
        runtime, now = self.runtime, self.runtime.clock.now()
        with runtime.store.writing(durable=False) as transaction:
            for record_id in record_ids:
                before = transaction.find(user, record_id)
                if before is None or before.record.hold or before.record.expired(now):
                    continue
                record = replace(
                    before.record, expires_at=extended(before.record, now), version=before.record.version + 1
                )
                transaction.replace(user, replace(before, record=record))
                transaction.log(self._event(user, record, "update", "read", now, changed=["expires_at"]))

    @reported("delete_memory", describe_erasure)
    @repeat_rolled_back
    def erase_under(self, user: str, prefix: Namespace, reason: str, *, dry_run: bool) -> ErasureReport:
        """Erase the items under a prefix, and what is derived from them; records on hold stay, and are listed."""
        runtime, now = self.runtime, self.runtime.clock.now()
        with runtime.store.writing() as transaction:
            every = transaction.records(RecordQuery(user=user, archived=None, kind="item"))
            items = [s for s in every if _under(s.record, prefix)]
            held = [s for s in items if s.record.hold]
            gone = transaction.with_derived(user, [s.record.id for s in items if not s.record.hold])
            live = {s.record.id for s in gone if not s.record.expired(now)}
            records = sorted([*gone, *held], key=lambda stored: stored.record.id)
            report = self.writer.erase(transaction, user, records, reason, now, dry_run=dry_run)
        return replace(report, erased=tuple(i for i in report.erased if i in live))

    def _draft(self, user_id: UserId, record_id: str, put: Put, now: datetime) -> MemoryRecord:
        policy = self.runtime.policy
        metadata = metadata_of(put, now)
        chosen: PolicyClass = check_choice(put.policy_class, "policy_class", PolicyClass)
        texts = searchable_texts(value_text(metadata["value"]) if put.text is None else put.text, policy.limits.text)
        text = "\n".join(texts)
        admitted, _ = self.runtime.gate.admit(f"{put.key}: {text}\n{named_texts(metadata['value'])}", "item", chosen)
        return MemoryRecord(
            id=record_id,
            kind="item",
            user_id=user_id,
            text=text,
            source="item",
            policy_class=admitted,
            created_at=now,
            expires_at=expiry_of(policy, chosen, "item", now, put.ttl, put.expires_at),
            valid_from=now,
            metadata=metadata | parts_of(texts),
            reflection=policy.reflection.start,
        )

    def _check(self, before: StoredRecord | None, fresh: StoredRecord | None, now: datetime) -> None:
        if before is None:
            return
        record = before.record
        if record.kind != "item" and (fresh is None or not record.expired(now)):
            raise DuplicateIdError(f"memory {record.id!r:.120} is no item: call memory.update or memory.delete")
        check_not_held(record)

    def _put(
        self,
        transaction: RecordTransaction,
        user: str,
        before: StoredRecord | None,
        fresh: StoredRecord,
        reason: str,
        now: datetime,
    ) -> None:
        record = fresh.record
        if before is None or before.record.expired(now):
            remove_expired(self.runtime, transaction, user, record.id, now)
            transaction.insert(user, fresh)
            transaction.log(self._event(user, record, "add", reason, now, source=record.source))
        else:
            record = _successor(before.record, record)
            transaction.replace(user, replace(fresh, record=record))
            transaction.log(self._event(user, record, "update", reason, now, changed=["metadata", "text"]))
            if record.expires_at != before.record.expires_at:
                self.writer.shorten_derived(transaction, user, record, now)

    def _event(self, user: str, record: MemoryRecord, action: Any, reason: str, now: datetime, **detail: Any) -> Any:  # noqa: ANN401
        content = self.runtime.content_hash("content", canonical(record.metadata["value"]), user)
        return self.runtime.event(user, record, action, reason, now, **{**content, **detail})


Drafts: TypeAlias = dict[tuple[str, str], MemoryRecord | None]
"""The records to write, by user's key and id; None deletes."""


def extended(record: MemoryRecord, now: datetime) -> datetime | None:
    """Return the new expiry of an item after a read that refreshes it."""
    ttl = refresh_ttl(record)
    return record.expires_at if ttl is None else after(now, ttl) or record.expires_at


def to_refresh(records: Iterable[MemoryRecord], now: datetime) -> list[str]:
    """Return the ids of items whose expiry a refreshing read extends by a second or more, or a tenth of their TTL."""
    return [
        r.id
        for r in records
        if r.expires_at is not None
        and not r.hold
        and (ttl := refresh_ttl(r)) is not None
        and (end := extended(r, now)) is not None
        and end - r.expires_at >= min(timedelta(seconds=1), ttl / 10)
    ]


def _successor(before: MemoryRecord, record: MemoryRecord) -> MemoryRecord:
    """Return the record of a new value, with the history of its key."""
    return replace(
        record,
        created_at=before.created_at,
        tags=before.tags,
        reflection=before.reflection,
        touched_at=before.touched_at,
        used_at=before.used_at,
        uses=before.uses,
        outcomes=before.outcomes,
        restored_at=before.restored_at,
        version=before.version + 1,
    )


def _under(record: MemoryRecord, prefix: Namespace) -> bool:
    namespace = namespace_of(record)
    return namespace is not None and namespace[: len(prefix)] == prefix
