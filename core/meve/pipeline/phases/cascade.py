"""Phase 2, where it need not be exact: what can't be verified, or repeats what is, isn't scored."""

from collections.abc import Sequence

import numpy as np

from meve._formulas import normalize
from meve.errors import ModelError
from meve.pipeline.phases.verify import score_candidates
from meve.ports import Prior, Scorer
from meve.types import Candidate, Dropped, Query, Selection, sort_best_first

ROUND = 8
"""Candidates that are scored before the next look at what is left."""
UNLIKELY = "unlikely"
DUPLICATE_OF = "duplicate_of:"
"""Begins the reason of one that repeats what is verified; the other's id follows."""


def cascade(
    query: Query,
    candidates: Sequence[Candidate],
    scorer: Scorer,
    threshold: float,
    *,
    redundancy: float,
    prior: Prior | None,
) -> Selection:
    """Keep the candidates whose score reaches the threshold, best first, and score as few as will do.

    The likeliest are scored first. Not scored: those whose chance of being verified lies below the prior's least, and
    those that phase 4 would take for copies of one that is verified already. Of two copies the likelier is kept so, not
    the one that the scorer would prefer.

    Args:
        query: the question, with its vector where a prior or copies are to be told by vectors.
        candidates: what phase 1 brought.
        scorer: what verifies.
        threshold: τ.
        redundancy: θ in [0, 1]; with a cosine above it, one is the other's copy.
        prior: tells chances; None to leave out copies alone.

    Raises:
        ModelError: the scorer or the prior gave another number of scores than asked, or one that isn't a number.
    """
    waiting = list(candidates)
    dropped: list[Dropped] = []
    if prior is not None and waiting:
        chances = np.asarray(prior.chances(query, waiting), dtype=np.float64)
        if chances.shape != (len(waiting),) or not np.isfinite(chances).all():
            raise ModelError(
                f"prior {prior.name!r} returned chances of shape {chances.shape} for {len(waiting)} candidates, "
                f"{int((~np.isfinite(chances)).sum())} of them not finite: expected one finite number each"
            )
        order = np.argsort(-chances, kind="stable").tolist()
        dropped = [Dropped(candidate=waiting[n], reason=UNLIKELY) for n in order if chances[n] < prior.least]
        waiting = [waiting[n] for n in order if chances[n] >= prior.least]
    verified: list[Candidate] = []
    while waiting:
        judged = score_candidates(query, waiting[:ROUND], scorer, threshold)
        fresh = [c for c in judged if c.verified]
        verified += fresh
        dropped += [Dropped(candidate=c, reason="below_threshold") for c in sort_best_first(judged) if not c.verified]
        waiting, copies = _without_copies(waiting[ROUND:], fresh, redundancy)
        dropped += copies
    return Selection(kept=sort_best_first(verified), dropped=dropped)


def _without_copies(
    waiting: Sequence[Candidate], verified: Sequence[Candidate], redundancy: float
) -> tuple[list[Candidate], list[Dropped]]:
    """Those that repeat none of the verified, and those that do, each with the nearest that it repeats."""
    known = [(c.id, c.vector) for c in verified if c.vector is not None]
    if not known:
        return list(waiting), []
    vectors = normalize(np.array([vector for _, vector in known]))
    fresh: list[Candidate] = []
    copies: list[Dropped] = []
    for candidate in waiting:
        near = np.minimum(vectors @ normalize(candidate.vector), 1.0) if candidate.vector is not None else np.zeros(1)
        if near.max() > redundancy:
            copies.append(Dropped(candidate=candidate, reason=f"{DUPLICATE_OF}{known[int(near.argmax())][0]}"))
        else:
            fresh.append(candidate)
    return fresh, copies
