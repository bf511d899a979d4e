"""One user's round of upkeep: what shall become of the records, planned without keeping anybody from writing."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from meve._formulas import normalize
from meve.errors import ModelError, wrap_errors
from meve.memory._audit.chain import Action
from meve.memory._contradiction.statements import StatementValues, parse_values
from meve.memory._maintenance.deduplication import precedence
from meve.memory._maintenance.summaries import Summariser
from meve.memory._recall.scoring import decay_reflection
from meve.memory._runtime import Kit
from meve.memory._write.provenance import SESSIONS
from meve.memory.policy import PolicyClass
from meve.memory.records import SHARED, MemoryRecord, StoredRecord, UserId, user_of
from meve.memory.stores.protocol import Transaction

Step: TypeAlias = Callable[[Transaction], object]
"""One change, made in whatever transaction it is given."""


NEIGHBOURS = 8
"""A memory is compared with so many of those that are near it: ten thousand alike would be fifty million pairs."""
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
        self.failed: ModelError | None = None
        """What kept it from merging or summarising; the rest is planned nevertheless."""
        self._steps: list[Step] = []
        self._replaced: dict[str, StoredRecord] = {}
        """Changed ones that stay, as they shall be: however often one changes, it is written once."""
        changes = kit.store.changes(user, 0)
        self.version = changes.version
        """The user's, as of which it is planned."""
        self._told: dict[str, StatementValues] = {}
        found = [stored for _, stored in changes.records]
        self._records = {s.record.id: s for s in found if s.record.source != "message"}
        self._messages = [s for s in found if s.record.source == "message"]
        """They expire, and nothing else becomes of them."""
        self._packed = kit.store.archived(user)
        self._made_from: dict[str, set[str]] = {}
        """By an origin's id: the ids of what was made from it."""
        for stored in [*self._records.values(), *self._packed]:
            self._depends(stored.record.id, stored.record.derived_from)
        self._plan()

    def apply(self, transaction: Transaction) -> bool:
        """Do all of it, in this order; whether there was anything to do."""
        for step in self._steps:
            step(transaction)
        for stored in self._replaced.values():
            transaction.replace(self._user, stored)
        return bool(self._steps)

    def _plan(self) -> None:
        self._expire()
        self._prune(self._policy.pruning.below, "its score fell below")
        if self._user != SHARED:  # of what is shared each user has a score of their own
            self._tried(self._merge)
            self._tried(self._summarise)
            self._archive()
        self._cap()

    def _tried(self, part: Callable[[], None]) -> None:
        """A model that fails in one part keeps nothing that is over in the file."""
        try:
            with wrap_errors(ModelError, "comparing and summarising memories"):
                part()
        except ModelError as error:
            self.failed = self.failed or error

    def _expire(self) -> None:
        for stored in [*self._records.values(), *self._packed, *self._messages]:
            record = stored.record
            if record.expired(self._now):
                self._records.pop(record.id, None)
                if not record.hold:
                    self._erased(record, "expire", f"its time was over at {record.expires_at}")
                    self._note(self.done.expired, record.id)

    def _score(self, record: MemoryRecord) -> float:
        return decay_reflection(record, self._policy, self._now)

    def _loose(self) -> dict[str, StoredRecord]:
        """All but items, which are found by their keys."""
        return {key: stored for key, stored in self._records.items() if stored.record.source != "item"}

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
        for stored in list(self._loose().values()):
            record = stored.record
            idle = self._now - max(record.touched_at or record.created_at, record.created_at)
            if self._free(record) and idle >= rules.idle and self._score(record) < rules.below:
                self._packed_away(stored)
                because = f"idle for {idle.days} days, score {self._score(record):.0f}"
                self._log(record, "archive", because)
                self._note(self.done.archived, record.id)
                del self._records[record.id]

    def _packed_away(self, stored: StoredRecord) -> None:
        self._replaced.pop(stored.record.id, None)
        self._steps.append(lambda t: t.archive(self._user, stored))

    def _merge(self) -> None:
        """Of each pair that is near: the same twice becomes one; of two that contradict, the newer or better stays."""
        for one, other in chain(self._copies(), self._near(self._standing(), self._policy.merging.similarity)):
            a, b = self._records.get(one), self._records.get(other)
            if a is None or b is None or a.record.superseded_by or b.record.superseded_by:
                continue
            if self._values(a.record) != self._values(b.record):
                self._settle(*sorted((a, b), key=lambda s: self._rank(s.record), reverse=True))
            else:
                self._join(*sorted((a, b), key=lambda s: (_end(s.record), self._rank(s.record)), reverse=True))

    def _standing(self) -> list[str]:
        """What may be compared: nothing that yielded already."""
        return [key for key, stored in self._loose().items() if stored.record.superseded_by is None]

    def _copies(self) -> Iterator[tuple[str, str]]:
        """Pairs of the same text, each copy with the one that lives longest: they are never compared all with all."""
        first: dict[tuple[object, ...], str] = {}
        records = [self._records[key].record for key in self._standing()]
        for r in sorted(records, key=lambda r: (_end(r), self._rank(r)), reverse=True):
            if not r.hold and (kept := first.setdefault((r.text, r.policy_class, bool(r.flagged)), r.id)) != r.id:
                yield kept, r.id

    def _values(self, record: MemoryRecord) -> StatementValues:
        """Numbers, days, names and denials: where they differ, two memories can't be one."""
        if record.id not in self._told:
            self._told[record.id] = parse_values(record.text)
        return self._told[record.id]

    def _settle(self, winner: StoredRecord, loser: StoredRecord) -> None:
        """What is on hold yields to nobody; what is never pruned yields to its like."""
        if not loser.record.hold and (self._free(loser.record) or not self._free(winner.record)):
            self._supersede(winner, loser)

    def _join(self, longer: StoredRecord, shorter: StoredRecord) -> None:
        """The one that lives longer takes in the other, unless something of that one would outlive it so."""
        one, other = longer.record, shorter.record
        alike = one.policy_class == other.policy_class and bool(one.flagged) == bool(other.flagged)
        outlives = _end(one) > _end(other) and not set(other.tags) <= set(one.tags)
        if alike and not outlives and not one.hold and self._free(other):
            self._absorb(longer, shorter)

    def _rank(self, record: MemoryRecord) -> tuple[bool, bool, datetime, float, str]:
        return precedence(record, self._score(record))

    def _supersede(self, winner: StoredRecord, loser: StoredRecord) -> None:
        difference = self._kit.contradiction.find_difference(winner.record.text, loser.record.text)
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
            touched_at=max((t for t in (w.touched_at, x.touched_at) if t), default=None),
            used_at=max((t for t in (w.used_at, x.used_at) if t), default=None),
            version=w.version + 1,
        )
        self._replace(winner, made)
        self._depends(w.id, (*x.derived_from, x.id))
        self._erased(x, "merge", f"{w.id} says the same", into=w.id)
        self._note(self.done.merged, x.id)
        del self._records[x.id]
        self._pass_on(x.id, w.id)

    def _summarise(self) -> None:
        """Related ones of low score, of one class, become one summary."""
        rules = self._policy.merging
        low = {
            key for key, s in self._loose().items()
            if self._free(s.record) and self._score(s.record) < rules.summarise_below
            and s.record.source != "summary" and s.record.superseded_by is None and not s.record.flagged
            and self._now - s.record.created_at >= self._policy.pruning.min_age
        }  # fmt: skip
        for group in _groups(self._near(low, rules.related)):
            by_class: dict[PolicyClass, list[StoredRecord]] = {}
            for key in group:
                by_class.setdefault(self._records[key].record.policy_class, []).append(self._records[key])
            for policy_class, members in by_class.items():
                if len(members) >= rules.min_related:
                    self._one_of(policy_class, sorted(members, key=lambda s: (s.record.created_at, s.record.id)))

    def _one_of(self, policy_class: PolicyClass, members: Sequence[StoredRecord]) -> None:
        records = [s.record for s in members]
        made = MemoryRecord(
            id=f"summary-{self._kit.chain.hash_content(repr((self._now, sorted(r.id for r in records))))[:16]}",
            user_id=user_of(self._user),
            text=self._summariser.summarise([r.text for r in records]),
            source="summary",
            policy_class=policy_class,
            created_at=self._now,
            expires_at=min((r.expires_at for r in records if r.expires_at), default=None),
            tags=tuple(sorted({tag for r in records for tag in r.tags})),
            metadata={SESSIONS: sorted(sessions)}
            if (sessions := {r.session_id for r in records if r.session_id})
            else {},
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
        self._depends(made.id, made.derived_from)
        for record in records:
            self._pass_on(record.id, made.id)

    def _pass_on(self, gone: str, into: str) -> None:
        """What was made from one that became part of another goes with that other, too."""
        packed = {stored.record.id: stored for stored in self._packed}
        for name in sorted(self._made_from.get(gone, ())):
            stored = self._records.get(name) or packed.get(name)
            if stored is not None and into not in (name, *stored.record.derived_from):
                origins = tuple(sorted({*stored.record.derived_from, into}))
                made = replace(stored.record, derived_from=origins, version=stored.record.version + 1)
                self._change(stored, made)
                self._depends(name, [into])

    def _depends(self, name: str, origins: Iterable[str]) -> None:
        for each in origins:
            self._made_from.setdefault(each, set()).add(name)

    def _change(self, stored: StoredRecord, made: MemoryRecord) -> None:
        """A record becomes this one where it is: among the others, or in the archive."""
        if made.id in self._records:
            self._replace(stored, made)
            return
        packed = replace(stored, record=made)
        self._packed = [packed if each.record.id == made.id else each for each in self._packed]
        self._packed_away(packed)

    def _near(self, ids: Iterable[str], least: float) -> list[tuple[str, str]]:
        """Pairs of these ids with a cosine of `least` or more, likest first; of each id with its likest few."""
        keys = sorted(ids)
        if len(keys) < 2:
            return []
        vectors = normalize(np.array([self._records[key].vector for key in keys]))
        found: dict[tuple[int, int], float] = {}
        for begin in range(0, len(keys), 512):
            likeness = vectors[begin : begin + 512] @ vectors.T
            for i, row in enumerate(likeness, start=begin):
                row[i] = -1.0
                near = np.flatnonzero(row >= least)
                if len(near) > NEIGHBOURS:
                    near = near[np.argsort(-row[near], kind="stable")[:NEIGHBOURS]]
                found.update({(min(i, j), max(i, j)): float(row[j]) for j in near.tolist()})
        return [(keys[i], keys[j]) for i, j in sorted(found, key=lambda pair: (-found[pair], pair))]

    def _replace(self, stored: StoredRecord, made: MemoryRecord) -> None:
        self._records[made.id] = self._replaced[made.id] = replace(stored, record=made)

    def _pruned(self, record: MemoryRecord, because: str) -> None:
        self._erased(record, "prune", because, score=round(self._score(record), 4))
        self._note(self.done.pruned, record.id)
        del self._records[record.id]

    def _erased(self, record: MemoryRecord, action: Action, because: str, **detail: Any) -> None:  # noqa: ANN401
        self._replaced.pop(record.id, None)
        self._steps.append(lambda t: t.erase(self._user, record.id))
        self._log(record, action, because, **detail)

    def _log(self, record: MemoryRecord, action: Action, because: str, **detail: Any) -> None:  # noqa: ANN401
        event = self._kit.event(self._user, record, action, because, self._now, **detail)
        self._steps.append(lambda t: t.log(event))

    def _note(self, where: dict[UserId | None, list[str]], record_id: str) -> None:
        where.setdefault(user_of(self._user), []).append(record_id)


def _end(record: MemoryRecord) -> datetime:
    """When it ends; what never does, at the end of all time."""
    return record.expires_at or datetime.max.replace(tzinfo=UTC)


def _groups(pairs: Sequence[tuple[str, str]]) -> list[list[str]]:
    """What hangs together by pairs."""
    above: dict[str, str] = {}

    def top(key: str) -> str:
        while (up := above.setdefault(key, key)) != key:
            above[key] = above[up]
            key = up
        return key

    for a, b in pairs:
        above[top(a)] = top(b)
    groups: dict[str, list[str]] = {}
    for key in sorted(above):
        groups.setdefault(top(key), []).append(key)
    return sorted(groups.values())
