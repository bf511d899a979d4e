"""Rank candidates and drop redundant or contradicted ones (phase 4)."""

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np

from meve._formulas import inner_products, normalize
from meve.types import Candidate, Dropped, FloatArray, Passage, Selection, best_first

Relation: TypeAlias = Literal["", "same", "yields", "prevails"]
Relate: TypeAlias = Callable[[Passage, Passage], Relation]
"""A function that relates a lower-ranked passage to a similar, higher-ranked one: unrelated (empty), `same`, or in
conflict, where the first passage `yields` to the second or `prevails` over it."""
REDUNDANT_WITH = "redundant_with:"
"""The prefix of the reason of a redundant candidate; the id of the better one follows."""
_MOST_LAZY = 100
"""Candidates of more are decided one by one from the first on, since each may depend on all before it."""


class RankedCandidates:
    """Candidates in their order, the best first, each of which is kept or dropped once its fate is asked for.

    One is dropped if it is too similar to a kept, higher-ranked one. If `relate` finds a conflict, the one that yields
    is dropped, even if it ranks higher.

    Args:
        candidates: n candidates, in any order.
        vectors: their embeddings, shape (n, d), in the same order.
        redundancy: θ in [0, 1]; a cosine above it is redundant. 1 drops none.
        relate: relates two similar passages; None to treat them as the same. If it has a method `foresee`, that says
            faster what their relation is if they are in conflict.

    Source: MeVe (Ottem 2025), section 3.5.
    """

    def __init__(
        self, candidates: Sequence[Candidate], vectors: FloatArray, redundancy: float, relate: Relate | None = None
    ) -> None:
        ranks = sorted(range(len(candidates)), key=list(map(best_first, candidates)).__getitem__)
        self.order = [candidates[i] for i in ranks]
        units = normalize(vectors)[ranks]
        cosines = np.minimum(inner_products(units), 1.0)
        self._higher: list[list[int]] = [[] for _ in self.order]
        """For each candidate the similar higher-ranked ones, the most similar first."""
        self._lower: list[list[int]] = [[] for _ in self.order]
        """For each candidate the similar lower-ranked ones, the best first."""
        similar = np.array(np.nonzero(cosines > redundancy))
        lower, higher = similar[:, similar[0] > similar[1]]
        nearest_first = np.lexsort((-cosines[lower, higher], lower))
        for i, n in zip(lower[nearest_first].tolist(), higher[nearest_first].tolist(), strict=True):
            self._higher[i].append(n)
            self._lower[n].append(i)
        self._relate = relate or (lambda *_: "same")
        self._foresee: Relate | None = getattr(relate, "foresee", None)
        self._places = {c.passage.id: i for i, c in enumerate(self.order)}
        self._relations: dict[tuple[int, int], Relation] = {}
        self._winners: dict[int, int | None] = {}
        self._reasons: dict[int, str] = {}
        if len(self.order) > _MOST_LAZY:
            self.select()

    def select(self) -> Selection:
        """Return all candidates that are kept, and all that are dropped."""
        for i in range(len(self.order)):
            self._find_winner(i)
        reasons = [(c, self.find_reason(c)) for c in self.order]
        dropped = [Dropped(candidate=c, reason=reason) for c, reason in reasons if reason]
        return Selection(kept=[c for c, reason in reasons if not reason], dropped=dropped)

    def find_reason(self, candidate: Candidate) -> str:
        """Return why a candidate is dropped; empty if it is kept."""
        return self._decide(self._places[candidate.id])

    def _decide(self, i: int) -> str:
        if i not in self._reasons:
            self._reasons[i] = self._find_conflict(i) or self._find_copied(i)
        return self._reasons[i]

    def _find_conflict(self, i: int) -> str:
        # before redundancy: of a statement, its opposite and a duplicate, the opposite must go
        winner = self._find_winner(i)
        if winner is None:
            winner = next((j for j in self._lower[i] if self._defeats(j, i)), None)
        return "" if winner is None else f"contradicted_by:{self.order[winner].id}"

    def _find_copied(self, i: int) -> str:
        copied = (n for n in self._higher[i] if self._relation(i, n) == "same" and not self._decide(n))
        nearest = next(copied, None)
        return "" if nearest is None else f"{REDUNDANT_WITH}{self.order[nearest].id}"

    def _find_winner(self, i: int) -> int | None:
        """Return the nearest higher-ranked candidate to which one yields; those that fell before don't count."""
        if i not in self._winners:
            others = (n for n in self._higher[i] if self._conflict(i, n, "yields") and self._stands(n, i))
            self._winners[i] = next(others, None)
        return self._winners[i]

    def _stands(self, n: int, before: int) -> bool:
        """Return whether no conflict among the candidates before a place drops one of them."""
        lower = (j for j in self._lower[n] if j < before)
        return self._find_winner(n) is None and not any(self._defeats(j, n) for j in lower)

    def _defeats(self, j: int, n: int) -> bool:
        """Return whether a lower-ranked candidate prevails over another one, and itself yields to none."""
        return self._conflict(j, n, "prevails") and self._find_winner(j) is None

    def _conflict(self, lower: int, higher: int, relation: Relation) -> bool:
        """Return whether the lower-ranked of two candidates yields, or prevails."""
        if self._foresee and self._foresee(self.order[lower].passage, self.order[higher].passage) != relation:
            return False
        return self._relation(lower, higher) == relation

    def _relation(self, lower: int, higher: int) -> Relation:
        pair = lower, higher
        if pair not in self._relations:
            self._relations[pair] = self._relate(self.order[lower].passage, self.order[higher].passage)
        return self._relations[pair]


def prioritize(
    candidates: Sequence[Candidate], vectors: FloatArray, redundancy: float, relate: Relate | None = None
) -> Selection:
    """Rank candidates, and drop redundant and contradicted ones, as `RankedCandidates` describes."""
    return RankedCandidates(candidates, vectors, redundancy, relate).select()


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
