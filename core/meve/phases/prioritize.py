"""Phase 4, prioritisation: best first, and nothing said twice."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from meve.formulas import inner_products, unit
from meve.types import Candidate, Dropped, FloatArray, Passage, Selection, best_first

Same: TypeAlias = Callable[[Passage, Passage], bool]
"""Whether two passages whose embeddings are close say the same."""


def prioritize(
    candidates: Sequence[Candidate], vectors: FloatArray, redundancy: float, same: Same | None = None
) -> Selection:
    """Sort, then drop each candidate whose embedding is too close to any kept, higher-ranked one.

    Args:
        candidates: n of them, in any order.
        vectors: their embeddings, shape (n, d), in the same order.
        redundancy: θ in [0, 1]; a cosine above it is redundant. 1 drops none.
        same: asked besides of what is close; only what says the same is redundant. None for not asking.

    Source: MeVe (Ottem 2025), section 3.5.
    """
    order = best_first(candidates)
    if not order:
        return Selection(kept=[])
    place = {c.id: i for i, c in enumerate(candidates)}
    ranked = unit(vectors)[[place[c.id] for c in order]]
    cosines = np.minimum(inner_products(ranked), 1.0)
    close = np.tril(cosines > redundancy, -1)  # to a higher-ranked one, kept or not
    kept = np.ones(len(order), dtype=np.bool_)
    dropped: list[Dropped] = []
    for i in np.flatnonzero(close.any(axis=1)).tolist():
        others = np.flatnonzero(close[i] & kept).tolist()
        others = [n for n in others if same is None or same(order[i].passage, order[n].passage)]
        if others:
            nearest = max(others, key=lambda n: cosines[i, n])
            kept[i] = False
            dropped.append(Dropped(candidate=order[i], reason=f"redundant_with:{order[nearest].id}"))
    return Selection(kept=[c for c, stays in zip(order, kept.tolist(), strict=True) if stays], dropped=dropped)
