"""What changes items: all that is put and dropped at once is one transaction, whoever owns it, the log included."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeAlias

from meve.errors import DuplicateIdError
from meve.memory._runtime import Kit
from meve.memory._write.record_factory import end_of_life
from meve.memory._write.writer import Erased, Writer, held
from meve.memory.items.item import (
    Drop,
    Namespace,
    Put,
    canonical,
    item_id,
    lifetime,
    metadata_of,
    namespace_of,
    searchable,
    spelled,
)
from meve.memory.policy import PolicyClass
from meve.memory.records import MemoryRecord, StoredRecord, UserId, checked_choice, user_key
from meve.memory.stores.protocol import Transaction

Change: TypeAlias = tuple[UserId, Put | Drop]
"""What shall become of one of a user's keys."""


@dataclass(slots=True)
class Done:
    """What a transaction did."""

    erased: dict[str, set[str]] = field(default_factory=dict)
    """Ids that went, by user's key."""
    replaced: bool = False
    """Whether a value took another's place."""


@dataclass(frozen=True, slots=True)
class ItemWriter:
    """Changes items, each with an entry in the log."""

    kit: Kit
    writer: Writer

    def drafted(self, changes: Sequence[Change]) -> "Drafts":
        """The records that changes make, checked, before anything is embedded or written.

        Of several changes of one key the last counts.

        Raises:
            ValidationError: a user, namespace, key, value or life that can't be.
        """
        now = self.kit.clock.now()
        made: Drafts = {}
        for user_id, change in changes:
            user, record_id = user_key(user_id), item_id(change.namespace, change.key)
            made[user, record_id] = None if isinstance(change, Drop) else self._draft(user_id, record_id, change, now)
        return made

    def write(self, drafts: "Drafts", reason: str) -> Done:
        """All of them, or none.

        Raises:
            HoldError: one of them is on hold.
            DuplicateIdError: what lies under the id of one is no item.
            ModelError: the embedder failed.
            StorageError: the file can't be written.
        """
        kit, now, done = self.kit, self.kit.clock.now(), Done()
        stored = iter(kit.stored_all([record for record in drafts.values() if record is not None]))
        ready = [(user, record_id, None if r is None else next(stored)) for (user, record_id), r in drafts.items()]
        with kit.store.writing() as transaction:
            for user, record_id, fresh in ready:
                found = _present(transaction, user, record_id)
                self._check(found, fresh, now)
                if fresh is None:
                    self._drop(transaction, user, found, reason, now, done)
                else:
                    self._put(transaction, user, found, fresh, reason, now, done)
        return done

    def refresh(self, user: str, record_ids: Collection[str]) -> None:
        """They live on from now, each as long as it was given; those that were given an end, or none, stay."""
        kit, now = self.kit, self.kit.clock.now()
        with kit.store.writing(durable=False) as transaction:
            for record_id in record_ids:
                found = transaction.find(user, record_id)
                if found is None or found.record.hold or found.record.expired(now):
                    continue
                made = replace(found.record, expires_at=extended(found.record, now), version=found.record.version + 1)
                transaction.replace(user, replace(found, record=made))
                transaction.log(self._event(user, made, "update", "read", now, changed=["expires_at"]))

    def erase_under(self, user: str, prefix: Namespace, reason: str, *, dry_run: bool) -> Erased:
        """Every item whose namespace begins so; those on hold stay, and are named."""
        kit, now = self.kit, self.kit.clock.now()
        with kit.store.writing() as transaction:
            found = [s for s in transaction.records(user) if _under(s.record, prefix)]
            live = {s.record.id for s in found if not s.record.expired(now)}
            erased, kept = self.writer.erase(transaction, user, found, reason, now, dry_run=dry_run)
        scrubbed = kit.store.scrub() if erased and not dry_run else True
        return Erased(erased=tuple(i for i in erased if i in live), held=kept, scrubbed=scrubbed)

    def _draft(self, user_id: UserId, record_id: str, put: Put, now: datetime) -> MemoryRecord:
        policy = self.kit.policy
        metadata = metadata_of(put, now)
        chosen: PolicyClass = checked_choice(put.policy_class, "policy_class", PolicyClass)
        text = spelled(metadata["value"]) if put.text is None else put.text
        return MemoryRecord(
            id=record_id,
            user_id=user_id,
            text=searchable(text, policy.limits.text),
            source="item",
            policy_class=chosen,
            created_at=now,
            expires_at=end_of_life(policy, chosen, "item", now, put.ttl, put.expires_at),
            metadata=metadata,
            reflection=policy.reflection.start,
        )

    def _check(self, found: StoredRecord | None, fresh: StoredRecord | None, now: datetime) -> None:
        if found is None:
            return
        record = found.record
        if record.source != "item" and (fresh is None or not record.expired(now)):
            raise DuplicateIdError(f"memory {record.id!r:.120} is no item: it is changed by its id")
        if record.hold:
            raise held(record)

    def _drop(
        self, transaction: Transaction, user: str, found: StoredRecord | None, reason: str, now: datetime, done: Done
    ) -> None:
        if found is not None:
            transaction.erase(user, found.record.id)
            transaction.log(self._event(user, found.record, "delete", reason, now))
            done.erased.setdefault(user, set()).add(found.record.id)

    def _put(
        self,
        transaction: Transaction,
        user: str,
        found: StoredRecord | None,
        fresh: StoredRecord,
        reason: str,
        now: datetime,
        done: Done,
    ) -> None:
        record = fresh.record
        if found is None or found.record.expired(now):
            self.writer.clear_expired(transaction, user, record.id, now)
            transaction.insert(user, fresh)
            transaction.log(self._event(user, record, "add", reason, now, source=record.source))
        else:
            made = _successor(found.record, record)
            transaction.replace(user, replace(fresh, record=made))
            transaction.log(self._event(user, made, "update", reason, now, changed=["metadata", "text"]))
        done.replaced |= found is not None

    def _event(self, user: str, record: MemoryRecord, action: Any, reason: str, now: datetime, **detail: Any) -> Any:  # noqa: ANN401
        content = self.kit.chain.hash_content(canonical(record.metadata["value"]))
        return self.kit.event(user, record, action, reason, now, **{"content": content, **detail})


Drafts: TypeAlias = dict[tuple[str, str], MemoryRecord | None]
"""What shall lie there, by user's key and id; None for nothing."""


def extended(record: MemoryRecord, now: datetime) -> datetime | None:
    """When an item that is read now ends; as before where that would be beyond any calendar."""
    life = lifetime(record)
    try:
        return record.expires_at if life is None else now + life
    except OverflowError:
        return record.expires_at


def to_refresh(records: Iterable[MemoryRecord], now: datetime) -> list[str]:
    """The ids of items whose end a reading moves, by a second at least."""
    return [
        r.id
        for r in records
        if r.expires_at is not None
        and not r.hold
        and (end := extended(r, now)) is not None
        and (end - r.expires_at).total_seconds() >= 1
    ]


def _present(transaction: Transaction, user: str, record_id: str) -> StoredRecord | None:
    return transaction.find(user, record_id) or transaction.archived(user, record_id)


def _successor(before: MemoryRecord, record: MemoryRecord) -> MemoryRecord:
    """A new value of a key: what the key has lived through stays."""
    return replace(
        record,
        created_at=before.created_at,
        tags=before.tags,
        reflection=before.reflection,
        touched_at=before.touched_at,
        used_at=before.used_at,
        uses=before.uses,
        version=before.version + 1,
    )


def _under(record: MemoryRecord, prefix: Namespace) -> bool:
    namespace = namespace_of(record)
    return namespace is not None and namespace[: len(prefix)] == prefix
