"""Merging: of two duplicates, and of two records that contradict each other, one is closed. None is erased."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING

from meve._formulas import normalize
from meve.memory._contradiction.statements import StatementValues, parse_values
from meve.memory._maintenance.deduplication import is_settled, precedence
from meve.memory.records import MemoryRecord, StoredRecord

if TYPE_CHECKING:
    from meve.memory._maintenance.plan import MaintenancePlan


class DuplicateMerger:
    """Merges similar records with the same values, and supersedes one of two that contradict each other."""

    def __init__(self, plan: "MaintenancePlan") -> None:
        self._plan = plan
        self._values: dict[str, StatementValues] = {}
        """By record id."""

    def run(self) -> None:
        """Compare records of equal text, then those of similar vectors."""
        plan = self._plan
        near = plan.nearest_pairs(self._candidates(), plan.policy.merging.similarity)
        for one, other in chain(list(self._equal_texts()), near):
            a, b = plan.records.get(one), plan.records.get(other)
            if a is None or b is None or a.record.is_closed or b.record.is_closed or is_settled(a.record, b.record):
                continue
            if self._values_of(a.record) != self._values_of(b.record):
                self._supersede(*sorted((a, b), key=lambda s: self._rank(s.record), reverse=True))
            else:
                self._merge(*sorted((a, b), key=lambda s: self._end_and_rank(s.record), reverse=True))

    def _candidates(self) -> list[str]:
        return [key for key, stored in self._plan.without_items().items() if not stored.record.is_closed]

    def _equal_texts(self) -> Iterator[tuple[str, str]]:
        """Yield pairs of equal text: each duplicate with the one that expires last."""
        first: dict[tuple[object, ...], str] = {}
        records = [self._plan.records[key].record for key in self._candidates()]
        for r in sorted(records, key=self._end_and_rank, reverse=True):
            if not r.hold and (kept := first.setdefault((r.text, r.policy_class, bool(r.flagged)), r.id)) != r.id:
                yield kept, r.id

    def _values_of(self, record: MemoryRecord) -> StatementValues:
        if record.id not in self._values:
            self._values[record.id] = parse_values(record.text)
        return self._values[record.id]

    def _rank(self, record: MemoryRecord) -> tuple[bool, bool, datetime, float, str]:
        return precedence(replace(record, flagged=""), self._plan.score(record))

    def _end_and_rank(self, record: MemoryRecord) -> tuple[datetime, tuple[bool, bool, datetime, float, str]]:
        return (_expiry_or_max(record), self._rank(record))

    def _supersede(self, winner: StoredRecord, loser: StoredRecord) -> None:
        """Close the loser, unless an answer contradicted the winner.

        Held records are never superseded; unprunable ones only by each other.
        """
        plan, w, x = self._plan, winner.record, loser.record
        if x.hold or w.flagged or (plan.is_removable(w) and not plan.is_removable(x)):
            return
        difference = plan.runtime.contradiction.find_difference(w.text, x.text)
        if not difference:  # different values, but perhaps of different subjects
            return
        kind = difference.partition(":")[0]
        flagged = replace(loser, record=replace(x, flagged=f"another {kind} than {w.id}"))
        reason = f"{w.id} says another {kind}, and is newer or better"
        plan.close(flagged, w, "supersede", reason, plan.report.superseded, rule="contradiction", difference=kind)

    def _merge(self, longer: StoredRecord, shorter: StoredRecord) -> None:
        """Merge the record that expires first into the other, unless that would keep one of its tags longer."""
        plan, w, x = self._plan, longer.record, shorter.record
        are_alike = w.policy_class == x.policy_class and bool(w.flagged) == bool(x.flagged)
        outlives = _expiry_or_max(w) > _expiry_or_max(x) and not set(x.tags) <= set(w.tags)
        are_derived = x.id in w.derived_from or w.id in x.derived_from
        if not are_alike or are_derived or outlives or w.hold or not plan.is_removable(x):
            return
        merged = replace(
            w,
            reflection=max(plan.score(w), plan.score(x)),
            uses=w.uses + x.uses,
            tags=tuple(sorted({*w.tags, *x.tags})),
            derived_from=tuple(sorted({*w.derived_from, x.id})),
            touched_at=max((t for t in (w.touched_at, x.touched_at) if t), default=None),
            used_at=max((t for t in (w.used_at, x.used_at) if t), default=None),
            version=w.version + 1,
        )
        plan.replace(longer, merged)
        cosine = round(float(normalize(longer.vector) @ normalize(shorter.vector)), 4)
        reason = f"{w.id} says the same"
        plan.close(shorter, w, "merge", reason, plan.report.merged, rule="merging.similarity", cosine=cosine)


def _expiry_or_max(record: MemoryRecord) -> datetime:
    return record.expires_at or datetime.max.replace(tzinfo=UTC)
