"""Merging: of two duplicates, and of two records that contradict each other, one is closed. None is erased."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING

from meve._formulas import cosines
from meve.memory._classify.wish_endings import read_ending
from meve.memory._contradiction.claims import have_equal_words
from meve.memory._contradiction.statements import Statement, parse_statement
from meve.memory._contradiction.updates import SAME, WISH, RuleUpdateJudge, UpdateVerdict
from meve.memory._maintenance.deduplication import (
    expiry_or_max,
    have_same_readers,
    is_settled,
    may_close,
    may_replace,
    precedence,
)
from meve.memory._maintenance.nomination import find_related_pairs
from meve.memory.records import MemoryRecord, StoredRecord, validity

if TYPE_CHECKING:
    from meve.memory._maintenance.plan import MaintenancePlan


_OTHERWISE = {name: f"another {name} than" for name in ("number", "day", "name")}
_OTHERWISE |= {"denial": "denied by", "change": "changed by"}
"""By what a judge found: why a record is closed."""
ENDED = 2
"""The most memories that one may replace by the trained model's verdict alone; one that seems to end more ends none."""


class DuplicateMerger:
    """Merges similar records that say the same, and supersedes one of two of which the newer replaces the older."""

    def __init__(self, plan: "MaintenancePlan") -> None:
        self._plan = plan
        self._statements: dict[str, Statement] = {}
        """By record id."""
        self._claims: list[tuple[str, str, UpdateVerdict]] = []
        """Ids of an older and a newer record, and the verdict, where only the trained model finds a change."""
        self._released: dict[str, str] = {}
        """By the id of an instruction that takes a wish back and asks for nothing, the id of that wish."""

    def run(self) -> None:
        """Compare records of equal text, then those of similar vectors, then those that share a rare word.

        Pairs that were compared before are left out, and what exceeds the policy's `max_pairs` is left for later.
        """
        plan, candidates = self._plan, self._candidates()
        progress = plan.comparing({key: plan.records[key].row for key in candidates})
        if not progress.has_open_pairs:
            return
        near = plan.nearest_pairs(candidates, plan.policy.merging.nominate)
        related = find_related_pairs([plan.records[key].record for key in candidates], self._statement)
        pairs = dict.fromkeys(chain(list(self._equal_texts()), near, related))
        for one, other in progress.take(pairs, plan.policy.merging.max_pairs):
            a, b = plan.records.get(one), plan.records.get(other)
            if a is None or b is None or a.record.is_closed or b.record.is_closed or is_settled(a.record, b.record):
                continue
            if not have_same_readers(a.record, b.record, plan.policy):
                continue
            older, newer = sorted((a, b), key=lambda s: (validity(s.record)[0], s.row))
            verdict = self._judge(older, newer)
            if verdict.relation == "replaces" and may_replace(older.record, newer.record, plan.policy):
                if verdict.reason == "claim" and verdict.probability is not None:
                    self._claims.append((older.record.id, newer.record.id, verdict))
                else:
                    self._replace(older, newer, verdict)
            elif verdict.relation == "same" and self._may_merge(older, newer):
                self._merge(*sorted((a, b), key=self._end_and_rank, reverse=True))
        self._apply_claims()
        self._release()
        plan.keep_progress(progress)

    def _may_merge(self, older: StoredRecord, newer: StoredRecord) -> bool:
        """Return whether two records have equal words or are similar enough, and don't tell of events of two days."""
        old, new = (self._statement(stored.record).claim for stored in (older, newer))
        if not have_equal_words(old, new) and _cosine(older, newer) < self._plan.policy.merging.similarity:
            return False
        days = {validity(stored.record)[0].date() for stored in (older, newer)}
        return len(days) == 1 or not new.is_event

    def _replace(self, older: StoredRecord, newer: StoredRecord, verdict: UpdateVerdict) -> None:
        """Close one of two records that contradict each other."""
        winner, loser = sorted((older, newer), key=self._rank, reverse=True)
        self._supersede(winner, loser, verdict)

    def _apply_claims(self) -> None:
        """Close what only the trained model found replaced, unless the newer record seems to replace many.

        What seems to end many others is mostly talk or a general truth, and ends none of them.
        """
        ended = Counter(newer for _, newer, _ in self._claims)
        for one, other, verdict in self._claims:
            older, newer = self._plan.records[one], self._plan.records[other]
            if ended[other] <= ENDED and not (older.record.is_closed or newer.record.is_closed):
                self._replace(older, newer, verdict)

    def _judge(self, older: StoredRecord, newer: StoredRecord) -> UpdateVerdict:
        old, new = self._statement(older.record), self._statement(newer.record)
        judge = self._plan.runtime.updates
        if isinstance(judge, RuleUpdateJudge):
            return judge.compare_statements(old, new, similarity=_cosine(older, newer))
        return SAME if have_equal_words(old.claim, new.claim) else judge.judge(old.text, new.text)

    def _statement(self, record: MemoryRecord) -> Statement:
        if record.id not in self._statements:
            self._statements[record.id] = parse_statement(record.text)
        return self._statements[record.id]

    def _candidates(self) -> list[str]:
        return [key for key, stored in self._plan.without_items().items() if not stored.record.is_closed]

    def _equal_texts(self) -> Iterator[tuple[str, str]]:
        """Yield pairs of equal text: each duplicate with the one that expires last."""
        first: dict[tuple[object, ...], str] = {}
        stored = [self._plan.records[key] for key in self._candidates()]
        for r in (each.record for each in sorted(stored, key=self._end_and_rank, reverse=True)):
            if not r.hold and (kept := first.setdefault((r.text, r.policy_class, bool(r.flagged)), r.id)) != r.id:
                yield kept, r.id

    def _rank(self, stored: StoredRecord) -> tuple[bool, datetime, float, int]:
        return precedence(stored.record, self._plan.score(stored.record), stored.row)

    def _end_and_rank(self, stored: StoredRecord) -> tuple[datetime, tuple[bool, datetime, float, int]]:
        return (expiry_or_max(stored.record), self._rank(stored))

    def _supersede(self, winner: StoredRecord, loser: StoredRecord, verdict: UpdateVerdict) -> None:
        """Close the loser, if it may be closed."""
        plan, w, x = self._plan, winner.record, loser.record
        if not may_close(x, w, plan.policy):
            return
        kind, evidence = verdict.reason, {} if verdict.probability is None else {"probability": verdict.probability}
        flagged = replace(loser, record=replace(x, flagged=f"{_OTHERWISE.get(kind, 'contradicted by')} {w.id}"))
        reason = f"{w.id} says otherwise ({kind}), and is newer or better"
        where = plan.report.superseded
        until = self._find_end(x, w)
        plan.close(
            flagged, w, "supersede", reason, where, rule="contradiction", until=until, difference=kind, **evidence
        )
        if kind == WISH and w.policy_class == "instruction" and read_ending(w.text, x.text) == "release":
            self._released[w.id] = x.id

    def _release(self) -> None:
        """Make facts of the instructions that say no more than that a wish has ended; the others may hold further."""
        plan = self._plan
        for key, ended in self._released.items():
            stored = plan.records[key]
            record = stored.record
            if record.is_closed or record.hold or record.pinned:
                continue
            fact = replace(record, policy_class=plan.policy.user_class, version=record.version + 1)
            plan.replace(stored, fact)
            reason = f"it says no more than that {ended} has ended"
            plan.log(fact, "update", reason, rule="release", evidence={"of": ended}, changed=["policy_class"])
            plan.note(plan.report.released, key)

    def _find_end(self, record: MemoryRecord, by: MemoryRecord) -> datetime | None:
        """Return when a record ended that was told after what replaced it was replaced itself; None if it wasn't."""
        since = validity(record)[0]
        later = sorted((validity(c)[0], c.text) for c in self._plan.closed_by(by.id) if validity(c)[0] > since)
        judge = self._plan.runtime.updates
        return next((begin for begin, text in later if judge.judge(record.text, text).relation == "replaces"), None)

    def _merge(self, longer: StoredRecord, shorter: StoredRecord) -> None:
        """Merge the record that expires first into the other, unless that would keep one of its tags longer."""
        plan, w, x = self._plan, longer.record, shorter.record
        are_alike = w.policy_class == x.policy_class and bool(w.flagged) == bool(x.flagged)
        are_alike = are_alike and w.source in ("chat_user", x.source)
        outlives = expiry_or_max(w) > expiry_or_max(x) and not set(x.tags) <= set(w.tags)
        are_derived = x.id in w.derived_from or w.id in x.derived_from
        if not are_alike or are_derived or outlives or w.hold or not plan.is_removable(x):
            return
        is_copy = have_equal_words(self._statement(w).claim, self._statement(x).claim)  # a judge may find more the same
        merged = replace(
            w,
            reflection=max(plan.score(w), plan.score(x)),
            uses=w.uses + x.uses,
            outcomes=w.outcomes.merge(x.outcomes),
            tags=tuple(sorted({*w.tags, *x.tags})),
            derived_from=tuple(sorted({*w.derived_from, x.id})) if is_copy else w.derived_from,
            touched_at=max((t for t in (w.touched_at, x.touched_at) if t), default=None),
            used_at=max((t for t in (w.used_at, x.used_at) if t), default=None),
            version=w.version + 1,
        )
        plan.replace(longer, merged)
        cosine = round(_cosine(longer, shorter), 4)
        reason = f"{w.id} says the same"
        judged = shorter if is_copy else replace(shorter, record=replace(x, flagged=f"said in other words by {w.id}"))
        plan.close(judged, w, "merge", reason, plan.report.merged, rule="merging.similarity", cosine=cosine)


def _cosine(one: StoredRecord, other: StoredRecord) -> float:
    return float(cosines(one.vector, other.vector[None])[0]) if one.model == other.model else 0.0
