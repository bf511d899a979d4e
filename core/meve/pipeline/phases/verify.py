"""Score candidates and keep the relevant ones (phase 2)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from meve.errors import ModelError
from meve.pipeline._deadline import BATCH, DEADLINE, Deadline
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
    if inputs:
        candidates = [
            replace(c, scores={**c.scores, **{by: float(v[n]) for by, v in inputs.items() if np.isfinite(v[n])}})
            for n, c in enumerate(candidates)
        ]
    name = scorer.name
    return [c.with_score(name, s, verified=s >= least) for c, s in zip(candidates, scores.tolist(), strict=True)]


def score_batch(
    query: Query,
    candidates: Sequence[Candidate],
    scorer: Scorer,
    threshold: float | None,
    *,
    deadline: Deadline | None,
) -> list[Candidate]:
    """Return the first candidates with their scores, as many as a batch holds; none once the time is up.

    Raises:
        ModelError: the scorer didn't return one finite score each.
    """
    if deadline is None:
        return score_candidates(query, candidates[:BATCH], scorer, threshold)
    has_read = getattr(scorer, "has_read", None)  # not part of `Scorer`
    size = deadline.start_batch(candidates, has_read(query, candidates) if has_read else None)
    judged = score_candidates(query, candidates[:size], scorer, threshold)
    deadline.end_batch()
    return judged


def score_in_time(
    query: Query,
    candidates: Sequence[Candidate],
    scorer: Scorer,
    threshold: float | None = None,
    *,
    deadline: Deadline | None,
) -> tuple[list[Candidate], list[Dropped]]:
    """Return the scored candidates, and those that a deadline left unscored; both in the order given.

    Without a deadline all are scored in one call, else in batches.

    Raises:
        ModelError: the scorer didn't return one finite score each.
    """
    if deadline is None:
        return score_candidates(query, candidates, scorer, threshold), []
    judged: list[Candidate] = []
    while batch := score_batch(query, candidates[len(judged) :], scorer, threshold, deadline=deadline):
        judged += batch
    return judged, [Dropped(candidate=c, reason=DEADLINE) for c in candidates[len(judged) :]]


def verify(
    query: Query,
    candidates: Sequence[Candidate],
    scorer: Scorer,
    threshold: float,
    *,
    deadline: Deadline | None = None,
) -> Selection:
    """Keep the candidates whose score reaches the threshold (s_i ≥ τ), best first.

    With a deadline, candidates are scored in the order given until the time is up. The others are dropped unscored.

    Source: MeVe (Ottem 2025), section 3.3.
    """
    judged, unscored = score_in_time(query, candidates, scorer, threshold, deadline=deadline)
    judged = sort_best_first(judged)
    rejected = [Dropped(candidate=c, reason="below_threshold") for c in judged if not c.verified]
    return Selection(kept=[c for c in judged if c.verified], dropped=[*rejected, *unscored])


def reaches(candidate: Candidate, threshold: float) -> bool:
    """Return whether the candidate has a score of at least the threshold."""
    return candidate.score is not None and candidate.score >= threshold
