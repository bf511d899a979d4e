"""Coordinates of turns: depth, sibling order, homogeneity, time and complexity, and distances between them.

Source: RAG++ (Diomande 2026), section 4.1. Complexity is compressed to [0, 1] here; as published it has no upper bound
and outweighs the other four.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from meve._formulas import normalize
from meve.conversation.graph import TurnGraph
from meve.errors import ConfigurationError
from meve.types import FloatArray

Dimension: TypeAlias = Literal["depth", "sibling", "homogeneity", "temporal", "complexity", "branches", "replies"]
"""The names of the coordinates: the published five, and two that the paper adds in an ablation."""

DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)

PAPER_WEIGHTS: Mapping[Dimension, float] = MappingProxyType(
    {"depth": 1.0, "sibling": 0.5, "homogeneity": 1.2, "temporal": 0.8, "complexity": 0.3}
)
"""The published weights of the five dimensions."""

ABLATIONS: Mapping[int, Mapping[Dimension, float]] = MappingProxyType(
    {
        3: {name: PAPER_WEIGHTS[name] for name in ("depth", "temporal", "homogeneity")},
        5: PAPER_WEIGHTS,
        7: {**PAPER_WEIGHTS, "branches": 0.5, "replies": 0.5},
    }
)
"""Weights by the number of dimensions that the paper compares; those of the two added ones aren't published."""

_COMPONENTS = re.compile(
    r"[.!?;:](?=\s|$)|,|\b(?:and|or|but|because|if|when|while|which|that|so|then)\b"  # ends and beginnings of clauses
    r"|(?<=[a-z0-9,] )[A-Z]\w+|\d+(?:[.,:/-]\d+)*|`[^`\n]+`"  # names, numbers and code
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coordinates:
    """The coordinates of n turns."""

    values: FloatArray
    """Shape (n, 7), each in [0, 1], in the order of `DIMENSIONS`."""
    components: npt.NDArray[np.int64]
    """The raw complexity of each turn, at least 1; shape (n,)."""

    def of(self, position: int) -> dict[str, float]:
        """Return the coordinates of one turn by name."""
        return {name: float(value) for name, value in zip(DIMENSIONS, self.values[position], strict=True)}

    def distances(
        self, position: int, others: npt.NDArray[np.int64] | slice = slice(None), weights: "Weights | None" = None
    ) -> FloatArray:
        """Return the distance of one turn from others, shape (m,).

        Args:
            position: the turn.
            others: positions of the other turns; all by default.
            weights: those of the dimensions; the published ones by default.
        """
        return trajectory_distances(self.values[position], self.values[others], weights or Weights())


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weights of the dimensions, not negative; a dimension without one doesn't count.

    Raises:
        ConfigurationError: an unknown dimension, or a weight that is negative or not finite.

    >>> Weights(of={"dept": 1.0})
    Traceback (most recent call last):
    meve.errors.ConfigurationError: unknown dimension 'dept': known: depth, sibling, homogeneity, temporal, complexity, branches, replies
    """  # noqa: E501

    of: Mapping[Dimension, float] = field(default_factory=lambda: dict(PAPER_WEIGHTS))

    def __post_init__(self) -> None:
        for name, weight in self.of.items():
            if name not in DIMENSIONS:
                raise ConfigurationError(f"unknown dimension {name!r:.40}: known: {', '.join(DIMENSIONS)}")
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < float("inf"):
                raise ConfigurationError(f"the weight of {name} must be a number of at least 0, got {weight!r:.40}")

    @property
    def array(self) -> npt.NDArray[np.float64]:
        """The weights in the order of `DIMENSIONS`, shape (7,)."""
        return np.array([self.of.get(name, 0.0) for name in DIMENSIONS])


def trajectory_distances(one: FloatArray, others: FloatArray, weights: Weights) -> FloatArray:
    """Return sqrt(Σ w_i (p_i - q_i)²) of one turn (7,) with others (m, 7), shape (m,).

    Source: RAG++ (Diomande 2026), definition 4.2.
    """
    gaps = np.asarray(others, dtype=np.float64) - one
    return np.asarray(np.sqrt((gaps**2) @ weights.array), dtype=np.float32)


def compute_coordinates(
    graph: TurnGraph,
    vectors: npt.NDArray[np.floating],
    components: npt.NDArray[np.int64] | None = None,
    homogeneity: npt.NDArray[np.float32] | None = None,
) -> Coordinates:
    """Compute the coordinates of all turns.

    Args:
        graph: n turns.
        vectors: their embeddings, shape (n, d); a zero vector is similar to nothing.
        components: the raw complexity of each turn, if it is known, shape (n,).
        homogeneity: from `find_homogeneity`, if it is known, shape (n,).
    """
    values = np.zeros((len(graph), len(DIMENSIONS)), dtype=np.float32)
    if components is None:
        components = count_components([turn.text for turn in graph.turns])
    if not len(graph):
        return Coordinates(values=values, components=components)
    depths, seconds = graph.depths, graph.seconds
    values[:, 0] = depths / max(1, int(depths.max()))
    rivals = np.where(graph.parents >= 0, graph.replies[graph.parents] - 1, 0)
    values[:, 1] = graph.siblings / np.maximum(rivals, 1)
    values[:, 2] = find_homogeneity(graph.parents, vectors) if homogeneity is None else homogeneity
    start, end = seconds.min(), seconds.max()
    values[:, 3] = (seconds - start) / (end - start if end > start else 1.0)
    values[:, 4] = np.log(components) / max(float(np.log(components.max())), 1e-9)
    values[:, 5] = graph.forks / (depths + 1)
    values[:, 6] = np.log1p(graph.replies) / max(float(np.log1p(graph.replies.max())), 1e-9)
    return Coordinates(values=values, components=components)


def count_components(texts: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the raw complexity of texts: 1 plus their boundaries of clauses, names, numbers and pieces of code.

    >>> count_components(["Yes", "Check the token, then call Ana at 10:30."]).tolist()
    [1, 6]
    """
    return np.array([1 + sum(1 for _ in _COMPONENTS.finditer(text)) for text in texts], dtype=np.int64)


def find_homogeneity(
    parents: npt.NDArray[np.int64], vectors: npt.NDArray[np.floating], first: int = 0
) -> npt.NDArray[np.float32]:
    """Return the cosine of each turn from position `first` on with its parent, 1 without one; in [0, 1].

    Args:
        parents: the position of each turn's parent, -1 for none, shape (n,).
        vectors: the embeddings, shape (n, d); a zero vector is similar to nothing.
        first: the position of the first turn.
    """
    replies = first + np.flatnonzero(parents[first:] >= 0)
    homogeneity = np.ones(len(parents) - first, dtype=np.float32)
    own, above = normalize(vectors[replies]), normalize(vectors[parents[replies]])
    homogeneity[replies - first] = np.einsum("ij,ij->i", own, above)
    return np.clip(homogeneity, 0.0, 1.0)
