"""The plan of one user's maintenance: the records to remove, change and archive. Writers may write while it is made."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np

from meve._formulas import normalize
from meve.errors import ModelError, wrap_errors
from meve.memory._audit.chain import Action
from meve.memory._embedders import model_of
from meve.memory._expiry import find_removable, has_passed, reason_of
from meve.memory._maintenance.archiving import archive_idle
from meve.memory._maintenance.deduplication import is_removable
from meve.memory._maintenance.merging import DuplicateMerger
from meve.memory._maintenance.progress import ComparingProgress, fingerprint, setting_of
from meve.memory._maintenance.pruning import enforce_cap, prune_low_scores
from meve.memory._maintenance.reopening import reopen_orphans
from meve.memory._maintenance.summaries import summarise_related
from meve.memory._recall.scoring import decay_reflection
from meve.memory._runtime import MemoryRuntime
from meve.memory.records import SHARED, MemoryRecord, StoredRecord, UserId, is_part, user_of, validity
from meve.memory.stores._reading import UnreadableRecord
from meve.memory.stores._record_transaction import RecordTransaction
from meve.memory.stores.protocol import RecordQuery

NEIGHBOURS = 8
"""The number of nearest records that each record is compared with: 10,000 similar ones have 50 million pairs."""
_STEPS = ("expired", "restored", "pruned", "merged", "superseded", "released", "summarised", "archived", "left_closed")


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceReport:
    """The result of maintenance: ids of records, by user."""

    expired: dict[UserId | None, list[str]] = field(default_factory=dict)
    restored: dict[UserId | None, list[str]] = field(default_factory=dict)
    """Parts of summaries, and copies, that hold again, because the record that contained them is gone."""
    pruned: dict[UserId | None, list[str]] = field(default_factory=dict)
    """Records erased for a low score, or beyond the cap; only if the policy says so (`pruning.erase`)."""
    merged: dict[UserId | None, list[str]] = field(default_factory=dict)
    """Duplicates of another record, which replaces them."""
    superseded: dict[UserId | None, list[str]] = field(default_factory=dict)
    """Records that a newer one contradicts and replaces; `replaced_by` names it."""
    released: dict[UserId | None, list[str]] = field(default_factory=dict)
    """Instructions that say no more than that others have ended. From now on they are facts, in no standing block."""
    summarised: dict[UserId | None, list[str]] = field(default_factory=dict)
    replaced_by: dict[UserId | None, dict[str, str]] = field(default_factory=dict)
    """By the id of each record in `merged`, `superseded` and `summarised`, the id of the one that replaces it."""
    left_pairs: dict[UserId | None, int] = field(default_factory=dict)
    """The number of pairs that were left for the next maintenance (`merging.max_pairs`)."""
    archived: dict[UserId | None, list[str]] = field(default_factory=dict)
    """Records that were idle, of a low score, or beyond the cap."""
    left_closed: dict[UserId | None, list[str]] = field(default_factory=dict)
    """Closed records that another one had replaced which was erased now. They stay closed; `restore` takes one back."""
    damage: list[str] = field(default_factory=list)
    """What is wrong with the pages of the file, if all users were maintained; empty for nothing."""
    unreadable: dict[UserId | None, list[str]] = field(default_factory=dict)
    """Records that are damaged; they stay until they expire or `forget_user` erases them."""

    def include(self, other: "MaintenanceReport") -> None:
        """Add the result of another maintenance."""
        for name in _STEPS:
            for user, ids in getattr(other, name).items():
                getattr(self, name).setdefault(user, []).extend(ids)
        self.unreadable.update(other.unreadable)
        self.left_pairs.update(other.left_pairs)
        self.replaced_by.update(other.replaced_by)

    def counts(self) -> dict[str, int]:
        """Return the number of records of each step."""
        return {name: sum(map(len, getattr(self, name).values())) for name in _STEPS}


class MaintenancePlan:
    """Reads a user's records and plans; nothing is changed before `apply`.

    Args:
        runtime: the memory's components.
        user: the user's key.
    """

    def __init__(self, runtime: MemoryRuntime, user: str, transaction: RecordTransaction | None = None) -> None:
        self.runtime = runtime
        self.policy = runtime.policy
        self.user = user
        self.now: datetime = runtime.clock.now()
        self.report = MaintenanceReport()
        self.failed: ModelError | None = None
        """The error that prevented merging or summarising; everything else is planned."""
        self._steps: list[Callable[[RecordTransaction], object]] = []
        self._replaced: dict[str, StoredRecord] = {}
        """By id, the new versions of changed records; each is written once."""
        self._reader = reader = transaction or runtime.store
        self.version = reader.version(user)
        """The user's version before the records were read."""
        every, unreadable = reader.readable_records(user)
        self.archived: dict[str, StoredRecord] = {}
        self.records: dict[str, StoredRecord] = {}
        """By id, the active records with their planned changes."""
        self.erased: dict[str, MemoryRecord] = {}
        """By id, the records that are to be erased."""
        self.unreadable = frozenset(each.id for each in unreadable)
        """The ids of damaged records."""
        self._closed: dict[str, list[MemoryRecord]] = {}
        """By the id of a record, the closed ones that it replaced."""
        self._derived: dict[str, list[MemoryRecord]] = {}
        """By the id of a record, those that are derived from it."""
        for stored in every:
            for origin in stored.record.derived_from:
                self._derived.setdefault(origin, []).append(stored.record)
            if stored.record.superseded_by is not None:
                self._closed.setdefault(stored.record.superseded_by, []).append(stored.record)
        for record in find_removable(every, self.now):
            self.erase(record, "expire", reason_of(record), self.report.expired)
        for each in unreadable:
            self._expire_unreadable(each)
        every = [stored for stored in every if stored.record.id not in self.erased]
        every = [s for s in every if s.record.kind != "message" and not s.record.expired(self.now)]
        self.archived = {s.record.id: s for s in every if s.record.archived}
        self.records = {s.record.id: s for s in every if not s.record.archived}
        self._plan()

    def apply(self, transaction: RecordTransaction) -> None:
        """Make all planned changes, in their order."""
        for step in self._steps:
            step(transaction)
        for stored in self._replaced.values():
            transaction.replace(self.user, stored)

    def _plan(self) -> None:
        self._try(self._add_passages)
        reopen_orphans(self)
        prune_low_scores(self)
        if self.user != SHARED:  # a shared record has another score for each user
            self._try(DuplicateMerger(self).run)
            self._try(partial(summarise_related, self))
            archive_idle(self)
        enforce_cap(self)
        for by, closed in self._closed.items():
            for record in closed if by in self.erased else ():
                if record.id not in self.erased and not is_part(record, self.erased[by]):
                    self.note(self.report.left_closed, record.id)

    def _try(self, plan_changes: Callable[[], None]) -> None:
        """Plan some changes; a model failure must not block the removal of expired records."""
        try:
            with wrap_errors(ModelError, "comparing and summarising memories"):
                plan_changes()
        except ModelError as error:
            self.failed = self.failed or error

    def _add_passages(self) -> None:
        """Embed the passages of long records that have none: older files lack them. Reembedding does that of others."""
        embedder = self.runtime.embedder.current
        for record_id, stored in self.records.items():
            if len(stored.passages) or stored.model != model_of(embedder):
                continue
            if len(passages := self.runtime.embed_parts(stored.record, embedder)):
                grown = self.records[record_id] = replace(stored, passages=passages)
                self._steps.append(partial(self._put_vectors, grown))

    def _put_vectors(self, stored: StoredRecord, transaction: RecordTransaction) -> None:
        transaction.put_vectors(self.user, stored)

    def score(self, record: MemoryRecord) -> float:
        """Return a record's current reflection score, from 0 to 100."""
        return decay_reflection(record, self.policy, self.now)

    def without_items(self) -> dict[str, StoredRecord]:
        """Return the active records except items, which are only pruned: never merged or summarised."""
        return {record_id: stored for record_id, stored in self.records.items() if stored.record.kind != "item"}

    def is_removable(self, record: MemoryRecord) -> bool:
        """Return whether maintenance may remove a record that hasn't expired."""
        return is_removable(record, self.policy)

    def may_hide(self, record: MemoryRecord) -> bool:
        """Return whether maintenance may prune, archive or summarise a record; none that was restored."""
        return self.is_removable(record) and record.restored_at is None

    def nearest_pairs(self, ids: Iterable[str], threshold: float) -> list[tuple[str, str]]:
        """Return pairs of ids with a cosine of at least `threshold`, highest first; of each id only the nearest few."""
        by_model: dict[str, list[str]] = {}
        for key in sorted(ids):
            by_model.setdefault(self.records[key].model, []).append(key)
        pairs = {pair: cosine for keys in by_model.values() for pair, cosine in self._near(keys, threshold)}
        return sorted(pairs, key=lambda pair: (-pairs[pair], pair))

    def _near(self, keys: list[str], threshold: float) -> Iterator[tuple[tuple[str, str], float]]:
        """Yield the pairs of records whose vectors, of one model, are near, and their cosines."""
        vectors = normalize(np.array([self.records[key].vector for key in keys]))
        pairs: dict[tuple[int, int], float] = {}
        for begin in range(0, len(keys), 512):
            cosines = vectors[begin : begin + 512] @ vectors.T
            np.fill_diagonal(cosines[:, begin:], -1.0)
            is_near = cosines >= threshold
            crowded = np.flatnonzero(np.count_nonzero(is_near, axis=1) > NEIGHBOURS)
            is_near[crowded] = False
            for i, j in np.argwhere(is_near).tolist():
                pairs[min(begin + i, j), max(begin + i, j)] = float(cosines[i, j])
            for i in crowded.tolist():
                least = np.partition(cosines[i], -NEIGHBOURS)[-NEIGHBOURS]
                nearest = np.flatnonzero(cosines[i] >= least)
                for j in nearest[np.argsort(-cosines[i, nearest], kind="stable")[:NEIGHBOURS]].tolist():
                    pairs[min(begin + i, j), max(begin + i, j)] = float(cosines[i, j])
        yield from (((keys[i], keys[j]), cosine) for (i, j), cosine in pairs.items())

    def comparing(self, rows: Mapping[str, int]) -> ComparingProgress:
        """Return which pairs of the records in these rows were compared since their last change."""
        stored = self._reader.setting(setting_of(self.runtime.chain, self.user))

        def changed_since(version: int) -> set[int]:
            return {row for (row,) in self._reader.select(RecordQuery(user=self.user, changed_since=version), "row")}

        return ComparingProgress(stored, fingerprint(self.runtime), self.version, rows, changed_since)

    def keep_progress(self, progress: ComparingProgress) -> None:
        """Store the progress, and report what is left."""
        name, value = setting_of(self.runtime.chain, self.user), progress.to_json()
        self._steps.append(lambda transaction: transaction.put_setting(name, value))
        if progress.left:
            self.report.left_pairs[user_of(self.user)] = progress.left

    def add(self, stored: StoredRecord, reason: str) -> None:
        """Insert a new record."""
        self._steps.append(lambda transaction: transaction.insert(self.user, stored))
        self.log(stored.record, "add", reason)
        self.records[stored.record.id] = stored

    def replace(self, stored: StoredRecord, record: MemoryRecord) -> None:
        """Change an active or archived record."""
        changed = replace(stored, record=record)
        if record.archived:
            self.archived[record.id] = changed
        else:
            self.records[record.id] = changed
        self._replaced[record.id] = changed

    def erase(
        self,
        record: MemoryRecord,
        action: Action,
        reason: str,
        where: dict[UserId | None, list[str]],
        **detail: Any,  # noqa: ANN401
    ) -> None:
        """Erase a record, its copies, and what is derived from it, unless that replaced it.

        Other records that it replaced stay closed.
        """
        if record.id in self.erased:
            return
        self.erased[record.id] = record
        self._replaced.pop(record.id, None)
        self.records.pop(record.id, None)
        self.archived.pop(record.id, None)
        self._steps.append(lambda transaction: transaction.erase(self.user, record))
        self.log(record, action, reason, **detail)
        self.note(where, record.id)
        for closed in self._closed.get(record.id, ()):
            if is_part(closed, record) and record.kind == "fact" and not closed.hold:
                why = {"evidence": {"by": record.id}} | detail
                self.erase(closed, action, f"{record.id} says the same: {reason}", where, **why)
        for derived in self._derived.get(record.id, ()):
            if record.superseded_by != derived.id and not derived.hold:
                because = {**detail, "evidence": {**detail.get("evidence", {}), "by": record.id}}
                self.erase(derived, action, f"derived from {record.id}: {reason}", where, **because)

    def _expire_unreadable(self, record: UnreadableRecord) -> None:
        if not has_passed(record.expires_at, self.now) or record.hold:
            self.note(self.report.unreadable, record.id)
            return
        event = self.runtime.plain_event(self.user, record.id, "expire", reason_of(record), self.now)
        self._steps.append(lambda transaction: transaction.erase_unreadable(self.user, record.id))
        self._steps.append(lambda transaction: transaction.log(event))
        self.note(self.report.expired, record.id)

    def close(
        self,
        stored: StoredRecord,
        by: MemoryRecord,
        action: Action,
        reason: str,
        where: dict[UserId | None, list[str]],
        *,
        rule: str,
        until: datetime | None = None,
        **evidence: Any,  # noqa: ANN401
    ) -> None:
        """Let another record replace an active one, from when that one holds on; from now on if it held before.

        `until` is an earlier end, where a third record held between both.
        """
        record, since = stored.record, validity(by)[0]
        end = until or (since if since >= validity(record)[0] else self.now)
        closed = replace(record, valid_to=end, superseded_by=by.id, version=record.version + 1)
        self.replace(stored, closed)
        self._closed.setdefault(by.id, []).append(closed)
        self.log(closed, action, reason, rule=rule, evidence={"by": by.id, **evidence}, inverse="restore")
        self.note(where, record.id)
        self.report.replaced_by.setdefault(user_of(self.user), {})[record.id] = by.id

    def closed_by(self, record_id: str) -> Sequence[MemoryRecord]:
        """Return the records that a record replaced."""
        return self._closed.get(record_id, ())

    def archive(
        self,
        stored: StoredRecord,
        action: Action,
        reason: str,
        where: dict[UserId | None, list[str]],
        *,
        rule: str,
        **evidence: Any,  # noqa: ANN401
    ) -> None:
        """Move an active record to the archive."""
        record = stored.record
        self.replace(stored, replace(record, archived=True))
        self.log(record, action, reason, rule=rule, evidence=evidence, inverse="restore")
        self.note(where, record.id)
        del self.records[record.id]

    def log(self, record: MemoryRecord, action: Action, reason: str, **detail: Any) -> None:  # noqa: ANN401
        """Add an entry to the audit log."""
        event = self.runtime.event(self.user, record, action, reason, self.now, **detail)
        self._steps.append(lambda transaction: transaction.log(event))

    def note(self, where: dict[UserId | None, list[str]], record_id: str) -> None:
        """Add a record to a list of the report."""
        where.setdefault(user_of(self.user), []).append(record_id)
