"""One user's round of upkeep: what shall become of the records, planned without keeping anybody from writing."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeAlias

import numpy as np

from meve.formulas import unit
from meve.memory.chain import Action
from meve.memory.kit import Kit
from meve.memory.policy import PolicyClass
from meve.memory.recall import decayed
from meve.memory.records import SHARED, MemoryRecord, StoredRecord, UserId, user_of
from meve.memory.stores.ports import Transaction
from meve.memory.summaries import Summariser
from meve.memory.values import differing_value

Step: TypeAlias = Callable[[Transaction], object]
"""One change, made in whatever transaction it is given."""


_STEPS = ("expired", "pruned", "merged", "superseded", "summarised", "archived")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkept:
    """What a round of upkeep did: ids by user."""

    expired: dict[UserId | None, list[str]] = field(default_factory=dict)
    pruned: dict[UserId | None, list[str]] = field(default_factory=dict)
    merged: dict[UserId | None, list[str]] = field(default_factory=dict)
    """Records that became part of others."""
    superseded: dict[UserId | None, list[str]] = field(default_factory=dict)
    summarised: dict[UserId | None, list[str]] = field(default_factory=dict)
    archived: dict[UserId | None, list[str]] = field(default_factory=dict)
    scrubbed: bool = True
    """Whether no file holds what was erased."""

    def include(self, other: "Upkept") -> None:
        """Add what another round did."""
        for name in _STEPS:
            for user, ids in getattr(other, name).items():
                getattr(self, name).setdefault(user, []).extend(ids)

    def counts(self) -> dict[str, int]:
        """How many records each step took."""
        return {name: sum(map(len, getattr(self, name).values())) for name in _STEPS}


class Round:
    """Reads a user's records, and plans. Nothing is changed before `apply`.

    Args:
        kit: the memory's parts.
        summariser: makes one text of several.
        user: the user's key.
    """

    def __init__(self, kit: Kit, summariser: Summariser, user: str) -> None:
        self._kit = kit
        self._policy = kit.policy
        self._summariser = summariser
        self._user = user
        self._now: datetime = kit.clock.now()
        self.done = Upkept()
        self._steps: list[Step] = []
        changes = kit.store.changes(user, 0)
        self.version = changes.version
        """The user's, as of which it is planned."""
        found = [stored for _, stored in changes.records]
        self._records = {s.record.id: s for s in found if s.record.source != "message"}
        self._messages = [s for s in found if s.record.source == "message"]
        """They expire, and nothing else becomes of them."""
        self._packed = kit.store.archived(user)
        self._plan()

    def apply(self, transaction: Transaction) -> bool:
        """Do all of it, in this order; whether there was anything to do."""
        for step in self._steps:
            step(transaction)
        return bool(self._steps)

    def _plan(self) -> None:
        self._expire()
        self._prune(self._policy.pruning.below, "its score fell below")
        if self._user != SHARED:
            self._merge()
            self._summarise()
        self._archive()
        self._cap()

    def _expire(self) -> None:
        for stored in [*self._records.values(), *self._packed, *self._messages]:
            record = stored.record
            if record.expired(self._now):
                self._records.pop(record.id, None)
                if not record.hold:
                    self._erased(record, "expire", f"its time was over at {record.expires_at}")
                    self._note(self.done.expired, record.id)

    def _score(self, record: MemoryRecord) -> float:
        return decayed(record, self._policy, self._now)

    def _free(self, record: MemoryRecord) -> bool:
        """Whether upkeep may take it away."""
        return not record.hold and self._policy.rule(record.policy_class).prune

    def _prune(self, below: float, why: str) -> None:
        for stored in list(self._records.values()):
            record = stored.record
            old = self._now - record.created_at >= self._policy.pruning.min_age
            if self._free(record) and old and self._score(record) < below:
                self._pruned(record, f"{why} {below:g}")

    def _cap(self) -> None:
        over = len(self._records) - self._policy.limits.per_user
        if over > 0:
            free = sorted((s.record for s in self._records.values() if self._free(s.record)), key=self._worth)
            for record in free[:over]:
                self._pruned(record, f"over the cap of {self._policy.limits.per_user:,}")

    def _worth(self, record: MemoryRecord) -> tuple[bool, float, datetime, str]:
        return (record.superseded_by is None, self._score(record), record.created_at, record.id)

    def _archive(self) -> None:
        rules = self._policy.archiving
        for stored in list(self._records.values()):
            record = stored.record
            idle = self._now - max(record.touched_at or record.created_at, record.created_at)
            packable = self._free(record) and record.source != "item"  # an item is found by its key and its namespace
            if packable and idle >= rules.idle and self._score(record) < rules.below:
                self._packed_away(stored)
                because = f"idle for {idle.days} days, score {self._score(record):.0f}"
                self._log(record, "archive", because)
                self._note(self.done.archived, record.id)
                del self._records[record.id]

    def _packed_away(self, stored: StoredRecord) -> None:
        self._steps.append(lambda t: t.archive(self._user, stored))

    def _merge(self) -> None:
        """Of each pair that is near: the same twice becomes one; of two that contradict, the newer or better stays."""
        said = [key for key, stored in self._records.items() if stored.record.source != "item"]
        for one, other in self._near(said, self._policy.merging.similarity):
            a, b = self._records.get(one), self._records.get(other)
            if a is None or b is None or a.record.superseded_by or b.record.superseded_by:
                continue
            winner, loser = sorted((a, b), key=lambda s: self._rank(s.record), reverse=True)
            if loser.record.hold:
                continue
            if differing_value(a.record.text, b.record.text):
                if self._free(loser.record) or not self._free(winner.record):  # what is never pruned yields to its like
                    self._supersede(winner, loser)
            elif a.record.policy_class == b.record.policy_class and self._free(loser.record):
                self._absorb(winner, loser)

    def _rank(self, record: MemoryRecord) -> tuple[bool, bool, datetime, float, str]:
        """What is on hold wins, then what no answer contradicted, then the newer one, then the better one."""
        return (bool(record.hold), not record.flagged, record.created_at, self._score(record), record.id)

    def _supersede(self, winner: StoredRecord, loser: StoredRecord) -> None:
        difference = self._kit.contradiction.between(winner.record.text, loser.record.text)
        if not difference:  # another value, of what may be another subject: both stay
            return
        made = replace(
            loser.record,
            superseded_by=winner.record.id,
            flagged=f"another {difference.partition(':')[0]} than {winner.record.id}",
            version=loser.record.version + 1,
        )
        self._replace(loser, made)
        because = f"{winner.record.id} says another {difference.partition(':')[0]}, and is newer or better"
        self._log(made, "supersede", because)
        self._note(self.done.superseded, made.id)

    def _absorb(self, winner: StoredRecord, loser: StoredRecord) -> None:
        w, x = winner.record, loser.record
        made = replace(
            w,
            reflection=max(self._score(w), self._score(x)),
            uses=w.uses + x.uses,
            tags=tuple(sorted({*w.tags, *x.tags})),
            derived_from=tuple(sorted({*w.derived_from, *x.derived_from, x.id} - {w.id})),
            expires_at=None if None in (w.expires_at, x.expires_at) else max(w.expires_at, x.expires_at),  # type: ignore[type-var]
            touched_at=max((t for t in (w.touched_at, x.touched_at) if t), default=None),
            used_at=max((t for t in (w.used_at, x.used_at) if t), default=None),
            version=w.version + 1,
        )
        self._replace(winner, made)
        self._erased(x, "merge", f"{w.id} says the same", into=w.id)
        self._note(self.done.merged, x.id)
        del self._records[x.id]
        self._pass_on(x.id, w.id)

    def _summarise(self) -> None:
        """Related ones of low score, of one class, become one summary."""
        rules = self._policy.merging
        low = {
            key for key, s in self._records.items()
            if self._free(s.record) and self._score(s.record) < rules.summarise_below
            and s.record.source not in ("summary", "item")
            and s.record.superseded_by is None
            and self._now - s.record.created_at >= self._policy.pruning.min_age
        }  # fmt: skip
        for group in _groups(self._near(low, rules.related)):
            by_class: dict[PolicyClass, list[StoredRecord]] = {}
            for key in group:
                by_class.setdefault(self._records[key].record.policy_class, []).append(self._records[key])
            for policy_class, members in by_class.items():
                if len(members) >= rules.least:
                    self._one_of(policy_class, sorted(members, key=lambda s: (s.record.created_at, s.record.id)))

    def _one_of(self, policy_class: PolicyClass, members: Sequence[StoredRecord]) -> None:
        records = [s.record for s in members]
        ends = [r.expires_at for r in records]
        made = MemoryRecord(
            id=f"summary-{self._kit.chain.content(' '.join(sorted(r.id for r in records)))[:16]}",
            user_id=user_of(self._user),
            text=self._summariser.summarise([r.text for r in records]),
            source="summary",
            policy_class=policy_class,
            created_at=self._now,
            expires_at=min((end for end in ends if end is not None), default=None),
            tags=tuple(sorted({tag for r in records for tag in r.tags})),
            reflection=self._policy.reflection.start,
            derived_from=tuple(sorted({r.id for r in records} | {i for r in records for i in r.derived_from})),
        )
        stored = self._kit.stored(made)
        self._steps.append(lambda t: t.insert(self._user, stored))
        self._log(made, "add", f"summary of {len(records)}")
        for record in records:
            self._erased(record, "merge", f"part of {made.id}", into=made.id)
            self._note(self.done.summarised, record.id)
            del self._records[record.id]
        self._records[made.id] = stored
        for record in records:
            self._pass_on(record.id, made.id)

    def _pass_on(self, gone: str, into: str) -> None:
        """What was made from one that became part of another goes with that other, too."""
        for stored in [*self._records.values(), *self._packed]:
            record = stored.record
            if gone in record.derived_from and into not in (record.id, *record.derived_from):
                fresh = replace(record, derived_from=tuple(sorted({*record.derived_from, into})))
                self._change(stored, replace(fresh, version=record.version + 1))

    def _change(self, stored: StoredRecord, made: MemoryRecord) -> None:
        """A record becomes this one where it is: among the others, or in the archive."""
        if made.id in self._records:
            self._replace(stored, made)
            return
        packed = replace(stored, record=made)
        self._packed = [packed if each.record.id == made.id else each for each in self._packed]
        self._packed_away(packed)

    def _near(self, ids: Iterable[str], least: float) -> list[tuple[str, str]]:
        """Pairs of these ids with a cosine of `least` or more, likest first."""
        keys = sorted(ids)
        if len(keys) < 2:
            return []
        vectors = unit(np.array([self._records[key].vector for key in keys]))
        found: list[tuple[float, str, str]] = []
        for begin in range(0, len(keys), 512):
            likeness = vectors[begin : begin + 512] @ vectors.T
            for i, j in np.argwhere(likeness >= least).tolist():
                if begin + i < j:
                    found.append((float(likeness[i, j]), keys[begin + i], keys[j]))
        return [(a, b) for _, a, b in sorted(found, key=lambda each: (-each[0], each[1], each[2]))]

    def _replace(self, stored: StoredRecord, made: MemoryRecord) -> None:
        fresh = replace(stored, record=made)
        self._steps.append(lambda t: t.replace(self._user, fresh))
        self._records[made.id] = fresh

    def _pruned(self, record: MemoryRecord, because: str) -> None:
        self._erased(record, "prune", because, score=round(self._score(record), 4))
        self._note(self.done.pruned, record.id)
        del self._records[record.id]

    def _erased(self, record: MemoryRecord, action: Action, because: str, **detail: Any) -> None:  # noqa: ANN401
        self._steps.append(lambda t: t.erase(self._user, record.id))
        self._log(record, action, because, **detail)

    def _log(self, record: MemoryRecord, action: Action, because: str, **detail: Any) -> None:  # noqa: ANN401
        event = self._kit.event(self._user, record, action, because, self._now, **detail)
        self._steps.append(lambda t: t.log(event))

    def _note(self, where: dict[UserId | None, list[str]], record_id: str) -> None:
        where.setdefault(user_of(self._user), []).append(record_id)


def _groups(pairs: Sequence[tuple[str, str]]) -> list[list[str]]:
    """What hangs together by pairs."""
    group_of: dict[str, set[str]] = {}
    for a, b in pairs:
        joined = group_of.get(a, {a}) | group_of.get(b, {b})
        for key in joined:
            group_of[key] = joined
    return [list(group) for group in sorted({tuple(sorted(group)) for group in group_of.values()})]
