"""Search another source if too few candidates were verified (phase 3)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from meve.pipeline._deadline import Deadline
from meve.pipeline.phases.retrieve import retrieve
from meve.pipeline.phases.verify import reaches, score_in_time
from meve.ports import Scorer, Source
from meve.types import Candidate, Dropped, Query, Selection, sort_best_first

Distinct: TypeAlias = Callable[[Sequence[Candidate], Sequence[Candidate]], Sequence[Candidate]]
"""A function that returns the first candidates without copies of each other or of the second ones, in order."""
SOUGHT = 4
"""How many times k candidates are sought where copies among them are dropped."""


def fallback(
    query: Query,
    accepted: Sequence[Candidate],
    judged: Mapping[str, Candidate],
    *,
    source: Source,
    scorer: Scorer,
    k: int,
    floor: float,
    threshold: float | None,
    distinct: Distinct | None = None,
    deadline: Deadline | None = None,
) -> Selection:
    """Add at most k candidates from another source to the accepted ones.

    A candidate that reaches the threshold is verified and ranked by score. Others rank after the verified ones, and
    only if they reach the floor. A candidate that phase 2 rejected keeps its score; nothing is scored twice. One that a
    further hop scored with evidence only is scored with the question alone, too, and the better score counts.

    Args:
        query: the question.
        accepted: the candidates that phase 2 kept.
        judged: every scored candidate, by id.
        source: the source to search.
        scorer: the scorer of phase 2.
        k: the most candidates to add.
        floor: the least score in [0, 1] of an unverified candidate.
        threshold: τ in [0, 1]; None if nothing is verified, where scores are no probabilities and the floor is ignored.
        distinct: drops copies, so that they take no place among the k; None to keep them.
        deadline: ends the scoring; candidates without a score are dropped. None to score all.

    Source: MeVe (Ottem 2025), section 3.4, which leaves open how fallback documents are scored and how many are added.
    """
    accepted_ids = {c.id for c in accepted}
    sought = (k if distinct is None else SOUGHT * k) + len(accepted_ids)
    found = [c for c in retrieve(query, [source], sought) if c.id not in accepted_ids]
    hits = (found if distinct is None else distinct(found, accepted))[:k]
    unread = [hit for hit in hits if hit.id not in judged or scorer.name not in judged[hit.id].scores]
    fresh, unscored = score_in_time(query, unread, scorer, deadline=deadline)
    known = {**judged, **{c.id: _with_better_score(c, judged.get(c.id)) for c in fresh}}
    added = [_with_verdict(hit, known[hit.id], threshold) for hit in hits if hit.id in known]
    low = [c for c in added if threshold is not None and not c.verified and not reaches(c, floor)]
    out = {c.id for c in low}
    return Selection(
        kept=sort_best_first([*accepted, *(c for c in added if c.id not in out)]),
        dropped=[
            *(Dropped(candidate=c, reason="below_floor") for c in low),
            *(d for d in unscored if d.candidate.id not in known),
        ],
    )


def reconsider(
    accepted: Sequence[Candidate],
    judged: Mapping[str, Candidate],
    *,
    k: int,
    floor: float,
    distinct: Distinct | None = None,
) -> Selection:
    """Add the best candidates that phase 2 rejected, at most k, if they reach the floor.

    Replaces `fallback` if phase 1 searched the fallback's source already, or if the time is up.

    Args:
        accepted: the candidates that phase 2 kept.
        judged: every scored candidate, by id.
        k: the most candidates to add.
        floor: the least score in [0, 1] of an unverified candidate.
        distinct: drops copies, so that they take no place among the k; None to keep them.
    """
    accepted_ids = {c.id for c in accepted}
    rejected = sort_best_first([c for c in judged.values() if c.id not in accepted_ids and reaches(c, floor)])
    others = rejected if distinct is None else distinct(rejected[: SOUGHT * k], accepted)
    added = [replace(c, origin="fallback") for c in others[:k]]
    return Selection(kept=sort_best_first([*accepted, *added]), dropped=[])


def _with_better_score(fresh: Candidate, before: Candidate | None) -> Candidate:
    """Return a candidate with its scores with evidence too, if it has some; the best one decides its rank."""
    if before is None:
        return fresh
    best = max(fresh.score or 0.0, before.score or 0.0)
    return replace(before, scores={**before.scores, **fresh.scores}, score=best)


def _with_verdict(hit: Candidate, verdict: Candidate, threshold: float | None) -> Candidate:
    return replace(
        verdict,
        origin="fallback",
        scores={**hit.scores, **verdict.scores},
        verified=threshold is not None and reaches(verdict, threshold),
    )
