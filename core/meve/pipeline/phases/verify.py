"""Score candidates and keep the relevant ones (phase 2)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from meve.errors import ModelError
from meve.ports import Scorer
from meve.types import Candidate, Dropped, Query, Selection, sort_best_first


def score_candidates(
    query: Query, candidates: Sequence[Candidate], scorer: Scorer, threshold: float | None = None
) -> list[Candidate]:
    """Return the candidates in the order given, each with the scorer's score and the inputs of that score.

    Candidates that reach the threshold are verified; without a threshold none is.

    Raises:
        ModelError: the scorer didn't return one finite score each.
    """
    if not candidates:
        return []
    judge = getattr(scorer, "judge", None)
    scores, inputs = judge(query, candidates) if judge else (scorer.score(query, candidates), {})
    scores = np.asarray(scores, dtype=np.float64)
    least = float("inf") if threshold is None else threshold
    if scores.shape != (len(candidates),) or not np.isfinite(scores).all():
        raise ModelError(
            f"scorer {scorer.name!r} returned scores of shape {scores.shape} for {len(candidates)} candidates, "
            f"{int((~np.isfinite(scores)).sum())} of them not finite: expected one finite number each"
        )
    known = [
        replace(c, scores={**c.scores, **{name: float(values[n]) for name, values in inputs.items()}})
        for n, c in enumerate(candidates)
    ]
    name = scorer.name
    return [c.with_score(name, s, verified=s >= least) for c, s in zip(known, scores.tolist(), strict=True)]


def verify(query: Query, candidates: Sequence[Candidate], scorer: Scorer, threshold: float) -> Selection:
    """Keep the candidates whose score reaches the threshold (s_i ≥ τ), best first.

    Source: MeVe (Ottem 2025), section 3.3.
    """
    judged = sort_best_first(score_candidates(query, candidates, scorer, threshold))
    return Selection(
        kept=[c for c in judged if c.verified],
        dropped=[Dropped(candidate=c, reason="below_threshold") for c in judged if not c.verified],
    )


def reaches(candidate: Candidate, threshold: float) -> bool:
    """Return whether the candidate has a score of at least the threshold."""
    return candidate.score is not None and candidate.score >= threshold
