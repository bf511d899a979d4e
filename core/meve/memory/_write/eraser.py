"""Erase records: single ones, those of a session, and all of a user."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from meve._repeating import repeat_rolled_back
from meve._telemetry import reported
from meve.errors import HoldError, UnknownIdError
from meve.memory._maintenance.progress import setting_of
from meve.memory._reports import describe_erasure
from meve.memory._runtime import MemoryRuntime
from meve.memory._write.provenance import of_session, release_copies
from meve.memory.records import (
    MemoryRecord,
    StoredRecord,
    UserId,
    check_flag,
    check_id,
    other_type_of,
    user_key,
)
from meve.memory.stores._closed_records import find_replaced
from meve.memory.stores._reading import UnreadableRecord
from meve.memory.stores._record_transaction import RecordTransaction


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
    unreadable: tuple[str, ...] = ()
    """Damaged records that stay, since nobody can tell whether they are of the session; `forget_user` erases them."""
    found: bool = True
    """Whether anything of the user or session is stored; False if there was nothing to erase."""
    other_user: UserId | None = None
    """If nothing of the user was found, the user whose id reads the same and is of the other type, if stored: 5 for
    "5"."""


@dataclass(frozen=True, slots=True)
class RecordEraser:
    """Erases records that aren't on hold. Each erasure and its entries in the audit log are one transaction."""

    runtime: MemoryRuntime

    @reported("delete_memory", describe_erasure)
    @repeat_rolled_back
    def delete(
        self, user: str, record_id: str, reason: str, *, include_superseded: bool = False, dry_run: bool = False
    ) -> ErasureReport:
        """Erase a record, its copies and those derived from it, unless on hold; with `dry_run` only list them.

        A record that was merged or summarised is part of another record: then that one is erased, too.
        """
        runtime, now = self.runtime, self.runtime.clock.now()
        record_id, every = check_id(record_id), check_flag(include_superseded, "include_superseded")
        check_flag(dry_run, "dry_run")
        with runtime.store.writing() as transaction:
            records = transaction.with_derived(user, [record_id], copies=True, superseded=every)
            if not records:
                raise unknown(record_id)
            return self.erase(transaction, user, records, reason, now, dry_run=dry_run)

    @reported("delete_memory", describe_erasure)
    @repeat_rolled_back
    def forget(
        self, user: str, reason: str, session: str | None = None, *, dry_run: bool = False, all_or_none: bool = False
    ) -> ErasureReport:
        """Erase the records of a user, or of one session, unless they are on hold; with `dry_run` only list them."""
        check_flag(dry_run, "dry_run")
        check_flag(all_or_none, "all_or_none")
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
                gone = [each for each in records if not each.record.hold]
                for record in release_copies(transaction, user, gone, runtime.tagger.tag):
                    because = "a copy that was merged into it is erased"
                    transaction.log(runtime.event(user, record, "update", because, now, changed=["tags"]))
                report = replace(report, unreadable=tuple(each.id for each in unreadable))
            if not (records or unreadable or (session is None and _is_known(transaction, user))):
                other = other_type_of(user)
                is_known = other is not None and any(transaction.readable_records(user_key(other)))
                report = replace(report, found=False, other_user=other if is_known else None)
            if session is None and not dry_run:
                transaction.forget_user(user)
                if transaction.setting(name := setting_of(runtime.chain, user)):
                    transaction.put_setting(name, "")
        return report

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
        """Erase the records that aren't on hold."""
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
        return ErasureReport(erased=tuple(sorted(erased)), held=held, left_closed=left)

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


def _is_known(transaction: RecordTransaction, user: str) -> bool:
    """Return whether something else than records is stored of a user."""
    return transaction.has_damaged_key(user) or bool(transaction.shared_scores(user))


def check_not_held(record: MemoryRecord) -> None:
    """Raise HoldError if a record is on hold."""
    if record.hold:
        raise HoldError(f"memory {record.id!r} is on hold ({record.hold}): release it first")


def unknown(record_id: object) -> UnknownIdError:
    """Return the error for an id that a user doesn't have."""
    return UnknownIdError(f"no memory {record_id!r:.80} of this user: list() returns all records")
