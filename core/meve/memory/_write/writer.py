"""What changes records because somebody asks: add, update, delete, forget a user, hold and release."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from meve.errors import HoldError, PolicyError, UnknownIdError, ValidationError
from meve.memory._runtime import Kit
from meve.memory._write.provenance import bounded, checked_origins, made_from, of_session, shortened
from meve.memory._write.record_factory import drafted, end_of_life
from meve.memory.policy import PolicyClass, Source
from meve.memory.records import (
    SHARED,
    MemoryRecord,
    StoredRecord,
    UserId,
    checked_choice,
    checked_id,
    checked_metadata,
    checked_tags,
    checked_text,
)
from meve.memory.stores.protocol import Transaction

_FIXED: Mapping[Source, frozenset[str]] = {
    "item": frozenset({"text", "metadata"}),
    "message": frozenset({"text", "metadata", "tags"}),
}
"""What can't be changed by itself, since it was made of a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What an erasure did."""

    erased: tuple[str, ...]
    """Ids of records of which nothing is left."""
    held: Mapping[str, str]
    """Ids of records that stay, and why."""
    scrubbed: bool
    """Whether no file holds a byte of them any more; False while others are reading, or the disk is full: each write
    that follows tries again, and so does `maintain`."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Changes records. Each change and its entry in the log are one transaction."""

    kit: Kit

    def add(
        self,
        user: str,
        user_id: UserId | None,
        text: str,
        reason: str,
        *,
        derived_from: Iterable[str] = (),
        **draft: Any,  # noqa: ANN401
    ) -> MemoryRecord:
        """A new record.

        Raises:
            PolicyError: a class that may not be shared, for the shared space.
            ValidationError: what can't be stored.
            DuplicateIdError: the id is taken.
            UnknownIdError: the user has none of an id that it was made from.
        """
        kit, now = self.kit, self.kit.clock.now()
        origins = checked_origins(derived_from)
        record = drafted(
            text,
            user_id=user_id,
            policy=kit.policy,
            now=now,
            classifier=kit.classifier,
            tagger=kit.tagger,
            **draft,
        )
        if user == SHARED and not kit.policy.rule(record.policy_class).share:
            able = [name for name, rule in kit.policy.classes.items() if rule.share]
            raise PolicyError(
                f"a {record.policy_class} memory may not be shared: the policy lets {', '.join(able) or 'none'} be"
            )
        stored = kit.stored(record)
        with kit.store.writing() as transaction:
            self.clear_expired(transaction, user, record.id, now)
            record = made_from(transaction, user, record, origins, now)
            transaction.insert(user, replace(stored, record=record))
            transaction.log(kit.event(user, record, "add", reason, now, source=record.source))
        return record

    def update(
        self,
        user: str,
        record_id: str,
        reason: str,
        *,
        text: str | None = None,
        policy_class: PolicyClass | None = None,
        tags: Iterable[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        ttl: timedelta | None = None,
        expires_at: datetime | None = None,
        if_version: int | None = None,
    ) -> MemoryRecord:
        """A record with other values; its owner, id, source and creation stay.

        Raises:
            UnknownIdError: no such record.
            HoldError: it is on hold.
            ValidationError: a value that can't be, or another version than expected.
        """
        kit, now = self.kit, self.kit.clock.now()
        record_id = checked_id(record_id)
        changes = self._changes(text, policy_class, tags, metadata)
        before = self._one(user, record_id, now)
        if policy_class is not None or ttl is not None or expires_at is not None:
            chosen = changes.get("policy_class", before.record.policy_class)
            changes["expires_at"] = end_of_life(kit.policy, chosen, before.record.source, now, ttl, expires_at)
        fresh = None if text is None else kit.stored(replace(before.record, text=changes["text"]))
        with kit.store.writing() as transaction:
            found = self._found(transaction, user, record_id, now)
            record = found.record
            if record.hold:
                raise held(record)
            _check_changes(record, changes, if_version)
            made = replace(record, **changes, version=record.version + 1)
            made = bounded(transaction, user, made, record) if "expires_at" in changes else made
            stored = StoredRecord(record=made, vector=(fresh or found).vector, tokens=(fresh or found).tokens)
            transaction.replace(user, stored)
            transaction.log(kit.event(user, made, "update", reason, now, changed=sorted(changes)))
            for each in shortened(transaction, user, made) if "expires_at" in changes else ():
                because = f"it lives no longer than {record_id}, which it was made from"
                transaction.log(kit.event(user, each, "update", because, now, changed=["expires_at"]))
        if changes.keys() & {"text", "metadata", "tags"}:
            kit.store.scrub()  # or what they were stays in the write-ahead log
        return made

    def _changes(
        self,
        text: str | None,
        policy_class: PolicyClass | None,
        tags: Iterable[str] | None,
        metadata: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        """Checked values, by their names; those that aren't given stay."""
        changes: dict[str, Any] = {}
        if text is not None:
            changes["text"] = checked_text(text, "text", self.kit.policy.limits.text)
            changes |= {"superseded_by": None, "flagged": ""}  # of what it said before
        if policy_class is not None:
            changes["policy_class"] = checked_choice(policy_class, "policy_class", PolicyClass)
        if tags is not None:
            changes["tags"] = checked_tags(tags)
        if metadata is not None:
            changes["metadata"] = checked_metadata(metadata)
        return changes

    def delete(self, user: str, record_id: str, reason: str, *, dry_run: bool = False) -> Erased:
        """Nothing is left of a record and of what was made of it, unless it is on hold; a dry run only tells.

        One that was merged or summarised lives on in another: then that one goes.

        Raises:
            UnknownIdError: no such record.
        """
        kit, now = self.kit, self.kit.clock.now()
        record_id = checked_id(record_id)
        with kit.store.writing() as transaction:
            found = transaction.holding(user, record_id)
            if not found:
                raise unknown(record_id)
            erased, kept = self.erase(transaction, user, found, reason, now, dry_run=dry_run)
        return Erased(erased=erased, held=kept, scrubbed=kit.store.scrub() if erased and not dry_run else True)

    def forget(
        self, user: str, reason: str, session: str | None = None, *, dry_run: bool = False, all_or_none: bool = False
    ) -> Erased:
        """Nothing is left of a user's records, or of a session's, but for those on hold; a dry run only tells.

        Raises:
            HoldError: one that isn't over is on hold, with `all_or_none`; nothing is erased.
        """
        kit, now = self.kit, self.kit.clock.now()
        with kit.store.writing() as transaction:
            found = [*transaction.records(user), *transaction.all_archived(user)]
            found = found if session is None else of_session(found, session)
            for stored in found if all_or_none else ():
                if stored.record.hold and not stored.record.expired(now):
                    raise held(stored.record)
            erased, kept = self.erase(transaction, user, found, reason, now, dry_run=dry_run)
            if session is None and not dry_run:
                transaction.forget_opinions(user)
        return Erased(erased=erased, held=kept, scrubbed=True if dry_run else kit.store.scrub())

    def erase(
        self,
        transaction: Transaction,
        user: str,
        found: Iterable[StoredRecord],
        reason: str,
        now: datetime,
        *,
        dry_run: bool = False,
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """The ids that went, and those on hold with why."""
        gone: list[str] = []
        kept: dict[str, str] = {}
        for record in (stored.record for stored in found):
            if record.hold:
                kept[record.id] = record.hold
                continue
            gone.append(record.id)
            event = self.kit.event(user, record, "delete", reason, now)
            if not dry_run:
                transaction.erase(user, record.id)
                transaction.log(event)
        return tuple(sorted(gone)), kept

    def hold(self, user: str, record_id: str, why: str, reason: str) -> None:
        """Nothing may change or erase a record from now on; an empty `why` releases it.

        Raises:
            UnknownIdError: no such record, or one that has expired and isn't on hold.
        """
        kit, now = self.kit, self.kit.clock.now()
        record_id = checked_id(record_id)
        with kit.store.writing() as transaction:
            packed = transaction.archived(user, record_id)
            found = packed or transaction.find(user, record_id)
            if found is None or (found.record.expired(now) and not found.record.hold):
                raise unknown(record_id)
            if packed is not None:
                self._unpack(transaction, user, packed, now)  # what is on hold is at hand
            made = replace(found.record, hold=why, version=found.record.version + 1)
            transaction.replace(user, replace(found, record=made))
            transaction.log(kit.event(user, made, "hold" if why else "release", reason, now))

    def clear_expired(self, transaction: Transaction, user: str, record_id: str, now: datetime) -> None:
        """An expired record doesn't keep its id from being used again."""
        for found in (transaction.find(user, record_id), transaction.archived(user, record_id)):
            if found is not None and found.record.expired(now) and not found.record.hold:
                transaction.erase(user, record_id)
                because = f"its time was over at {found.record.expires_at}"
                transaction.log(self.kit.event(user, found.record, "expire", because, now))

    def _one(self, user: str, record_id: str, now: datetime) -> StoredRecord:
        found = self.kit.store.find(user, record_id)
        if found is None or found.record.expired(now):
            raise unknown(record_id)
        return found

    def _found(self, transaction: Transaction, user: str, record_id: str, now: datetime) -> StoredRecord:
        found = transaction.find(user, record_id)
        if found is None and (packed := transaction.archived(user, record_id)) is not None:
            if not packed.record.expired(now):
                self._unpack(transaction, user, packed, now)
            found = packed
        if found is None or found.record.expired(now):
            raise unknown(record_id)
        return found

    def _unpack(self, transaction: Transaction, user: str, packed: StoredRecord, now: datetime) -> None:
        """Out of the archive."""
        transaction.erase(user, packed.record.id)
        transaction.insert(user, packed)
        transaction.log(self.kit.event(user, packed.record, "restore", "changed, or put on hold", now))


def _check_changes(record: MemoryRecord, changes: Mapping[str, Any], if_version: int | None) -> None:
    if changes.keys() & _FIXED.get(record.source, frozenset()):
        raise ValidationError(f"memory {record.id!r} ({record.source}) is made of its value: put it anew")
    if if_version is not None and record.version != if_version:
        raise ValidationError(f"memory {record.id!r} is of version {record.version}, not {if_version}: read it again")


def held(record: MemoryRecord) -> HoldError:
    """The error for a record that nothing may change."""
    return HoldError(f"memory {record.id!r} is on hold ({record.hold}): release it first")


def unknown(record_id: object) -> UnknownIdError:
    """The error for an id that a user doesn't have."""
    return UnknownIdError(f"no memory {record_id!r:.80} of this user: list() tells which there are")
