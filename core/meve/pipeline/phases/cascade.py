"""Verify without scoring unlikely candidates or duplicates (phase 2, with `exact=False`)."""

from collections.abc import Sequence

import numpy as np

from meve._formulas import normalize
from meve.errors import ModelError
from meve.pipeline.phases.verify import score_candidates
from meve.ports import Prior, Scorer
from meve.types import Candidate, Dropped, Query, Selection, sort_best_first

BATCH = 8
"""The number of candidates to score before duplicates among the others are dropped."""
UNLIKELY = "unlikely"
DUPLICATE_OF = "duplicate_of:"
"""The prefix of the reason of a duplicate; the id of the verified candidate follows."""


def cascade(
    query: Query,
    candidates: Sequence[Candidate],
    scorer: Scorer,
    threshold: float,
    *,
    redundancy: float,
    prior: Prior | None,
) -> Selection:
    """Keep the candidates whose score reaches the threshold, best first, and score as few as possible.

    The likeliest candidates are scored first. Candidates below the prior's least chance are not scored, nor are those
    that phase 4 would drop as redundant with a verified one. Of two duplicates the likelier is kept, not the one that
    the scorer would prefer.

    Args:
        query: the question, with its vector if the prior reads it.
        candidates: the result of phase 1.
        scorer: gives the probabilities.
        threshold: τ in [0, 1].
        redundancy: θ in [0, 1]; two candidates with a cosine above it are duplicates.
        prior: predicts the chances; None to skip duplicates only.

    Raises:
        ModelError: the scorer or the prior didn't return one finite number each.
    """
    waiting = list(candidates)
    dropped: list[Dropped] = []
    if prior is not None and waiting:
        chances = np.asarray(prior.chances(query, waiting), dtype=np.float64)
        if chances.shape != (len(waiting),) or not np.isfinite(chances).all():
            raise ModelError(
                f"prior {prior.name!r} returned values of shape {chances.shape} for {len(waiting)} candidates, "
                f"{int((~np.isfinite(chances)).sum())} of them not finite: expected one finite number each"
            )
        order = np.argsort(-chances, kind="stable").tolist()
        dropped = [Dropped(candidate=waiting[n], reason=UNLIKELY) for n in order if chances[n] < prior.least]
        waiting = [waiting[n] for n in order if chances[n] >= prior.least]
    verified: list[Candidate] = []
    while waiting:
        judged = score_candidates(query, waiting[:BATCH], scorer, threshold)
        fresh = [c for c in judged if c.verified]
        verified += fresh
        dropped += [Dropped(candidate=c, reason="below_threshold") for c in sort_best_first(judged) if not c.verified]
        waiting, duplicates = _split_duplicates(waiting[BATCH:], fresh, redundancy)
        dropped += duplicates
    return Selection(kept=sort_best_first(verified), dropped=dropped)


def _split_duplicates(
    waiting: Sequence[Candidate], verified: Sequence[Candidate], redundancy: float
) -> tuple[list[Candidate], list[Dropped]]:
    """Return the candidates that duplicate no verified one, and those that do, with the nearest as the reason."""
    known = [(c.id, c.vector) for c in verified if c.vector is not None]
    if not known:
        return list(waiting), []
    vectors = normalize(np.array([vector for _, vector in known]))
    fresh: list[Candidate] = []
    duplicates: list[Dropped] = []
    for candidate in waiting:
        near = np.minimum(vectors @ normalize(candidate.vector), 1.0) if candidate.vector is not None else np.zeros(1)
        if near.max() > redundancy:
            duplicates.append(Dropped(candidate=candidate, reason=f"{DUPLICATE_OF}{known[int(near.argmax())][0]}"))
        else:
            fresh.append(candidate)
    return fresh, duplicates
