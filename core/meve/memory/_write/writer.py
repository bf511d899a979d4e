"""Add, update, delete and forget records; hold and release them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack

from meve.errors import HoldError, PolicyError, UnknownIdError, ValidationError
from meve.memory._expiry import expiry_of, remove_expired
from meve.memory._maintenance.reopening import reopen
from meve.memory._runtime import MemoryRuntime
from meve.memory._write.provenance import check_origins, check_standing, derive, limit_derived, limit_expiry, of_session
from meve.memory._write.record_factory import RecordOptions, make_record
from meve.memory._write.secrets import all_text
from meve.memory.policy import Policy, PolicyClass
from meve.memory.records import (
    SHARED,
    MemoryRecord,
    RecordKind,
    StoredRecord,
    UserId,
    check_choice,
    check_flag,
    check_id,
    check_keywords,
    check_metadata,
    check_tags,
    check_text,
    other_type_of,
    user_key,
)
from meve.memory.stores._closed_records import find_replaced
from meve.memory.stores._reading import UnreadableRecord
from meve.memory.stores._record_store import RecordTransaction

_FIXED: Mapping[RecordKind, frozenset[str]] = {
    "item": frozenset({"text", "metadata"}),
    "message": frozenset({"text", "metadata", "tags"}),
}
"""Fields that `update` can't change, because they are computed."""
_PUT = {"item": "memory.items.put", "message": "memory.messages.replace"}


class UpdateOptions(TypedDict, total=False):
    """The options of `GovernedMemory.update`. None leaves a value as it is."""

    text: str | None
    policy_class: PolicyClass | None
    """Another class; it also sets a new expiry."""
    tags: Iterable[str] | None
    metadata: Mapping[str, Any] | None
    ttl: timedelta | None
    """Its lifetime from now on."""
    expires_at: datetime | None
    """When it expires, instead of `ttl`."""
    pinned: bool | None
    """Whether it stands in every prompt; only for what the user said himself."""
    if_version: int | None
    """Update only this version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureReport:
    """The result of an erasure."""

    erased: tuple[str, ...]
    """Ids of the records that were erased."""
    held: Mapping[str, str]
    """Ids of the records that stay because they are on hold, with the reason for each hold."""
    left_closed: tuple[str, ...] = ()
    """Ids of the closed records that the erased ones had replaced, in one or several steps. They stay closed:
    `restore` takes one back, and `delete` erases it."""
    scrubbed: bool
    """Whether no file holds a byte of the erased records. False while others are reading or the disk is full: each
    later write, and `maintain`, tries again."""
    unreadable: tuple[str, ...] = ()
    """Damaged records that stay, since nobody can tell whether they are of the session; `forget_user` erases them."""
    found: bool = True
    """Whether anything of the user or session is stored; False if there was nothing to erase."""
    other_user: UserId | None = None
    """If nothing of the user was found, the user whose id reads the same and is of the other type, if stored: 5 for
    "5"."""


@dataclass(frozen=True, slots=True)
class RecordWriter:
    """Changes records. Each change and its entry in the audit log are one transaction."""

    runtime: MemoryRuntime

    def add(
        self,
        user: str,
        user_id: UserId | None,
        text: str,
        reason: str,
        *,
        derived_from: Iterable[str] = (),
        also: Callable[[RecordTransaction, MemoryRecord], None] | None = None,
        **options: Unpack[RecordOptions],
    ) -> MemoryRecord:
        """Write a new record, and in the same transaction what `also` does, which may raise to write nothing.

        Raises what `GovernedMemory.add` and `add_shared` raise.
        """
        runtime, now = self.runtime, self.runtime.clock.now()
        origins = check_origins(derived_from)
        record = make_record(
            text,
            user_id=user_id,
            policy=runtime.policy,
            now=now,
            classifier=runtime.classifier,
            tagger=runtime.tagger,
            may_instruct=not origins,
            **options,
        )
        admitted, why = runtime.gate.admit(
            all_text(text, record.metadata), record.source, record.policy_class,
            is_classified=options.get("policy_class") is None and not record.metadata,
        )  # fmt: skip
        record = replace(record, policy_class=admitted)
        _check_shareable(runtime.policy, user, record.policy_class)
        stored = runtime.stored(record)
        with runtime.store.writing() as transaction:
            remove_expired(runtime, transaction, user, record.id, now)
            record = derive(transaction, user, record, origins, now)
            check_standing(transaction, user, record)
            transaction.insert(user, replace(stored, record=record))
            made_private = {"made_private": why} if why else {}
            transaction.log(runtime.event(user, record, "add", reason, now, source=record.source, **made_private))
            if also is not None:
                also(transaction, record)
        return record

    def update(self, user: str, record_id: str, reason: str, **options: Unpack[UpdateOptions]) -> MemoryRecord:
        """Change values of a record. Raises what `GovernedMemory.update` raises."""
        runtime, now = self.runtime, self.runtime.clock.now()
        record_id = check_id(record_id)
        changes = self._checked(options)
        ttl, expires_at = options.get("ttl"), options.get("expires_at")
        before = _check_found(runtime.store.find(user, record_id), record_id, now)
        if "policy_class" in changes or ttl is not None or expires_at is not None:
            policy_class = changes.get("policy_class", before.record.policy_class)
            changes["expires_at"] = expiry_of(runtime.policy, policy_class, before.record.source, now, ttl, expires_at)
        if changes.keys() & {"text", "metadata"}:
            text = all_text(changes.get("text", before.record.text), changes.get("metadata", before.record.metadata))
            old_class = changes.get("policy_class", before.record.policy_class)
            admitted, _ = runtime.gate.admit(text, before.record.source, old_class)
            _check_shareable(runtime.policy, user, admitted)
            changes |= {"policy_class": admitted} if admitted != old_class else {}
        fresh = runtime.stored(replace(before.record, text=changes["text"])) if "text" in changes else None
        with runtime.store.writing() as transaction:
            stored = _check_found(transaction.find(user, record_id), record_id, now)
            check_not_held(stored.record)
            _check_changes(stored.record, changes, options.get("if_version"))
            record = self._unarchive(transaction, user, stored.record, now)
            updated = replace(record, **changes, version=record.version + 1)
            if changes.keys() & {"pinned", "policy_class"}:
                check_standing(transaction, user, updated)
            if "expires_at" in changes:
                updated = limit_expiry(transaction, user, updated, record)
            transaction.replace(user, replace(fresh or stored, record=updated))
            transaction.log(runtime.event(user, updated, "update", reason, now, changed=sorted(changes)))
            for each in limit_derived(transaction, user, updated) if "expires_at" in changes else ():
                because = f"expires with {record_id}, which it is derived from"
                by = {"evidence": {"by": record_id}}
                transaction.log(runtime.event(user, each, "update", because, now, changed=["expires_at"], **by))
        if changes.keys() & {"text", "metadata", "tags"}:
            runtime.store.scrub()  # the old values are still in the write-ahead log
        return updated

    def supersede(
        self, user: str, user_id: UserId, record_id: str, text: str, reason: str, **options: Unpack[RecordOptions]
    ) -> MemoryRecord:
        """Write a record in place of another, which is closed. Raises what `GovernedMemory.supersede` raises."""
        runtime, now = self.runtime, self.runtime.clock.now()
        former = _check_replaceable(runtime.store.find(user, check_id(record_id)), record_id, now)
        inherited: RecordOptions = {
            "policy_class": former.policy_class, "session_id": former.session_id, "tags": former.tags,
            "metadata": former.metadata, "pinned": former.pinned,
        }  # fmt: skip
        chosen: RecordOptions = {**inherited, **options}
        record = make_record(
            text,
            user_id=user_id,
            policy=runtime.policy,
            now=now,
            classifier=runtime.classifier,
            tagger=runtime.tagger,
            **chosen,
        )
        admitted, _ = runtime.gate.admit(all_text(text, record.metadata), record.source, record.policy_class)
        record = replace(record, policy_class=admitted)
        fresh = runtime.stored(replace(record, derived_from=former.derived_from))
        with runtime.store.writing() as transaction:
            stored = transaction.find(user, record_id)
            before = _check_replaceable(stored, record_id, now)
            assert stored is not None
            check_not_held(before)
            remove_expired(runtime, transaction, user, record.id, now)
            record = limit_expiry(transaction, user, fresh.record, before)
            if options.get("ttl") is None and options.get("expires_at") is None:
                ends = [each for each in (record.expires_at, before.expires_at) if each is not None]
                record = replace(record, expires_at=min(ends, default=None))
            check_standing(transaction, user, record)
            if before.is_standing and record.source != "chat_user":
                raise PolicyError(f"only what the user says may replace the standing wish {record_id!r:.80}")
            transaction.insert(user, replace(fresh, record=record))
            closed = replace(before, valid_to=now, superseded_by=record.id, flagged="", version=before.version + 1)
            transaction.replace(user, replace(stored, record=self._unarchive(transaction, user, closed, now)))
            transaction.log(runtime.event(user, record, "add", reason, now, source=record.source))
            detail = {"rule": "supersede", "evidence": {"by": record.id}, "inverse": "restore"}
            transaction.log(runtime.event(user, closed, "supersede", reason, now, **detail))
        return record

    def _checked(self, options: UpdateOptions) -> dict[str, Any]:
        """Return the checked values of the fields to change, by name."""
        check_keywords(options, UpdateOptions, "update")
        checks: dict[str, Callable[[Any], Any]] = {
            "text": lambda value: check_text(value, "text", self.runtime.policy.limits.text),
            "policy_class": lambda value: check_choice(value, "policy_class", PolicyClass),
            "tags": check_tags,
            "metadata": check_metadata,
            "pinned": lambda value: check_flag(value, "pinned"),
        }
        given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        changes = {name: check(given[name]) for name, check in checks.items() if name in given}
        if "text" in changes:
            now = self.runtime.clock.now()
            changes |= {"superseded_by": None, "flagged": "", "valid_from": now, "valid_to": None}  # of the old text
        return changes

    def delete(
        self, user: str, record_id: str, reason: str, *, include_superseded: bool = False, dry_run: bool = False
    ) -> ErasureReport:
        """Erase a record, its copies and those derived from it, unless on hold; with `dry_run` only list them.

        A record that was merged or summarised is part of another record: then that one is erased, too.
        """
        runtime, now = self.runtime, self.runtime.clock.now()
        record_id, every = check_id(record_id), check_flag(include_superseded, "include_superseded")
        with runtime.store.writing() as transaction:
            records = transaction.with_derived(user, [record_id], copies=True, superseded=every)
            if not records:
                raise unknown(record_id)
            report = self.erase(transaction, user, records, reason, now, dry_run=dry_run)
        return report if dry_run else self.scrub(report)

    def forget(
        self, user: str, reason: str, session: str | None = None, *, dry_run: bool = False, all_or_none: bool = False
    ) -> ErasureReport:
        """Erase the records of a user, or of one session, unless they are on hold; with `dry_run` only list them."""
        runtime, now = self.runtime, self.runtime.clock.now()
        with runtime.store.writing() as transaction:
            records, unreadable = transaction.readable_records(user)
            records = records if session is None else of_session(records, session)
            for stored in records if all_or_none else ():
                if not stored.record.expired(now):
                    check_not_held(stored.record)
            report = self.erase(transaction, user, records, reason, now, dry_run=dry_run)
            if session is None:
                report = self._erase_unreadable(transaction, user, unreadable, report, reason, now, dry_run=dry_run)
            else:
                report = replace(report, unreadable=tuple(each.id for each in unreadable))
            if not (records or unreadable) and not (session is None and transaction.shared_scores(user)):
                other = other_type_of(user)
                is_known = other is not None and any(transaction.readable_records(user_key(other)))
                report = replace(report, found=False, other_user=other if is_known else None)
            if session is None and not dry_run:
                transaction.forget_user(user)
        return report if dry_run else replace(report, scrubbed=runtime.store.scrub())

    def erase(
        self,
        transaction: RecordTransaction,
        user: str,
        records: Iterable[StoredRecord],
        reason: str,
        now: datetime,
        *,
        dry_run: bool = False,
    ) -> ErasureReport:
        """Erase the records that aren't on hold; their bytes stay in the files until `scrub`."""
        erased: list[str] = []
        held: dict[str, str] = {}
        records = list(records)
        closed = find_replaced(transaction, user, [s.record for s in records if not s.record.hold])
        for record in (stored.record for stored in records):
            if record.hold:
                held[record.id] = record.hold
                continue
            erased.append(record.id)
            event = self.runtime.event(user, record, "delete", reason, now)
            if not dry_run:
                transaction.erase(user, record)
                transaction.log(event)
        left = tuple(sorted(closed - {s.record.id for s in records}))
        return ErasureReport(erased=tuple(sorted(erased)), held=held, left_closed=left, scrubbed=dry_run or not erased)

    def _erase_unreadable(
        self,
        transaction: RecordTransaction,
        user: str,
        unreadable: Iterable[UnreadableRecord],
        report: ErasureReport,
        reason: str,
        now: datetime,
        *,
        dry_run: bool,
    ) -> ErasureReport:
        """Erase damaged records that aren't on hold, and return the report with them."""
        gone = [each.id for each in unreadable if not each.hold]
        for record_id in gone if not dry_run else ():
            transaction.erase_unreadable(user, record_id)
            transaction.log(self.runtime.plain_event(user, record_id, "delete", reason, now))
        held = {each.id: each.hold for each in unreadable if each.hold}
        return replace(report, erased=tuple(sorted([*report.erased, *gone])), held={**report.held, **held})

    def scrub(self, report: ErasureReport) -> ErasureReport:
        """Overwrite erased records in all files, if there are any."""
        return replace(report, scrubbed=self.runtime.store.scrub()) if report.erased else report

    def hold(self, user: str, record_id: str, why: str, reason: str) -> None:
        """Let nothing change or erase a record from now on; an empty `why` releases it."""
        runtime, now = self.runtime, self.runtime.clock.now()
        record_id = check_id(record_id)
        with runtime.store.writing() as transaction:
            stored = transaction.find(user, record_id)
            if stored is None or (stored.record.expired(now) and not stored.record.hold):
                raise unknown(record_id)
            record = self._unarchive(transaction, user, stored.record, now)
            record = replace(record, hold=why, version=record.version + 1)
            transaction.replace(user, replace(stored, record=record))
            transaction.log(runtime.event(user, record, "hold" if why else "release", reason, now))

    def restore(self, user: str, record_id: str, reason: str) -> MemoryRecord:
        """Take a record back from the archive, or from its replacement. Raises what `GovernedMemory.restore` raises."""
        runtime, now = self.runtime, self.runtime.clock.now()
        record_id = check_id(record_id)
        with runtime.store.writing() as transaction:
            stored = _check_found(transaction.find(user, record_id), record_id, now)
            before = stored.record
            check_not_held(before)
            record = replace(reopen(before), archived=False, restored_at=now)
            transaction.replace(user, replace(stored, record=record))
            was = {"archived": before.archived, "superseded_by": before.superseded_by}
            transaction.log(runtime.event(user, record, "restore", reason, now, was=was))
            by = transaction.find(user, before.superseded_by) if before.superseded_by is not None else None
            if by is not None and by.record.kind != "summary" and not by.record.hold:  # a summary still holds the text
                origins = tuple(each for each in by.record.derived_from if each != record_id)
                transaction.replace(user, replace(by, record=replace(by.record, derived_from=origins)))
        return record

    def _unarchive(
        self, transaction: RecordTransaction, user: str, record: MemoryRecord, now: datetime
    ) -> MemoryRecord:
        """Return an archived record as an active one, and log it; an archived message stays archived."""
        if not record.archived or record.kind == "message":
            return record
        transaction.log(self.runtime.event(user, record, "restore", "changed, or put on hold", now))
        return replace(record, archived=False)


def _check_shareable(policy: Policy, user: str, policy_class: PolicyClass) -> None:
    if user == SHARED and not policy.rule(policy_class).share:
        allowed = ", ".join(name for name, rule in policy.classes.items() if rule.share) or "none"
        raise PolicyError(
            f"memories of the class {policy_class} may not be shared: the policy lets {allowed} be shared"
        )


def _check_changes(record: MemoryRecord, changes: Mapping[str, Any], if_version: int | None) -> None:
    if changes.keys() & _FIXED.get(record.kind, frozenset()):
        raise ValidationError(f"{record.kind} {record.id!r} can't be edited in place: call {_PUT[record.kind]}")
    if if_version is not None and record.version != if_version:
        raise ValidationError(f"memory {record.id!r} has version {record.version}, not {if_version}: read it again")


def _check_replaceable(stored: StoredRecord | None, record_id: str, now: datetime) -> MemoryRecord:
    record = _check_found(stored, record_id, now).record
    if record.kind in _PUT:
        raise ValidationError(f"{record.kind} {record_id!r} can't be superseded: call {_PUT[record.kind]}")
    if record.is_closed:
        by = f" by {record.superseded_by!r:.80}: supersede that one" if record.superseded_by else ": restore it first"
        raise UnknownIdError(f"memory {record_id!r:.80} was replaced{by}")
    return record


def _check_found(stored: StoredRecord | None, record_id: str, now: datetime) -> StoredRecord:
    if stored is None or stored.record.expired(now):
        raise unknown(record_id)
    return stored


def check_not_held(record: MemoryRecord) -> None:
    """Raise HoldError if a record is on hold."""
    if record.hold:
        raise HoldError(f"memory {record.id!r} is on hold ({record.hold}): release it first")


def unknown(record_id: object) -> UnknownIdError:
    """Return the error for an id that a user doesn't have."""
    return UnknownIdError(f"no memory {record_id!r:.80} of this user: list() returns all records")
