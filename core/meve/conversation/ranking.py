"""Ranking of a slice's turns by meaning, words, recency, trajectory, attention and outcomes together.

Source: RAG++ (Diomande 2026): α · semantic + (1 - α) · trajectory, with the trajectory weight e^-D of the distance D,
which the paper leaves open.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from meve._formulas import normalize
from meve._pasted_text import holds_pasted_text
from meve.conversation._speakers import find_named, find_naming, find_own
from meve.conversation._turn_passages import PlacedPassage
from meve.conversation.attention import AttentionConfig, question_attention
from meve.conversation.coordinates import Coordinates, Weights, trajectory_distances
from meve.errors import ConfigurationError
from meve.pipeline.config import check_option_names
from meve.ports import Scorer
from meve.types import Candidate, FloatArray, Passage, Query

FEATURES = (
    "semantic", "words", "before", "after", "recency", "trajectory", "attention", "outcome", "addressed", "addresses",
    "own",
)  # fmt: skip
"""The names of what a turn's score sums up, each in [0, 1]."""

COLD_START = 5
"""A conversation with fewer turns has no useful shape: there only time counts beside the meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The weights of a turn's score, which is the weighted mean of its features, in [0, 1].

    A negative weight counts 1 minus the feature. The default weights serve questions about a conversation; `meve bench
    trajectory` measures them, and fits others. With other weights the threshold may need another value.

    Raises:
        ConfigurationError: a weight that is no finite number, all weights 0, or settings of another type.

    >>> Ranking.paper().trajectory
    0.3
    """

    semantic: float = 0.44
    """The cosine with the question, or the probability of a verifier."""
    words: float = 0.21
    """The keyword score, as a share of the best one's."""
    before: float = 0.09
    """The keyword score of the turn that it answers, if the slice holds that."""
    after: float = 0.05
    """The best keyword score of the replies to it in the slice."""
    recency: float = 0.03
    """1 / (1 + ln(1 + the number of turns between))."""
    trajectory: float = 0.03
    """e^-D of the trajectory distance D from the anchor."""
    attention: float = 0.03
    """The unified attention of the question to the turn, as a share of the greatest."""
    outcome: float = 0.04
    """The expected outcome of the turn, 0.5 if none is recorded."""
    addressed: float = 0.08
    """Whether the question names the turn's speaker. Roles such as `user` are no names."""
    addresses: float = 0.0
    """Whether the turn names the asker."""
    own: float = 0.0
    """Whether the asker is the turn's speaker."""
    dimensions: Weights = field(default_factory=Weights)
    """The weights of the coordinates in the distance."""
    ring: AttentionConfig = field(default_factory=AttentionConfig)
    """The settings of the attention."""

    def __post_init__(self) -> None:
        for name in FEATURES:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
                raise ConfigurationError(f"the weight {name} must be a finite number, got {value!r:.40}")
        if not any(getattr(self, name) for name in FEATURES):
            raise ConfigurationError(f"one of the weights {', '.join(FEATURES)} must not be 0")
        for name, value, kind in (("dimensions", self.dimensions, Weights), ("ring", self.ring, AttentionConfig)):
            if not isinstance(value, kind):
                raise ConfigurationError(f"{name} must be {kind.__name__}(…), got {value!r:.80}")

    @classmethod
    def paper(cls) -> Self:
        """Return the published weights: 0.7 for the meaning, 0.3 for the trajectory."""
        return cls.fitted({"semantic": 0.7, "trajectory": 0.3})

    @classmethod
    def chat_room(cls) -> Self:
        """Return weights for finding the message that a new one answers, in a chat room of several named people.

        They were fitted by `benchmarks/fit_ranking.py`. Give `retrieve` the asker's name as `speaker`, and a threshold
        of 0.
        """
        return cls.fitted(
            {
                "semantic": 0.11, "words": 0.06, "before": 0.03, "after": 0.06, "recency": 0.41, "trajectory": -0.03,
                "attention": -0.1, "addressed": 0.13, "addresses": 0.07,
            }
        )  # fmt: skip

    @classmethod
    def fitted(cls, weights: Mapping[str, float]) -> Self:
        """Return a ranking with these weights, by name, and 0 for all others.

        Raises:
            ConfigurationError: an unknown name, or a weight that is no finite number.
        """
        check_option_names(weights, FEATURES, "Ranking")
        every: dict[str, Any] = {**dict.fromkeys(FEATURES, 0.0), **weights}
        return cls(**every)

    def combine(self, features: Mapping[str, npt.NDArray[np.floating]]) -> FloatArray:
        """Return the weighted mean of the features, shape (n,)."""
        weights = {name: getattr(self, name) for name in FEATURES if getattr(self, name)}
        total = sum(w * features[name] if w > 0 else -w * (1 - features[name]) for name, w in weights.items())
        return np.asarray(total / sum(map(abs, weights.values())), dtype=np.float32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SliceView:
    """A slice with what its turns' features are computed from."""

    rows: npt.NDArray[np.int64]
    """The positions of its turns in the conversation, in order; shape (m,)."""
    anchor: int
    """The position of the anchor."""
    vectors: FloatArray
    """The embeddings of all n turns of the conversation, of length 1 or 0; shape (n, d)."""
    coordinates: Coordinates
    """The coordinates of all n turns."""
    parents: npt.NDArray[np.int64]
    """The position of each turn's main parent, -1 for none; shape (n,)."""

    def neighbours(self, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return for each of the m turns the value of its parent, and the largest of its replies; 0 without one.

        Args:
            shares: a value for each turn of the slice, shape (m,).
        """
        before, after = np.zeros_like(shares), np.zeros_like(shares)
        above = self.parents[self.rows]
        at = np.minimum(np.searchsorted(self.rows, above), max(0, len(self.rows) - 1))
        inside = np.flatnonzero(self.rows[at] == above)
        before[inside] = shares[at[inside]]
        np.maximum.at(after, at[inside], shares[inside])
        return before, after

    def distances(self, weights: Weights) -> FloatArray:
        """Return the distance of the slice's turns from the anchor, shape (m,)."""
        values = self.coordinates.values
        if len(values) < COLD_START:
            weights = Weights(of={"temporal": weights.of.get("temporal", 1.0)})
        return trajectory_distances(values[self.anchor], values[self.rows], weights)

    def steps(self) -> npt.NDArray[np.int64]:
        """Return how many turns of the slice lie between each and the question, asked after the anchor; shape (m,).

        It is negative for turns after the anchor.
        """
        return np.searchsorted(self.rows, self.anchor) - np.arange(len(self.rows))

    def attention(self, question: FloatArray, distances: FloatArray, ring: AttentionConfig) -> FloatArray:
        """Return the attention of the question to the slice's turns, as a share of the greatest; shape (m,)."""
        if len(self.coordinates.values) < COLD_START:
            return np.zeros(len(self.rows), dtype=np.float32)
        near = np.clip(self.vectors[self.rows] @ normalize(question), -1.0, 1.0)
        weights = question_attention(near, self.steps(), distances, ring)
        return weights / max(float(weights.max(initial=0.0)), 1e-9)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrajectoryScorer:
    """Scores the turns of a slice by a ranking. It fits phase 2 of the pipeline as any scorer does."""

    view: SliceView
    semantic: Scorer
    """Judges the meaning: by cosine, or a verifier's probability."""
    outcomes: Mapping[int, float]
    """The expected outcome of turns by position; 0.5 for others."""
    words: Callable[[Query], FloatArray]
    """Returns the keyword scores of the slice's m turns, as shares of the best one's; shape (m,)."""
    ranking: Ranking
    speaker: str = ""
    """Who asks; empty if unknown."""
    name: str = "trajectory_score"

    def score(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """Return scores in [0, 1], shape (n,)."""
        return self.judge(query, candidates)[0]

    def judge(self, query: Query, candidates: Sequence[Candidate]) -> tuple[FloatArray, Mapping[str, FloatArray]]:
        """Return scores in [0, 1], shape (n,), and by name their features and the distance, each of shape (n,).

        Raises:
            ConfigurationError: a candidate is no turn of the slice.
            ModelError: the query has no vector, or a model failed.
        """
        at = self._places(candidates)
        ranking, view = self.ranking, self.view
        distances = view.distances(ranking.dimensions)
        steps = np.abs(view.steps()[at])
        question = np.zeros(view.vectors.shape[1], np.float32) if query.vector is None else query.vector
        shares = np.zeros(len(view.rows), np.float32) if holds_pasted_text(query.text) else self.words(query)
        before, after = view.neighbours(shares)
        texts, speakers = [c.passage.text for c in candidates], [c.passage.title for c in candidates]
        features = {
            "semantic": np.clip(self.semantic.score(query, candidates), 0.0, 1.0),
            "words": shares[at],
            "before": before[at],
            "after": after[at],
            "recency": np.asarray(1 / (1 + np.log1p(steps)), dtype=np.float32),
            "trajectory": np.exp(-distances[at]),
            "attention": view.attention(question, distances, ranking.ring)[at],
            "outcome": np.array([self.outcomes.get(int(view.rows[n]), 0.5) for n in at], dtype=np.float32),
            "addressed": find_named(query.text, speakers),
            "addresses": find_naming(texts, self.speaker),
            "own": find_own(speakers, self.speaker),
        }
        if len(view.coordinates.values) < COLD_START:
            features["recency"] = features["trajectory"]
        return ranking.combine(features), {**features, "distance": distances[at]}

    def _places(self, candidates: Sequence[Candidate]) -> npt.NDArray[np.int64]:
        """Return the place of each candidate in the slice, shape (n,)."""
        positions = np.array([position_of(c.passage) for c in candidates], dtype=np.int64)
        at = np.minimum(np.searchsorted(self.view.rows, positions), max(0, len(self.view.rows) - 1))
        outside = [c.id for c, row, n in zip(candidates, self.view.rows[at], positions, strict=True) if row != n]
        if outside:
            raise ConfigurationError(f"turn {outside[0]!r:.80} is outside of the slice: search the slice only")
        return at


def position_of(passage: Passage) -> int:
    """Return the position of a passage's turn in its conversation.

    Raises:
        ConfigurationError: the passage is no turn of a conversation.
    """
    if not isinstance(passage, PlacedPassage):
        raise ConfigurationError(
            f"passage {passage.id!r:.80} is no turn of a conversation: rank it with another scorer"
        )
    return passage.position
