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
    pairs: dict[int, list[int]] = {}
    for i in np.flatnonzero(close.any(axis=1)).tolist():
        others = np.flatnonzero(close[i])
        pairs[i] = others[np.argsort(-cosines[i, others], kind="stable")].tolist()
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


def drop_copies(
    candidates: Sequence[Candidate], known: Sequence[Candidate], redundancy: float, relate: Relate | None = None
) -> list[Candidate]:
    """Return the candidates, in the order given, that copy neither a known one nor one before them.

    A candidate without a vector is no copy.

    Args:
        candidates: to choose from.
        known: candidates that are chosen already.
        redundancy: θ in [0, 1]; a candidate with a cosine above it is similar.
        relate: relates two similar passages; None to treat them as the same.
    """
    kept: list[Candidate] = []
    before = [(c, normalize(c.vector)) for c in known if c.vector is not None]
    for candidate in candidates:
        if candidate.vector is None:
            kept.append(candidate)
            continue
        vector = normalize(candidate.vector)
        similar = (c for c, other in before if min(float(vector @ other), 1.0) > redundancy)
        if not any(relate is None or relate(candidate.passage, c.passage) == "same" for c in similar):
            kept.append(candidate)
            before.append((candidate, vector))
    return kept


def diversify(candidates: Sequence[Candidate], vectors: FloatArray, weight: float) -> list[Candidate]:
    """Return the candidates so that each is relevant and unlike those before it; verified ones stay first.

    The next candidate has the highest (1 - weight) · score - weight · its highest cosine with those before it.

    Args:
        candidates: n candidates.
        vectors: their embeddings, shape (n, d), in the same order.
        weight: in [0, 1]; 0 orders by score alone.

    Source: Carbonell and Goldstein, The Use of MMR, Diversity-Based Reranking (1998).
    """
    cosines = np.minimum(inner_products(normalize(vectors)), 1.0) if len(candidates) else np.zeros((0, 0))
    scores = [c.score or 0.0 for c in candidates]
    chosen: list[int] = []
    left = list(range(len(candidates)))
    while left:
        likeness = {n: max((float(cosines[n, before]) for before in chosen), default=0.0) for n in left}
        best = max(left, key=lambda n: (candidates[n].verified, (1 - weight) * scores[n] - weight * likeness[n], -n))
        chosen.append(best)
        left.remove(best)
    return [candidates[n] for n in chosen]


def _resolve_conflicts(
    order: Sequence[Candidate], pairs: Mapping[int, Sequence[int]], relate: Relate, reasons: dict[int, str]
) -> dict[tuple[int, int], Relation]:
    """Add the reasons of contradicted candidates, and return the relations of the compared pairs that have one."""
    # before redundancy: of a statement, its opposite and a duplicate, the opposite must go
    related: dict[tuple[int, int], Relation] = {}
    for i, others in pairs.items():
        beaten: list[int] = []
        for n in (n for n in others if n not in reasons):
            if relation := relate(order[i].passage, order[n].passage):
                related[i, n] = relation
            if relation == "yields":
                reasons[i] = f"contradicted_by:{order[n].id}"
                break
            if relation == "prevails":
                beaten.append(n)
        else:
            reasons.update({n: f"contradicted_by:{order[i].id}" for n in beaten})
    return related
