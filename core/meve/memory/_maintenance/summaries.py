"""Summaries: one text in place of several related records, or of older turns."""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from meve._formulas import normalize
from meve.memory._write.provenance import SESSIONS
from meve.memory.policy import PolicyClass
from meve.memory.records import MemoryRecord, StoredRecord, user_of, without_copies

if TYPE_CHECKING:
    from meve.memory._maintenance.plan import MaintenancePlan


class Summariser(Protocol):
    """Writes one text for several related ones."""

    def summarise(self, texts: Sequence[str]) -> str:
        """Return the summary."""
        ...


class ExtractiveSummariser:
    """Returns the texts, at most three, that are most similar to the mean of all, in their order."""

    def __init__(self, embed: Callable[[Sequence[str]], np.ndarray]) -> None:
        self._embed = embed

    def summarise(self, texts: Sequence[str]) -> str:
        """Return the summary."""
        vectors = normalize(self._embed(texts))
        near = vectors @ normalize(vectors.mean(axis=0))
        chosen = sorted(np.argsort(-near, kind="stable")[:3].tolist())
        return " ".join(texts[n].strip() for n in chosen)


def summarise_related(plan: "MaintenancePlan") -> None:
    """Replace related facts of one class, equal metadata and low scores by one summary."""
    rules = plan.policy.merging
    low = {
        record_id for record_id, s in plan.without_items().items()
        if plan.may_hide(s.record) and plan.score(s.record) < rules.summarise_below
        and s.record.kind != "summary" and not s.record.is_closed and not s.record.flagged
        and plan.now - s.record.created_at >= plan.policy.pruning.min_age
    }  # fmt: skip
    for group in _connected(plan.nearest_pairs(low, rules.related)):
        by_readers: dict[tuple[PolicyClass, str], list[StoredRecord]] = {}
        for stored in (plan.records[record_id] for record_id in group):
            metadata = json.dumps(dict(stored.record.metadata), sort_keys=True)  # other searches find other metadata
            by_readers.setdefault((stored.record.policy_class, metadata), []).append(stored)
        for (policy_class, _), members in by_readers.items():
            if len(members) >= rules.min_related:
                members.sort(key=lambda s: (s.record.created_at, s.record.id))
                _summarise(plan, policy_class, members)


def _summarise(plan: "MaintenancePlan", policy_class: PolicyClass, members: Sequence[StoredRecord]) -> None:
    records = [stored.record for stored in members]
    own = [without_copies(r, plan.closed_by(r.id)) for r in records]
    sessions = sorted({r.session_id for r in records if r.session_id})
    summary = MemoryRecord(
        id=f"summary-{plan.runtime.chain.hash_content(repr((plan.now, sorted(r.id for r in records))))[:16]}",
        kind="summary",
        user_id=user_of(plan.user),
        text=plan.runtime.summariser.summarise([r.text for r in records]),
        source="summary",
        policy_class=policy_class,
        created_at=plan.now,
        expires_at=min((r.expires_at for r in records if r.expires_at), default=None),
        tags=tuple(sorted({tag for r in records for tag in r.tags})),
        metadata={**records[0].metadata, **({SESSIONS: sessions} if sessions else {})},
        reflection=plan.policy.reflection.start,
        derived_from=tuple(sorted({r.id for r in records} | {i for r in own for i in r.derived_from})),
    )
    plan.add(plan.runtime.stored(summary), f"summary of {len(records)}")
    for stored in members:
        score = round(plan.score(stored.record), 4)
        reason = f"part of {summary.id}"
        plan.close(
            stored, summary, "merge", reason, plan.report.summarised, rule="merging.summarise_below", score=score
        )


def _connected(pairs: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Return the groups of ids that pairs connect."""
    parents: dict[str, str] = {}

    def root(key: str) -> str:
        while (parent := parents.setdefault(key, key)) != key:
            parents[key] = parents[parent]
            key = parent
        return key

    for a, b in pairs:
        parents[root(a)] = root(b)
    groups: dict[str, list[str]] = {}
    for key in sorted(parents):
        groups.setdefault(root(key), []).append(key)
    return sorted(groups.values())
