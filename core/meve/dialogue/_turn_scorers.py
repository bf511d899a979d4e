"""Scores of turns: by cosine, words and names together, or by recency alone.

Embeddings match topics, not names. If a question asks for the birth of a film's director, only the director's name ties
the turn about the film to the turn with the answer.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from meve.dialogue._name_index import NameWords, exclude_words, join_names
from meve.dialogue._turn_passages import TurnPassage
from meve.errors import ConfigurationError
from meve.pipeline._scorers import SimilarityScorer
from meve.types import Candidate, FloatArray, Passage, Query

WORD_WEIGHT = 0.3
"""Gain of a turn with all words of the question; for fewer, times the square of their share."""
NAME_WEIGHT = 0.2
"""Gain of a turn with all names of the question."""
TIE_WEIGHT = 0.2
"""Share of its score that an evidence turn passes on to a turn that mentions its names."""
EVIDENCE_TURNS = 5
"""Number of best turns that count as evidence."""
TIE_NAMES = 2
"""Number of first names of a turn that can tie it to another: a turn is mostly about the names that it begins with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridScorer:
    """Scores by cosine, plus gains for the question's words and names and for names of the best turns.

    Rare words weigh more. The weights were chosen on 100 questions of 2Wiki and 450 of LoCoMo.
    """

    words_of: Callable[[Passage], frozenset[str]]
    """Returns the words of a turn."""
    query_words: AbstractSet[str]
    names_of: Callable[[Passage], NameWords]
    """Returns the names in a turn."""
    query_names: AbstractSet[str]
    """The words of all names in the question."""
    speaker_words: AbstractSet[str] = frozenset()
    """Words of the speakers' names, which are ignored."""
    threshold: float
    """Minimum cosine of a turn that counts as evidence."""
    name: str = "relevance"

    def score(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """Return cosines from -1 to 1 plus gains, shape (n,).

        Raises:
            ModelError: the query or a candidate has no vector.
        """
        cosines = SimilarityScorer().score(query, candidates)
        names = [exclude_words(self.names_of(candidate.passage), self.speaker_words) for candidate in candidates]
        name_words = [join_names(turn_names) for turn_names in names]
        weights, query_names = _weigh_words(name_words), self.query_names - self.speaker_words
        words = [self.words_of(candidate.passage) for candidate in candidates]
        word_shares = _shares(self.query_words - self.speaker_words, words, _weigh_words(words))
        scores = cosines + NAME_WEIGHT * _shares(query_names, name_words, weights) + WORD_WEIGHT * word_shares**2
        best = np.argsort(-scores, kind="stable")[:EVIDENCE_TURNS].tolist()
        evidence = [n for n in best if cosines[n] >= self.threshold]
        ties = _score_ties(scores, evidence, names, name_words, query_names, weights)
        return np.asarray(scores + TIE_WEIGHT * ties, dtype=np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestScorer:
    """Scores turns by position, the latest highest, where no similarity is computed."""

    count: int
    """Number of turns in the dialogue."""
    name: str = "latest"
    reads_vectors: bool = False

    def score(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:  # noqa: ARG002
        """Return scores from 0 for the first turn up to 1, shape (n,).

        Raises:
            ConfigurationError: a candidate is no turn of a dialogue.
        """
        return np.asarray([_position(c.passage) / max(1, self.count) for c in candidates], dtype=np.float32)


def _position(passage: Passage) -> int:
    if not isinstance(passage, TurnPassage):
        raise ConfigurationError(f"passage {passage.id!r} is no turn of a dialogue: rank it with another scorer")
    return passage.turn


def _score_ties(
    scores: FloatArray, evidence: Sequence[int], names: Sequence[NameWords],
    name_words: Sequence[frozenset[str]], query_names: AbstractSet[str], weights: Mapping[str, float],
) -> FloatArray:  # fmt: skip
    """Return for each turn the best score that an evidence turn with one of its names passes on, shape (n,)."""
    ties = np.zeros(len(names), dtype=np.float32)
    for at in evidence:
        new_words = name_words[at] - query_names
        for n, turn_names in enumerate(names):
            if n != at and new_words and not new_words.isdisjoint(name_words[n]):
                tie = max(_share(name, new_words, weights) for name in turn_names[:TIE_NAMES])
                ties[n] = max(ties[n], tie * scores[at])
    return ties


def _weigh_words(words: Sequence[AbstractSet[str]]) -> dict[str, float]:
    counts = Counter(word for turn_words in words for word in turn_words)
    return {word: math.log(1 + len(words) / count) for word, count in counts.items()}


def _shares(wanted: AbstractSet[str], words: Sequence[AbstractSet[str]], weights: Mapping[str, float]) -> FloatArray:
    return np.array([_share(wanted, turn_words, weights) for turn_words in words], dtype=np.float32)


def _share(wanted: AbstractSet[str], present: AbstractSet[str], weights: Mapping[str, float]) -> float:
    """Return the weighted share of wanted words that are present; words that no turn contains weigh nothing."""
    total = sum(weights.get(word, 0.0) for word in wanted)
    return sum(weights[word] for word in wanted & present if word in weights) / total if total else 0.0
