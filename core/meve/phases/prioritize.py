"""Phase 4, prioritisation: best first, and nothing said twice."""

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np

from meve.formulas import inner_products, unit
from meve.types import Candidate, Dropped, FloatArray, Passage, Selection, best_first

Relation: TypeAlias = Literal["", "same", "yields", "prevails"]
Relate: TypeAlias = Callable[[Passage, Passage], Relation]
"""What a passage is to one whose embedding is close: the same again, or in conflict with it, and then which of them
stays."""


def prioritize(
    candidates: Sequence[Candidate], vectors: FloatArray, redundancy: float, relate: Relate | None = None
) -> Selection:
    """Sort, then drop each candidate whose embedding is too close to any kept, higher-ranked one.

    Where `relate` finds two in conflict, the one that yields goes, though it may rank higher.

    Args:
        candidates: n of them, in any order.
        vectors: their embeddings, shape (n, d), in the same order.
        redundancy: θ in [0, 1]; a cosine above it is redundant. 1 drops none.
        relate: asked besides of what is close, the lower-ranked one first. None for taking what is close for the same.

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
        found = {n: "same" if relate is None else relate(order[i].passage, order[n].passage) for n in others}
        for reason, relation in (("redundant_with", "same"), ("contradicted_by", "yields")):
            if above := [n for n in others if found[n] == relation]:
                nearest = max(above, key=lambda n: cosines[i, n])
                kept[i] = False
                dropped.append(Dropped(candidate=order[i], reason=f"{reason}:{order[nearest].id}"))
                break
        else:
            for n in (n for n in others if found[n] == "prevails"):
                kept[n] = False
                dropped.append(Dropped(candidate=order[n], reason=f"contradicted_by:{order[i].id}"))
    return Selection(kept=[c for c, stays in zip(order, kept.tolist(), strict=True) if stays], dropped=dropped)
