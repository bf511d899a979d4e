"""Verify without scoring unlikely candidates, duplicates, or what a full context has no room for."""

from collections.abc import Callable, Sequence

import numpy as np

from meve._formulas import normalize
from meve.errors import ModelError
from meve.pipeline._deadline import DEADLINE, Deadline
from meve.pipeline.phases.prioritize import Relate
from meve.pipeline.phases.verify import score_batch
from meve.ports import Prior, Scorer
from meve.types import Candidate, Dropped, Query, Selection, sort_best_first

UNLIKELY = "unlikely"
LEAST_SCORED = 4
"""The number of candidates that are scored however unlikely they are: the prior may not know such questions."""
BUDGET_FULL = "budget_full"
DUPLICATE_OF = "duplicate_of:"
"""The prefix of the reason of a duplicate; the id of the verified candidate follows."""
LIKELY = 0.05
"""The least chance of a candidate scored although verified ones fill the context (docs/architecture-retrieval.md)."""


def order_by_chance(
    query: Query, candidates: Sequence[Candidate], prior: Prior | None
) -> list[tuple[Candidate, float]]:
    """Return the candidates with their chances of being verified, the likeliest first.

    Without a prior, the order is that of their best ranks in the sources and all chances are 1, so that none counts as
    unlikely.

    Raises:
        ModelError: the prior didn't return one finite number each.
    """
    ranked = sorted(candidates, key=lambda c: c.source_rank)
    if prior is None or not ranked:
        return [(c, 1.0) for c in ranked]
    chances = np.asarray(prior.chances(query, ranked), dtype=np.float64)
    if chances.shape != (len(ranked),) or not np.isfinite(chances).all():
        raise ModelError(
            f"prior {prior.name!r} returned values of shape {chances.shape} for {len(ranked)} candidates, "
            f"{int((~np.isfinite(chances)).sum())} of them not finite: expected one finite number each"
        )
    return [(ranked[n], float(chances[n])) for n in np.argsort(-chances, kind="stable")]


def split_unlikely(ordered: Sequence[tuple[Candidate, float]], least: float) -> tuple[list[Candidate], list[Dropped]]:
    """Return the candidates to score and those below the least chance; the first four are scored in any case."""
    scored = [c for n, (c, chance) in enumerate(ordered) if chance >= least or n < LEAST_SCORED]
    return scored, [Dropped(candidate=c, reason=UNLIKELY) for c, _ in ordered[len(scored) :]]


def cascade(
    query: Query,
    candidates: Sequence[Candidate],
    scorer: Scorer,
    threshold: float,
    *,
    redundancy: float,
    relate: Relate | None = None,
    prior: Prior | None,
    is_full: Callable[[Sequence[Candidate]], bool] | None = None,
    fits: Callable[[Candidate], bool] | None = None,
    deadline: Deadline | None = None,
) -> Selection:
    """Keep the candidates whose score reaches the threshold, best first, and score as few as possible.

    The likeliest candidates are scored first. Candidates below the prior's least chance are not scored, nor are those
    that phase 4 would drop as redundant with a verified one. Of two duplicates the likelier is kept, not the one that
    the scorer would prefer. Once verified candidates fill the context, only likely candidates are scored.

    Args:
        query: the question, with its vector if the prior reads it.
        candidates: the result of phase 1.
        scorer: gives the probabilities.
        threshold: τ in [0, 1].
        redundancy: θ in [0, 1]; candidates with a cosine above it are similar.
        relate: relates two similar passages, as in phase 4; None to treat them as duplicates.
        prior: predicts the chances; None to skip duplicates only.
        is_full: returns whether the verified candidates fill the context; None if nothing does.
        fits: returns whether a candidate fits the budget by itself; one that doesn't makes no other a duplicate. None
            if all fit.
        deadline: ends the scoring; None to score all that isn't skipped.

    Raises:
        ModelError: the scorer or the prior didn't return one finite number each.
    """
    ordered = order_by_chance(query, candidates, prior)
    chances = {c.id: chance for c, chance in ordered}
    waiting, dropped = split_unlikely(ordered, prior.least if prior else 0.0)
    verified: list[Candidate] = []
    while waiting:
        judged = score_batch(query, waiting, scorer, threshold, deadline=deadline)
        if not judged:
            dropped += [Dropped(candidate=c, reason=DEADLINE) for c in waiting]
            break
        fresh = [c for c in judged if c.verified]
        verified += fresh
        dropped += [Dropped(candidate=c, reason="below_threshold") for c in sort_best_first(judged) if not c.verified]
        whole = [c for c in fresh if fits is None or fits(c)]
        waiting, duplicates = _split_duplicates(waiting[len(judged) :], whole, redundancy, relate)
        dropped += duplicates
        if fresh and is_full and is_full(verified):
            dropped += [Dropped(candidate=c, reason=BUDGET_FULL) for c in waiting if chances[c.id] < LIKELY]
            waiting = [c for c in waiting if chances[c.id] >= LIKELY]
    return Selection(kept=sort_best_first(verified), dropped=dropped)


def _split_duplicates(
    waiting: Sequence[Candidate], verified: Sequence[Candidate], redundancy: float, relate: Relate | None
) -> tuple[list[Candidate], list[Dropped]]:
    """Return the candidates that duplicate no verified one, and those that do, with the nearest as the reason."""
    known = [c for c in verified if c.vector is not None]
    if not known:
        return list(waiting), []
    vectors = normalize(np.array([c.vector for c in known]))
    fresh: list[Candidate] = []
    duplicates: list[Dropped] = []
    for candidate in waiting:
        near = np.zeros(len(known))
        if candidate.vector is not None:
            near = np.minimum(vectors @ normalize(candidate.vector), 1.0)
        similar = [known[n] for n in np.argsort(-near, kind="stable") if near[n] > redundancy]
        if same := [c for c in similar if relate is None or relate(candidate.passage, c.passage) == "same"]:
            duplicates.append(Dropped(candidate=candidate, reason=f"{DUPLICATE_OF}{same[0].id}"))
        else:
            fresh.append(candidate)
    return fresh, duplicates
