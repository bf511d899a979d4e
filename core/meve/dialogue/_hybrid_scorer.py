"""Likeness by words beside likeness by meaning: the question's words, its names, and those of turns that answer it.

An embedder that sees that a question and a turn are of one matter doesn't see well whether they are of the same thing.
A question of two steps names one thing, and the answer hangs on another: who directed a film is said in one turn, when
he was born in another, and only the name ties the two together.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from meve.dialogue._word_index import Names, without, words_of
from meve.pipeline._scorers import SimilarityScorer
from meve.types import Candidate, FloatArray, Passage, Query

WORDS = 0.3
"""What a turn gains that holds all words of the question; by the square of the share: half of them tell little."""
ASKED = 0.2
"""What a turn gains that holds all names of the question."""
TIED = 0.2
"""Of its likeness, what a turn passes on to one whose name it holds."""
EVIDENCE = 5
"""How many of the best turns pass something on."""
FIRST = 2
"""Of a turn, how many names may tie it to another: those that it begins with are those that it is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsToo:
    """The cosine, and what words add: the question's, once more its names, then names of the best turns that it lacks.

    Rare words count more than frequent ones. The weights were chosen on 100 questions of 2Wiki and 450 of LoCoMo.
    """

    worded: Callable[[Passage], frozenset[str]]
    """The words of a turn."""
    wanted: AbstractSet[str]
    """Those of the question."""
    named: Callable[[Passage], Names]
    """What a turn names."""
    asked: AbstractSet[str]
    """The words of the names in the question."""
    said: AbstractSet[str] = frozenset()
    """Those of the names of who talks: they are in what is said to them, and tell nothing."""
    threshold: float
    """The least cosine of a turn that passes something on."""
    name: str = "relevance"

    def score(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """Cosines from -1 to 1 and what is added, shape (n,).

        Raises:
            ModelError: the query or a candidate has no vector.
        """
        near = SimilarityScorer().score(query, candidates)
        names = [without(self.named(candidate.passage), self.said) for candidate in candidates]
        words = [words_of(mine) for mine in names]
        weights, asked = _weights(words), self.asked - self.said
        scores = near + ASKED * _shares(asked, words, weights) + WORDS * self._worded(candidates) ** 2
        best = [n for n in np.argsort(-scores, kind="stable")[:EVIDENCE].tolist() if near[n] >= self.threshold]
        return np.asarray(scores + TIED * _ties(scores, best, names, words, asked, weights), dtype=np.float32)

    def _worded(self, candidates: Sequence[Candidate]) -> FloatArray:
        words = [self.worded(candidate.passage) for candidate in candidates]
        return _shares(self.wanted - self.said, words, _weights(words))


def _ties(
    scores: FloatArray, best: Sequence[int], names: Sequence[Names],
    words: Sequence[frozenset[str]], asked: AbstractSet[str], weights: Mapping[str, float],
) -> FloatArray:  # fmt: skip
    """What each turn gets of the one that it is tied to best, shape (n,)."""
    made = np.zeros(len(names), dtype=np.float32)
    for at in best:
        fresh = words[at] - asked
        for n, mine in enumerate(names):
            if n != at and fresh and not fresh.isdisjoint(words[n]):
                tie = max(_share(name, fresh, weights) for name in mine[:FIRST])
                made[n] = max(made[n], tie * scores[at])
    return made


def _weights(words: Sequence[AbstractSet[str]]) -> dict[str, float]:
    counts = Counter(word for mine in words for word in mine)
    return {word: math.log(1 + len(words) / count) for word, count in counts.items()}


def _shares(wanted: AbstractSet[str], words: Sequence[AbstractSet[str]], weights: Mapping[str, float]) -> FloatArray:
    return np.array([_share(wanted, mine, weights) for mine in words], dtype=np.float32)


def _share(wanted: AbstractSet[str], there: AbstractSet[str], weights: Mapping[str, float]) -> float:
    """How much of some words stands there, by their weights; words that no turn has weigh nothing."""
    whole = sum(weights.get(word, 0.0) for word in wanted)
    return sum(weights[word] for word in wanted & there if word in weights) / whole if whole else 0.0
