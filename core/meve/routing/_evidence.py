"""Packs what a tier found into a recall that explains itself."""

import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from meve.clock import Clock
from meve.memory import Recall
from meve.pipeline.phases.budget import Composed
from meve.pipeline.trace import CandidateTrace, PhaseTrace, Trace
from meve.ports import TokenCounter
from meve.routing._groups import asks_for_open_group
from meve.routing._packing import pack
from meve.routing._plan import RoutePlan
from meve.routing._reader import MemoryReader
from meve.routing._sufficiency import EvidenceFeatures, estimate_sufficiency, explain_insufficiency, measure_evidence
from meve.routing._tiers import SUPPORT, Gathered, gather, phases_of
from meve.routing.config import RouterConfig
from meve.types import Candidate, ContextPassage, Dropped

_FRAME = 10
"""The tokens of a memory's number and day, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedRecall(Recall):
    """The evidence for a question. `trace.mode` names the tier; the phases `route` and `pack` say what was decided.

    `sufficiency` estimates how likely the memories tell what the question asks, in [0, 1]. It is None where the
    question can't be refused, as for small talk and conclusions.
    """

    plan: RoutePlan
    searches: tuple[str, ...]
    """The texts that were searched for."""
    read: int
    """The number of records that were searched: the user's own and shared ones that the filters admit."""
    ranked: int
    """The number of those that were compared with the question: the nearest 1,000 or 50, and fewer under load."""
    matching_ids: frozenset[str] | None
    """The ids of the memories that match, for counts, lists and summaries; None for others."""

    @property
    def matching(self) -> int | None:
        """The number of memories that match, for counts, lists and summaries; None for others."""
        return None if self.matching_ids is None else len(self.matching_ids)

    @property
    def shown(self) -> int | None:
        """The number of those in the evidence. If it is lower, the budget cut the rest."""
        return None if self.matching_ids is None else sum(p.passage.id in self.matching_ids for p in self.passages)

    @property
    def note(self) -> str:
        """How many memories were read for a count, list or summary, and how many of those that match aren't shown."""
        if not self.matching_ids and not (self.matching_ids is not None and self.passages):
            return ""
        compared = f", of which the {self.ranked} nearest were compared" if self.ranked < self.read else ""
        others = len(self.passages) - (self.shown or 0)
        among = f", and {others} {'other' if others == 1 else 'others'}" if others else ""
        every = f"all {self.matching}" if others else "all"
        shown = every if self.shown == self.matching else f"only {self.shown} of {self.matching}"
        none = "none shares a word with the question, so the nearest are shown"
        if self.plan.intent == "summary" and self.plan.period is not None:
            none = "none was told at that time, so the nearest are shown"
        told = f"{shown} that match fit and are shown{among}{self._told_later}" if self.matching else none
        searched = "1 memory was" if self.read == 1 else f"{self.read} memories were"
        return f"{searched} searched{compared}; {told}."

    @property
    def _told_later(self) -> str:
        """How many of those that match and are shown were added after the time that the question names."""
        period, matching = self.plan.period, self.matching_ids or frozenset()
        shown = [record for record in self.records if record.id in matching]
        later = 0 if period is None else sum(record.created_at >= period.until for record in shown)
        these = "these" if self.shown == len(self.passages) else "those that match"
        return f"; {later} of {these} {'was' if later == 1 else 'were'} told after that time" if later else ""

    @property
    def is_empty(self) -> bool:
        """Whether it holds no memory at all."""
        return not self.passages and not self.standing


def collect(plan: RoutePlan, reader: MemoryReader, config: RouterConfig, tokens: TokenCounter) -> RoutedRecall:
    """Search as a plan says, pack what fits, and explain it. Nothing is logged."""
    clock = reader.memory.clock
    began = clock.elapsed()
    gathered = gather(plan, reader, config)
    searched = clock.elapsed()
    max_tokens = _fit_budget(plan, gathered, config)
    packed = pack(plan.question, gathered.candidates, reader, tokens, max_tokens=max_tokens, by_time=plan.by_time)
    return _explain(plan, gathered, packed, max_tokens, config, clock=clock, began=began, searched=searched)


def _fit_budget(plan: RoutePlan, gathered: Gathered, config: RouterConfig) -> int:
    """Return the plan's budget, larger if more matches for a count or a list."""
    if not gathered.matching:
        return plan.max_tokens
    needed = sum((c.tokens or 0) + _FRAME for c in gathered.candidates if c.id in gathered.matching)
    return max(plan.max_tokens, min(needed, config.complete_tokens))


def _explain(
    plan: RoutePlan,
    gathered: Gathered,
    packed: Composed,
    max_tokens: int,
    config: RouterConfig,
    *,
    clock: Clock,
    began: float,
    searched: float,
) -> RoutedRecall:
    first = gathered.found[0].recall
    kept = packed.selection.kept
    fit = _measure(plan, gathered)
    support = None if fit is None else estimate_sufficiency(fit)
    now = clock.elapsed()
    read, is_shed = max(each.readable for each in gathered.found), any(each.shed for each in gathered.found)
    route = PhaseTrace(
        name="route", ms=(searched - began) * 1e3, received=read,
        returned=len(gathered.candidates),
        settings={**plan.to_dict(), "searches": len(gathered.searches), **gathered.notes, "shed": is_shed},
    )  # fmt: skip
    packing = PhaseTrace(
        name="pack", ms=(now - searched) * 1e3, received=len(gathered.candidates), returned=len(kept),
        settings={
            "max_tokens": max_tokens, "by_time": plan.by_time, "matching": len(gathered.matching) or None,
            "shown": sum(c.id in gathered.matching for c in kept) if plan.is_complete else None,
        },
    )  # fmt: skip
    trace = Trace(
        mode=str(plan.tier), embedder=first.trace.embedder, verifier=first.trace.verifier, tokens=first.trace.tokens,
        ms=(now - began) * 1e3, embed_ms=sum(each.recall.trace.embed_ms for each in gathered.found),
        phases=(route, *phases_of(gathered), packing),
        sufficiency=_account(fit, support, config),
        candidates=tuple(_trace_candidates(gathered, packed)),
    )  # fmt: skip
    return RoutedRecall(
        query=plan.question, text=packed.text, tokens=packed.tokens, max_tokens=max_tokens,
        sufficient=bool(kept) and (support is None or support >= config.evidence_threshold), sufficiency=support,
        passages=tuple(
            ContextPassage(passage=c.passage, score=c.score, verified=c.verified, origin=c.origin, tokens=c.tokens or 0)
            for c in kept
        ),
        trace=trace, corrections=_corrections(plan, gathered), id=secrets.token_hex(8), user_id=first.user_id,
        standing=first.standing,
        plan=plan, searches=gathered.searches, read=read,
        ranked=min(read, max(each.ranked for each in gathered.found)),
        matching_ids=gathered.matching if plan.is_complete else None,
    )  # fmt: skip


def _corrections(plan: RoutePlan, gathered: Gathered) -> dict[str, str]:
    """Return the misspelt words of the question with those that were searched for; not words of further searches."""
    corrected = {word: read for each in gathered.found for word, read in each.recall.corrections.items()}
    return {word: read for word, read in corrected.items() if word in plan.question}


def _measure(plan: RoutePlan, gathered: Gathered) -> EvidenceFeatures | None:
    """Return how the memories fit the question; None if nobody could refuse it."""
    if gathered.support is None or not plan.is_refusable or asks_for_open_group(plan.question):
        return None
    return measure_evidence(plan.question, plan.period, gathered.candidates, support=SUPPORT)


def _account(fit: EvidenceFeatures | None, support: float | None, config: RouterConfig) -> dict[str, Any]:
    if fit is None or support is None:
        return {}
    features = {name: round(float(value), 4) for name, value in asdict(fit).items()}
    account = {"estimate": round(support, 4), "threshold": config.evidence_threshold, "features": features}
    if support < config.evidence_threshold:
        account["reason"] = explain_insufficiency(fit)
    return account


def _trace_candidates(gathered: Gathered, packed: Composed) -> Iterable[CandidateTrace]:
    """Yield the fate of each candidate: the kept ones, those that were cut here, and those that the searches cut."""
    known = set()
    for rank, candidate in enumerate(packed.selection.kept, 1):
        known.add(candidate.id)
        yield _fate(candidate, "kept", "pack", "verified" if candidate.verified else "unverified", rank)
    cut: list[tuple[str, Dropped]] = [("route", d) for d in gathered.dropped]
    cut += [("pack", d) for d in packed.selection.dropped]
    for phase, dropped in cut:
        if dropped.candidate.id not in known:
            known.add(dropped.candidate.id)
            yield _fate(dropped.candidate, "dropped", phase, dropped.reason, None)
    for each in (c for found in gathered.found for c in found.recall.trace.candidates):
        if each.fate == "dropped" and each.id not in known:
            known.add(each.id)
            yield each


def _fate(candidate: Candidate, fate: Any, phase: str, reason: str, rank: int | None) -> CandidateTrace:  # noqa: ANN401
    return CandidateTrace(
        id=candidate.id, origin=candidate.origin, scores=candidate.scores, verified=candidate.verified, fate=fate,
        phase=phase, reason=reason, tokens=candidate.tokens, rank=rank,
    )  # fmt: skip
