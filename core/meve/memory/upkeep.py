"""What time does to memories, and what keeps them few: expiry, pruning, merging, summaries, archive, the cap."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

import numpy as np

from meve.formulas import unit
from meve.memory.kit import Kit
from meve.memory.policy import PolicyClass
from meve.memory.recall import decayed
from meve.memory.records import SHARED, MemoryRecord, StoredRecord, UserId, user_of
from meve.memory.stores.ports import Transaction
from meve.memory.values import differing_value


class Summariser(Protocol):
    """Makes one text of several related ones."""

    def summarise(self, texts: Sequence[str]) -> str:
        """What they say together."""
        ...


class ExtractiveSummariser:
    """The texts nearest to what all of them say, at most three, in their order."""

    def __init__(self, embed: Callable[[Sequence[str]], np.ndarray]) -> None:
        self._embed = embed

    def summarise(self, texts: Sequence[str]) -> str:
        """What they say together."""
        vectors = unit(self._embed(texts))
        near = vectors @ unit(vectors.mean(axis=0))
        chosen = sorted(np.argsort(-near, kind="stable")[:3].tolist())
        return " ".join(texts[n].strip() for n in chosen)


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

    def counts(self) -> dict[str, int]:
        """How many records each step took."""
        names = ("expired", "pruned", "merged", "superseded", "summarised", "archived")
        return {name: sum(map(len, getattr(self, name).values())) for name in names}


@dataclass(frozen=True, slots=True)
class Keeper:
    """Does the rounds. Each user's is a transaction of its own, so that nobody waits for all."""

    kit: Kit
    summariser: Summariser
    forget: Callable[[str], None]
    """Told of each user whose memory changed."""

    def maintain(self, users: Sequence[str] | None = None, *, dry_run: bool = False) -> Upkept:
        """One round, over these users' keys, or all.

        Args:
            users: their keys.
            dry_run: undo each user's transaction at its end.
        """
        done = Upkept()
        for user in self.kit.store.users() if users is None else users:
            with suppress(_Undone), self.kit.store.writing() as transaction:
                changed = _Round(self.kit, self.summariser, transaction, user, done).run()
                if dry_run:
                    raise _Undone
                if changed:
                    self.forget(user)
        return done if dry_run else replace(done, scrubbed=self.kit.store.scrub())


class _Undone(Exception):  # noqa: N818 - no error: it ends a dry run
    """Undoes a transaction."""


class _Round:
    """One user's, in one transaction."""

    def __init__(self, kit: Kit, summariser: Summariser, transaction: Transaction, user: str, done: Upkept) -> None:
        self._kit = kit
        self._policy = kit.policy
        self._summariser = summariser
        self._transaction = transaction
        self._user = user
        self._done = done
        self._now: datetime = kit.clock.now()
        self._records = {s.record.id: s for s in transaction.records(user)}
        self._changed = False

    def run(self) -> bool:
        """Whether anything changed."""
        self._expire()
        self._prune(self._policy.pruning.below, "its score fell below")
        if self._user != SHARED:
            self._merge()
            self._summarise()
        self._archive()
        self._cap()
        return self._changed

    def _expire(self) -> None:
        for stored in [*self._records.values(), *self._transaction.all_archived(self._user)]:
            record = stored.record
            if record.expired(self._now):
                self._records.pop(record.id, None)
                if not record.hold:
                    self._transaction.erase(self._user, record.id)
                    because = f"its time was over at {record.expires_at}"
                    self._transaction.log(self._kit.event(self._user, record, "expire", because, self._now))
                    self._note(self._done.expired, record.id)

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
                self._erase(record, f"{why} {below:g}", self._done.pruned)

    def _cap(self) -> None:
        over = len(self._records) - self._policy.limits.per_user
        if over > 0:
            free = sorted((s.record for s in self._records.values() if self._free(s.record)), key=self._worth)
            for record in free[:over]:
                self._erase(record, f"over the cap of {self._policy.limits.per_user:,}", self._done.pruned)

    def _worth(self, record: MemoryRecord) -> tuple[bool, float, datetime, str]:
        return (record.superseded_by is None, self._score(record), record.created_at, record.id)

    def _archive(self) -> None:
        rules = self._policy.archiving
        for stored in list(self._records.values()):
            record = stored.record
            idle = self._now - max(record.touched_at or record.created_at, record.created_at)
            if self._free(record) and idle >= rules.idle and self._score(record) < rules.below:
                self._transaction.archive(self._user, stored)
                because = f"idle for {idle.days} days, score {self._score(record):.0f}"
                self._transaction.log(self._kit.event(self._user, record, "archive", because, self._now))
                self._note(self._done.archived, record.id)
                del self._records[record.id]

    def _merge(self) -> None:
        """Of each pair that is near: the same twice becomes one; of two that contradict, the newer or better stays."""
        for one, other in self._near(self._policy.merging.similarity):
            a, b = self._records.get(one), self._records.get(other)
            if a is None or b is None or a.record.superseded_by or b.record.superseded_by:
                continue
            winner, loser = sorted((a, b), key=lambda s: self._rank(s.record), reverse=True)
            if loser.record.hold:
                continue
            if differing_value(a.record.text, b.record.text):
                self._supersede(winner, loser)
            elif a.record.policy_class == b.record.policy_class and self._free(loser.record):
                self._absorb(winner, loser)

    def _rank(self, record: MemoryRecord) -> tuple[bool, datetime, float, str]:
        return (bool(record.hold), record.created_at, self._score(record), record.id)

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
        self._transaction.log(self._kit.event(self._user, made, "supersede", because, self._now))
        self._note(self._done.superseded, made.id)

    def _absorb(self, winner: StoredRecord, loser: StoredRecord) -> None:
        w, x = winner.record, loser.record
        made = replace(
            w,
            reflection=max(self._score(w), self._score(x)),
            uses=w.uses + x.uses,
            tags=tuple(sorted({*w.tags, *x.tags})),
            derived_from=tuple(sorted({*w.derived_from, *x.derived_from, x.id})),
            expires_at=None if None in (w.expires_at, x.expires_at) else max(w.expires_at, x.expires_at),  # type: ignore[type-var]
            touched_at=max((t for t in (w.touched_at, x.touched_at) if t), default=None),
            used_at=max((t for t in (w.used_at, x.used_at) if t), default=None),
            version=w.version + 1,
        )
        self._replace(winner, made)
        self._transaction.erase(self._user, x.id)
        because = f"{w.id} says the same"
        self._transaction.log(self._kit.event(self._user, x, "merge", because, self._now, into=w.id))
        self._note(self._done.merged, x.id)
        del self._records[x.id]

    def _summarise(self) -> None:
        """Related ones of low score, of one class, become one summary."""
        rules = self._policy.merging
        low = {
            key for key, s in self._records.items()
            if self._free(s.record) and self._score(s.record) < rules.summarise_below and s.record.source != "summary"
            and s.record.superseded_by is None
            and self._now - s.record.created_at >= self._policy.pruning.min_age
        }  # fmt: skip
        for group in _groups([pair for pair in self._near(rules.related) if low.issuperset(pair)]):
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
            expires_at=None if None in ends else min(e for e in ends if e),
            tags=tuple(sorted({tag for r in records for tag in r.tags})),
            reflection=self._policy.reflection.start,
            derived_from=tuple(sorted({r.id for r in records} | {i for r in records for i in r.derived_from})),
        )
        stored = self._kit.stored(made)
        self._transaction.insert(self._user, stored)
        self._transaction.log(self._kit.event(self._user, made, "add", f"summary of {len(records)}", self._now))
        for record in records:
            self._transaction.erase(self._user, record.id)
            because = f"part of {made.id}"
            self._transaction.log(self._kit.event(self._user, record, "merge", because, self._now, into=made.id))
            self._note(self._done.summarised, record.id)
            del self._records[record.id]
        self._records[made.id] = stored

    def _near(self, least: float) -> list[tuple[str, str]]:
        """Pairs of ids with a cosine of `least` or more, likest first."""
        keys = sorted(self._records)
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
        self._transaction.replace(self._user, fresh)
        self._records[made.id] = fresh
        self._changed = True

    def _erase(self, record: MemoryRecord, because: str, where: dict[UserId | None, list[str]]) -> None:
        self._transaction.erase(self._user, record.id)
        self._transaction.log(
            self._kit.event(self._user, record, "prune", because, self._now, score=round(self._score(record), 4))
        )
        self._note(where, record.id)
        del self._records[record.id]

    def _note(self, where: dict[UserId | None, list[str]], record_id: str) -> None:
        where.setdefault(user_of(self._user), []).append(record_id)
        self._changed = True


def _groups(pairs: Sequence[tuple[str, str]]) -> list[list[str]]:
    """What hangs together by pairs."""
    group_of: dict[str, set[str]] = {}
    for a, b in pairs:
        joined = group_of.get(a, {a}) | group_of.get(b, {b})
        for key in joined:
            group_of[key] = joined
    return [list(group) for group in sorted({tuple(sorted(group)) for group in group_of.values()})]


class Background:
    """Does rounds in a thread, until it is stopped.

    Args:
        round_: one round.
        every: seconds between the end of one and the begin of the next.
    """

    def __init__(self, round_: Callable[[], object], every: float) -> None:
        self.failed: Exception | None = None
        """What the last round failed with; None if it didn't."""
        self._round = round_
        self._every = every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="meve-upkeep", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """After the round that is running."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            try:
                self._round()
                self.failed = None
            except Exception as error:
                self.failed = error
