"""Add, update and supersede records; hold, release and restore them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack

from meve._repeating import repeat_rolled_back
from meve._telemetry import reported
from meve.errors import PolicyError, UnknownIdError, ValidationError
from meve.memory._expiry import expiry_of, remove_expired
from meve.memory._reports import describe_record
from meve.memory._write.eraser import RecordEraser, check_not_held, unknown
from meve.memory._write.provenance import (
    check_origins,
    check_standing,
    derive,
    find_origins,
    limit_derived,
    limit_expiry,
)
from meve.memory._write.record_factory import RecordOptions, inherit_metadata, keep_scopes, make_record
from meve.memory._write.secrets import all_text, text_of
from meve.memory.policy import Policy, PolicyClass
from meve.memory.records import (
    SHARED,
    MemoryRecord,
    RecordKind,
    StoredRecord,
    UserId,
    check_choice,
    check_count,
    check_flag,
    check_id,
    check_metadata,
    check_tags,
    check_text,
    validity,
)
from meve.memory.stores._closed_records import reopen
from meve.memory.stores._record_transaction import RecordTransaction
from meve.pipeline.config import check_option_names

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
    """Other values of your own. The `agent_id` and `run_id` stay, unless they are among them; None removes one."""
    ttl: timedelta | None
    """Its lifetime from now on."""
    expires_at: datetime | None
    """When it expires, instead of `ttl`."""
    pinned: bool | None
    """Whether it stands in every prompt; only for what the user said himself."""
    if_version: int | None
    """Update only this version."""


@dataclass(frozen=True, slots=True)
class RecordWriter(RecordEraser):
    """Changes records. Each change and its entry in the audit log are one transaction."""

    @reported("create_memory", describe_record)
    @repeat_rolled_back
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
        record, why = self._make(text, user_id, now, may_instruct=not origins, **options)
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

    @reported("update_memory", describe_record)
    @repeat_rolled_back
    def update(self, user: str, record_id: str, reason: str, **options: Unpack[UpdateOptions]) -> MemoryRecord:
        """Change values of a record. Raises what `GovernedMemory.update` raises."""
        runtime, now = self.runtime, self.runtime.clock.now()
        record_id = check_id(record_id)
        options["tags"] = tags = _as_given(options.get("tags"))
        changes = self._checked(options)
        version = options.get("if_version")
        if version is not None:
            check_count(version, "if_version")
        ttl, expires_at = options.get("ttl"), options.get("expires_at")
        before = _check_found(runtime.store.find(user, record_id), record_id, now)
        if "policy_class" in changes or ttl is not None or expires_at is not None:
            policy_class = changes.get("policy_class", before.record.policy_class)
            changes["expires_at"] = expiry_of(runtime.policy, policy_class, before.record.source, now, ttl, expires_at)
        if changes.keys() & {"text", "metadata", "tags", "policy_class"}:
            content = {name: changes[name] for name in ("text", "metadata") if name in changes}
            text = text_of(replace(before.record, **content), tags or before.record.tags)
            old_class = changes.get("policy_class", before.record.policy_class)
            admitted, _ = runtime.gate.admit(text, before.record.source, old_class)
            _check_shareable(runtime.policy, user, admitted)
            changes |= {"policy_class": admitted} if admitted != old_class else {}
        fresh = runtime.stored(replace(before.record, text=changes["text"])) if "text" in changes else None
        with runtime.store.writing() as transaction:
            stored = _check_found(transaction.find(user, record_id), record_id, now)
            check_not_held(stored.record)
            _check_changes(stored.record, changes, version)
            if not changes:
                return stored.record
            record = self._unarchive(transaction, user, stored.record, now)
            if "metadata" in changes:
                changes["metadata"] = keep_scopes(record.metadata, changes["metadata"])
            if "expires_at" in changes:
                record = _with_ttl(record, ttl)
            updated = replace(record, **changes, version=record.version + 1)
            if changes.keys() & {"pinned", "policy_class"}:
                check_standing(transaction, user, updated)
            if "expires_at" in changes:
                updated = limit_expiry(transaction, user, updated, record)
            transaction.replace(user, replace(fresh or stored, record=updated))
            transaction.log(runtime.event(user, updated, "update", reason, now, changed=sorted(changes)))
            self._erase_summaries(transaction, user, stored.record, updated, now)
            if "expires_at" in changes:
                self.shorten_derived(transaction, user, updated, now)
        return updated

    def _erase_summaries(
        self, transaction: RecordTransaction, user: str, former: MemoryRecord, updated: MemoryRecord, now: datetime
    ) -> None:
        """Erase the summaries by maintenance that hold a record's former text; their other parts hold again."""
        if updated.text == former.text:
            return
        derived = transaction.with_derived(user, [former.id])
        ids = [s.record.id for s in derived if s.record.kind == "summary" and s.record.id != former.id]
        replacing = {former.superseded_by, *(s.record.superseded_by for s in transaction.replaced_by(user, ids))}
        if own := [each for each in ids if each in replacing]:  # the others were written by callers
            records = transaction.with_derived(user, own)
            self.erase(transaction, user, records, f"{former.id}, a part of it, has another text", now)

    def shorten_derived(self, transaction: RecordTransaction, user: str, origin: MemoryRecord, now: datetime) -> None:
        """Make what is derived from a record expire no later than it."""
        because, detail = f"expires with {origin.id}, which it is derived from", {"evidence": {"by": origin.id}}
        for each in limit_derived(transaction, user, origin):
            event = self.runtime.event(user, each, "update", because, now, changed=["expires_at"], **detail)
            transaction.log(event)

    @reported("update_memory", describe_record)
    def supersede(
        self, user: str, user_id: UserId, record_id: str, text: str, reason: str, **options: Unpack[RecordOptions]
    ) -> MemoryRecord:
        """Write a record in place of another, which is closed. Raises what `GovernedMemory.supersede` raises."""
        if "tags" in options:
            options["tags"] = _as_given(options["tags"])
        while (record := self._supersede(user, user_id, record_id, text, reason, **options)) is None:
            pass
        return record

    @repeat_rolled_back
    def _supersede(
        self, user: str, user_id: UserId, record_id: str, text: str, reason: str, **options: Unpack[RecordOptions]
    ) -> MemoryRecord | None:
        """Do so; None if somebody changed the former record, which the new one inherits from, since it was read."""
        runtime, now = self.runtime, self.runtime.clock.now()
        record_id = check_id(record_id, "record_id")
        former = _check_replaceable(runtime.store.find(user, record_id), record_id, now)
        inherited: RecordOptions = {
            "source": former.source, "policy_class": former.policy_class, "session_id": former.session_id,
            "tags": former.tags, "pinned": former.pinned,
        }  # fmt: skip
        chosen: RecordOptions = {**inherited, **options, "metadata": inherit_metadata(former.metadata, options)}
        record, _ = self._make(text, user_id, now, **chosen)
        fresh = runtime.stored(record)
        with runtime.store.writing() as transaction:
            stored = transaction.find(user, record_id)
            before = _check_replaceable(stored, record_id, now)
            assert stored is not None
            check_not_held(before)
            if before.version != former.version:
                return None
            remove_expired(runtime, transaction, user, record.id, now)
            origins = find_origins(transaction, user, before)
            record = limit_expiry(transaction, user, replace(record, derived_from=origins), before)
            if options.get("ttl") is None and options.get("expires_at") is None:
                ends = [
                    before.expires_at,
                    *([record.expires_at] if {"source", "policy_class"} & options.keys() else []),
                ]
                record = replace(record, expires_at=min((each for each in ends if each is not None), default=None))
            check_standing(transaction, user, record, before)
            if before.is_standing and record.source != "chat_user":
                raise PolicyError(f"only what the user says may replace the standing wish {record_id!r:.80}")
            transaction.insert(user, replace(fresh, record=record))
            end = max(validity(record)[0], validity(before)[0])
            closed = replace(before, valid_to=end, superseded_by=record.id, flagged="", version=before.version + 1)
            transaction.replace(user, replace(stored, record=self._unarchive(transaction, user, closed, now)))
            transaction.log(runtime.event(user, record, "add", reason, now, source=record.source))
            detail = {"rule": "supersede", "evidence": {"by": record.id}, "inverse": "restore"}
            transaction.log(runtime.event(user, closed, "supersede", reason, now, **detail))
        return record

    def _make(
        self,
        text: str,
        user_id: UserId | None,
        now: datetime,
        *,
        may_instruct: bool = True,
        **options: Unpack[RecordOptions],
    ) -> tuple[MemoryRecord, str]:
        """Return a new record as the gate admits it, and why it is private; empty if nothing made it private."""
        runtime, tags = self.runtime, _as_given(options.get("tags"))
        options["tags"] = tags
        record = make_record(
            text, user_id=user_id, policy=runtime.policy, now=now, classifier=runtime.classifier, tagger=runtime.tagger,
            may_instruct=may_instruct, **options,
        )  # fmt: skip
        admitted, why = runtime.gate.admit(
            all_text(text, record.metadata, tags or ()), record.source, record.policy_class,
            is_classified=options.get("policy_class") is None and not (record.metadata or tags),
        )  # fmt: skip
        return replace(record, policy_class=admitted), why

    def _checked(self, options: UpdateOptions) -> dict[str, Any]:
        """Return the checked values of the fields to change, by name."""
        check_option_names(options, UpdateOptions.__annotations__, "update")
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

    @repeat_rolled_back
    def hold(self, user: str, record_id: str, why: str, reason: str) -> None:
        """Let nothing change or erase a record from now on; an empty `why` releases it, if it is on hold."""
        runtime, now = self.runtime, self.runtime.clock.now()
        record_id = check_id(record_id)
        with runtime.store.writing() as transaction:
            stored = transaction.find(user, record_id)
            if stored is None or (stored.record.expired(now) and not stored.record.hold):
                raise unknown(record_id)
            if not (why or stored.record.hold):
                return
            record = self._unarchive(transaction, user, stored.record, now)
            record = replace(record, hold=why, version=record.version + 1)
            transaction.replace(user, replace(stored, record=record))
            transaction.log(runtime.event(user, record, "hold" if why else "release", reason, now))

    @repeat_rolled_back
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

    @repeat_rolled_back
    def hide(self, user: str, record_id: str, reason: str) -> tuple[list[str], dict[str, str]]:
        """Archive a record and what is derived from it, except what is on hold; `restore` takes it back.

        Earlier versions are archived, too, but not named: `restore` would make them hold again.

        Returns:
            The ids of the archived ones; and those on hold, with the reason.

        Raises:
            UnknownIdError: the user has no record of that id.
            HoldError: the record is on hold.
        """
        runtime, now = self.runtime, self.runtime.clock.now()
        hidden: list[str] = []
        held: dict[str, str] = {}
        with runtime.store.writing() as transaction:
            for stored in transaction.with_derived(user, [check_id(record_id)], copies=True, superseded=False):
                record = stored.record
                if record.id == record_id:
                    check_not_held(record)
                if not record.hold and not record.archived:
                    transaction.replace(user, replace(stored, record=replace(record, archived=True)))
                    transaction.log(runtime.event(user, record, "archive", reason, now, inverse="restore"))
                if record.hold:
                    held[record.id] = record.hold
                elif record.id == record_id or not record.is_closed:
                    hidden.append(record.id)
            if not hidden:
                raise unknown(record_id)
        return sorted(hidden), held

    def _unarchive(
        self, transaction: RecordTransaction, user: str, record: MemoryRecord, now: datetime
    ) -> MemoryRecord:
        """Return an archived record as an active one, and log it; an archived message stays archived."""
        if not record.archived or record.kind == "message":
            return record
        transaction.log(self.runtime.event(user, record, "restore", "changed, or put on hold", now))
        return replace(record, archived=False)


def _with_ttl(record: MemoryRecord, ttl: timedelta | None) -> MemoryRecord:
    """Return an item that keeps to a new lifetime when reads refresh it; other records as they are."""
    seconds = None if ttl is None else ttl.total_seconds()
    return replace(record, metadata={**record.metadata, "ttl": seconds}) if record.kind == "item" else record


def _as_given(tags: Any) -> Any:  # noqa: ANN401
    """Return tags for the gate, in capital and small letters as they were given, if they can be read twice."""
    return tuple(tags) if isinstance(tags, Iterable) and not isinstance(tags, str) else tags


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
