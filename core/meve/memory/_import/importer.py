"""Import: checks the rows of an export, and writes those that this memory doesn't have."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from meve._repeating import repeat_rolled_back
from meve.errors import MeveError, PolicyError, StoreCorruptError, ValidationError
from meve.memory._audit.chain import AuditRow
from meve.memory._audit.log_names import find_entries
from meve.memory._expiry import remove_expired
from meve.memory._import.rows import READERS, ImportFormat, Row, RowRules, detect_format, order_of, read_rows
from meve.memory._runtime import MemoryRuntime
from meve.memory._write.provenance import check_standing, limit_expiry
from meve.memory._write.secrets import text_of
from meve.memory.records import MemoryRecord, StoredRecord, UserId, check_choice, user_key, without_copies
from meve.memory.stores._record_transaction import RecordTransaction
from meve.memory.stores.protocol import EventQuery

_BATCH = 256
"""The number of records that are embedded and written at once."""
_ENDS = {"delete": "erased", "expire": "expired", "prune": "erased"}
"""By the entry in the audit log with which a record ends: the list of the report that names it."""


class _DryRunError(Exception):
    """Ends a dry run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """The result of `GovernedMemory.import_`. Rows are numbered from 1, in the order of the export."""

    format: ImportFormat
    dry_run: bool
    """Whether nothing was written; `added` lists what would have been."""
    added: list[str] = field(default_factory=list)
    """Ids of new records."""
    known: list[str] = field(default_factory=list)
    """Ids that the user has a record of; that record stays as it is."""
    expired: list[str] = field(default_factory=list)
    """Ids of rows that have expired, and of records that expired here; the latter come back with `restore_erased`."""
    erased: list[str] = field(default_factory=list)
    """Ids of records that were deleted here; they stay so, unless `restore_erased` is set."""
    derived: list[str] = field(default_factory=list)
    """Ids of rows derived from a record that was deleted or expired here; they come in with `restore_erased`."""
    rejected: list[tuple[int, str]] = field(default_factory=list)
    """The numbers of invalid rows, each with the reason."""

    def include(self, other: "ImportReport") -> None:
        """Add the rows of another report."""
        for name in ("added", "known", "expired", "erased", "derived", "rejected"):
            getattr(self, name).extend(getattr(other, name))


@dataclass(frozen=True, slots=True)
class Importer:
    """Writes the records of an export."""

    runtime: MemoryRuntime
    rules: RowRules
    reason: str
    restore_erased: bool

    def run(self, data: Any, format: ImportFormat | None, *, dry_run: bool) -> ImportReport:  # noqa: ANN401
        """Import all valid rows. See `GovernedMemory.import_`."""
        kind = detect_format(data) if format is None else check_choice(format, "format", ImportFormat)
        report = ImportReport(format=kind, dry_run=dry_run)
        whole = data if isinstance(data, Mapping) else {}
        parsed = list(self._parse(read_rows(data, kind), whole.get("user_id"), report))
        chosen = list(self._choose(order_of(self._without_expired_copies(parsed)), report))
        if dry_run:
            self._try(chosen, report)
        else:
            for begin in range(0, len(chosen), _BATCH):
                report.include(self._write(chosen[begin : begin + _BATCH], kind))
        report.rejected.sort()
        return report

    def _parse(
        self, rows: Iterable[object], owner: object, report: ImportReport
    ) -> Iterator[tuple[int, MemoryRecord, Row]]:
        for number, row in enumerate(rows, start=1):
            try:
                if not isinstance(row, Mapping):
                    raise ValidationError(f"it must be an object, got {row!r:.60}")
                named = row if report.format != "meve" or "user_id" in row else {**row, "user_id": owner}
                yield number, self._admit(READERS[report.format](named, self.rules)), row
            except (MeveError, TypeError, ValueError, KeyError, OverflowError, RecursionError) as error:
                report.rejected.append((number, str(error) or repr(error)))

    def _without_expired_copies(
        self, rows: Sequence[tuple[int, MemoryRecord, Row]]
    ) -> list[tuple[int, MemoryRecord, Row]]:
        """Return rows that name no copies which have expired: what they were merged into says the same by itself."""
        expired: dict[tuple[UserId | None, str | None], list[MemoryRecord]] = {}
        for _, record, _ in rows:
            if record.expired(self.rules.now) and not record.hold:
                expired.setdefault((record.user_id, record.superseded_by), []).append(record)
        return [(n, without_copies(r, expired.get((r.user_id, r.id), ())), row) for n, r, row in rows]

    def _admit(self, record: MemoryRecord) -> MemoryRecord:
        """Return a record as the gate for secrets lets it in. Raise PolicyError if it is refused."""
        text = text_of(record, record.tags)
        policy_class, _ = self.runtime.gate.admit(text, record.source, record.policy_class)
        return replace(record, policy_class=policy_class)

    def _choose(
        self, rows: Iterable[tuple[int, MemoryRecord]], report: ImportReport
    ) -> Iterator[tuple[int, MemoryRecord]]:
        """Yield the rows to write; note the others in the report."""
        seen: set[tuple[str, str]] = set()
        for number, record in rows:
            assert record.user_id is not None
            key = (user_key(record.user_id), record.id)
            try:
                stored = self.runtime.store.find(*key)
            except StoreCorruptError:
                report.rejected.append((number, f"the memory holds a damaged record {record.id!r:.80}"))
                continue
            if record.expired(self.rules.now) and not record.hold:
                report.expired.append(record.id)
            elif key in seen:
                report.rejected.append((number, f"id {record.id!r:.80} stands in an earlier row, too"))
            elif stored is not None and (stored.record.hold or not stored.record.expired(self.rules.now)):
                report.known.append(record.id)
            elif stored is not None and not self.restore_erased:
                report.expired.append(record.id)
            else:
                with self.runtime.store.backend.reading() as snapshot:
                    read = partial(find_entries, snapshot, self.runtime.chain)
                    is_left_out = self._leave_out(read, key[0], record, report)
                if not is_left_out:
                    seen.add(key)
                    yield number, record

    def _leave_out(
        self,
        read: Callable[[EventQuery], Iterable[AuditRow]],
        user: str,
        record: MemoryRecord,
        report: ImportReport,
    ) -> bool:
        """Note in the report why a record stays away: it is gone here, or one that it is derived from; False if not."""

        def find_end(record_id: str) -> str:
            rows = list(read(EventQuery(user=user, record=record_id, actions=("add", *_ENDS))))
            return _ENDS.get(rows[-1].action, "") if rows else ""

        if self.restore_erased:
            return False
        if where := find_end(record.id):
            getattr(report, where).append(record.id)
        elif any(map(find_end, record.derived_from)):
            report.derived.append(record.id)
        else:
            return False
        return True

    def _try(self, rows: Iterable[tuple[int, MemoryRecord]], report: ImportReport) -> None:
        """Write the rows without vectors, and roll all back."""
        embedder = self.runtime.embedder
        blank = np.zeros(embedder.dimension, dtype=np.float32)
        with suppress(_DryRunError), self.runtime.store.writing() as transaction:
            for number, record in rows:
                stored = StoredRecord(record=record, vector=blank, tokens=0, model=embedder.model)
                self._insert(transaction, stored, number, report)
            raise _DryRunError

    @repeat_rolled_back
    def _write(self, rows: list[tuple[int, MemoryRecord]], kind: ImportFormat) -> ImportReport:
        report = ImportReport(format=kind, dry_run=False)
        ready = self.runtime.stored_all([record for _, record in rows])
        with self.runtime.store.writing() as transaction:
            for (number, _), stored in zip(rows, ready, strict=True):
                self._insert(transaction, stored, number, report)
        return report

    def _insert(self, transaction: RecordTransaction, stored: StoredRecord, number: int, report: ImportReport) -> None:
        record, now = stored.record, self.rules.now
        assert record.user_id is not None
        user = user_key(record.user_id)
        if self._leave_out(partial(transaction.entries, self.runtime.chain), user, record, report):  # erased meanwhile
            return
        remove_expired(self.runtime, transaction, user, record.id, now)
        if transaction.find(user, record.id) is not None:  # somebody added it meanwhile, or it is on hold
            report.known.append(record.id)
            return
        record = limit_expiry(transaction, user, record)
        try:
            check_standing(transaction, user, record)
        except PolicyError as error:
            report.rejected.append((number, str(error)))
            return
        transaction.insert(user, replace(stored, record=record))
        detail = {"source": record.source, "imported": report.format}
        transaction.log(self.runtime.event(user, record, "add", self.reason, now, **detail))
        report.added.append(record.id)
