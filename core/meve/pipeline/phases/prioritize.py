"""Rank candidates and drop redundant or contradicted ones (phase 4)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np

from meve._formulas import inner_products, normalize
from meve.types import Candidate, Dropped, FloatArray, Passage, Selection, sort_best_first

Relation: TypeAlias = Literal["", "same", "yields", "prevails"]
Relate: TypeAlias = Callable[[Passage, Passage], Relation]
"""A function that relates a lower-ranked passage to a similar, higher-ranked one: unrelated (empty), `same`, or in
conflict, where the first passage `yields` to the second or `prevails` over it."""


def prioritize(
    candidates: Sequence[Candidate], vectors: FloatArray, redundancy: float, relate: Relate | None = None
) -> Selection:
    """Rank candidates, then drop each one that is too similar to a kept, higher-ranked one.

    If `relate` finds a conflict, the passage that yields is dropped, even if it ranks higher.

    Args:
        candidates: n candidates, in any order.
        vectors: their embeddings, shape (n, d), in the same order.
        redundancy: θ in [0, 1]; a cosine above it is redundant. 1 drops none.
        relate: relates two similar passages; None to treat them as the same.

    Source: MeVe (Ottem 2025), section 3.5.
    """
    order = sort_best_first(candidates)
    if not order:
        return Selection(kept=[])
    place = {c.id: i for i, c in enumerate(candidates)}
    ranked = normalize(vectors)[[place[c.id] for c in order]]
    cosines = np.minimum(inner_products(ranked), 1.0)
    close = np.tril(cosines > redundancy, -1)  # to a higher-ranked one
    pairs = {int(i): sorted(np.flatnonzero(close[i]).tolist(), key=lambda n: -cosines[i, n])
             for i in np.flatnonzero(close.any(axis=1))}  # fmt: skip
    reasons: dict[int, str] = {}
    related: dict[tuple[int, int], Relation] = {}
    if relate is not None:
        related = _resolve_conflicts(order, pairs, relate, reasons)
    for i, others in pairs.items():
        duplicates = (n for n in others if n not in reasons and related.get((i, n), "" if relate else "same") == "same")
        if i not in reasons and (nearest := next(duplicates, None)) is not None:
            reasons[i] = f"redundant_with:{order[nearest].id}"
    dropped = [Dropped(candidate=order[i], reason=reason) for i, reason in sorted(reasons.items())]
    return Selection(kept=[c for i, c in enumerate(order) if i not in reasons], dropped=dropped)


def _resolve_conflicts(
    order: Sequence[Candidate], pairs: Mapping[int, Sequence[int]], relate: Relate, reasons: dict[int, str]
) -> dict[tuple[int, int], Relation]:
    """Add the reasons of contradicted candidates, and return the relations of all compared pairs."""
    # before redundancy: of a statement, its opposite and a duplicate, the opposite must go
    related: dict[tuple[int, int], Relation] = {}
    for i, others in pairs.items():
        beaten: list[int] = []
        for n in (n for n in others if n not in reasons):
            relation = related[i, n] = relate(order[i].passage, order[n].passage)
            if relation == "yields":
                reasons[i] = f"contradicted_by:{order[n].id}"
                break
            if relation == "prevails":
                beaten.append(n)
        else:
            reasons.update({n: f"contradicted_by:{order[i].id}" for n in beaten})
    return related
