"""Phase 3, fallback retrieval: too little was verified; what do the words themselves find?"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from meve.pipeline.phases.verify import score_candidates, reaches
from meve.ports import Scorer, Source
from meve.types import Candidate, Dropped, Query, Selection, sort_best_first


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
) -> Selection:
    """Add at most k candidates from another source to those accepted, on the same scale of scores.

    One that reaches the threshold is verified like any other and takes its place by score. One below it ranks after
    the verified, and only if it reaches the floor. A candidate that phase 2 turned down may come back this way, with
    the score that it got then; nothing is judged twice.

    Args:
        query: the question.
        accepted: what phase 2 let through.
        judged: everything that already has a verdict, by id.
        source: where the fallback looks.
        scorer: the one that phase 2 used.
        k: how many it may add.
        floor: the least score in [0, 1] of one that isn't verified.
        threshold: τ; None where nothing is verified: scores are no probabilities then, and there is no floor.

    Source: MeVe (Ottem 2025), section 3.4, which doesn't say how a fallback document is scored or how many are added.
    """
    have = {c.id for c in accepted}
    hits = [c for c in source.search(query, k + len(have)) if c.id not in have][:k]
    fresh = {c.id: c for c in score_candidates(query, [hit for hit in hits if hit.id not in judged], scorer)}
    added = [_added(hit, judged.get(hit.id) or fresh[hit.id], threshold) for hit in hits]
    low = [c for c in added if threshold is not None and not c.verified and not reaches(c, floor)]
    out = {c.id for c in low}
    return Selection(
        kept=sort_best_first([*accepted, *(c for c in added if c.id not in out)]),
        dropped=[Dropped(candidate=c, reason="below_floor") for c in low],
    )


def reconsider(accepted: Sequence[Candidate], judged: Mapping[str, Candidate], *, k: int, floor: float) -> Selection:
    """Add at most k of those that phase 2 turned down, the best first, if they reach the floor.

    Takes the place of `fallback` where its source was asked in phase 1 already, and would find nothing new.

    Args:
        accepted: what phase 2 let through.
        judged: everything that has a verdict, by id.
        k: how many may be added.
        floor: the least score in [0, 1] of one that isn't verified.
    """
    have = {c.id for c in accepted}
    turned_down = sort_best_first([c for c in judged.values() if c.id not in have and reaches(c, floor)])
    added = [replace(c, origin="fallback") for c in turned_down[:k]]
    return Selection(kept=sort_best_first([*accepted, *added]), dropped=[])


def _added(hit: Candidate, verdict: Candidate, threshold: float | None) -> Candidate:
    return replace(
        verdict,
        origin="fallback",
        scores={**hit.scores, **verdict.scores},
        verified=threshold is not None and reaches(verdict, threshold),
    )
