"""Phase 4, prioritisation: best first, and nothing said twice."""

from collections.abc import Sequence

import numpy as np

from meve.formulas import unit
from meve.types import Candidate, Dropped, FloatArray, Selection, best_first


def prioritize(candidates: Sequence[Candidate], vectors: FloatArray, redundancy: float) -> Selection:
    """Sort, then drop each candidate whose embedding is too close to any kept, higher-ranked one.

    Args:
        candidates: n of them, in any order.
        vectors: their embeddings, shape (n, d), in the same order.
        redundancy: θ in [0, 1]; a cosine above it is redundant. 1 drops none.

    Source: MeVe (Ottem 2025), section 3.5.
    """
    order = best_first(candidates)
    place = {c.id: i for i, c in enumerate(candidates)}
    ranked = unit(vectors)[[place[c.id] for c in order]] if order else vectors
    cosines = np.minimum(ranked @ ranked.T, 1.0) if order else vectors
    kept: list[int] = []
    dropped: list[Dropped] = []
    for i, candidate in enumerate(order):
        nearest = max(kept, key=lambda j: cosines[i, j], default=None)
        if nearest is not None and cosines[i, nearest] > redundancy:
            dropped.append(Dropped(candidate=candidate, reason=f"redundant_with:{order[nearest].id}"))
        else:
            kept.append(i)
    return Selection(kept=[order[i] for i in kept], dropped=dropped)
