"""Synthetic text and vectors, for measuring speed at sizes for which there is no real corpus.

Words follow Zipf's law over 50,000 words. A passage draws half of its words from one of 2,000 topics, so vectors form
clusters as those of real text do. Each word has a fixed direction, mostly within 24 latent dimensions. A text's vector
is the sum of its words' directions, rarer words weighing more. Its intrinsic dimension (two-NN estimate, 2,500
passages) is 23; all-MiniLM-L6-v2 has 12 on HotpotQA. So approximate search is a little harder than on real text.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from meve._formulas import normalize
from meve.types import FloatArray, Similarity

VOCABULARY, TOPICS, TOPIC_WORDS = 50_000, 2_000, 150
LATENT, NOISE = 24, 0.3
_ONSETS, _VOWELS = "bcdfghklmnprstvw", "aeiou"


def spell_word(n: int) -> str:
    """Return the nth word, of two or more syllables."""
    word = ""
    n += 80
    while n:
        n, syllable = divmod(n, 80)
        word = _ONSETS[syllable % 16] + _VOWELS[syllable // 16] + word
    return word


class SyntheticLanguage:
    """A vocabulary with topics, from which texts are drawn."""

    def __init__(self, seed: int = 42, dimension: int = 384) -> None:
        rng = np.random.default_rng(seed)
        self.words = [spell_word(n) for n in range(VOCABULARY)]
        self.numbers = {word: n for n, word in enumerate(self.words)}
        share = 1.0 / (np.arange(VOCABULARY) + 2.7)
        self._share = share / share.sum()
        self._topics = rng.integers(100, VOCABULARY, size=(TOPICS, TOPIC_WORDS))
        weight = np.clip(-np.log(self._share) - 4.0, 0.1, None)
        latent = rng.standard_normal((VOCABULARY, LATENT), dtype=np.float32) / np.sqrt(np.float32(LATENT))
        directions = latent @ rng.standard_normal((LATENT, dimension), dtype=np.float32)
        directions += np.float32(NOISE) * rng.standard_normal((VOCABULARY, dimension), dtype=np.float32)
        self.directions = directions * weight[:, None].astype(np.float32)

    def draw(self, count: int, length: int, seed: int) -> npt.NDArray[np.int64]:
        """Return the word numbers of `count` texts of `length` words, shape (count, length)."""
        rng = np.random.default_rng(seed)
        common = rng.choice(VOCABULARY, size=(count, length), p=self._share)
        topic = rng.integers(0, TOPICS, size=count)
        topical = self._topics[topic[:, None], rng.integers(0, TOPIC_WORDS, size=(count, length))]
        return np.where(rng.random((count, length)) < 0.5, topical, common)

    def texts(self, drawn: npt.NDArray[np.int64]) -> list[str]:
        """Return word numbers as texts."""
        return [" ".join(self.words[n] for n in row) for row in drawn.tolist()]

    def queries(self, drawn: npt.NDArray[np.int64], count: int, length: int, seed: int) -> list[str]:
        """Return questions made of words of random passages, so that each has an answer."""
        rng = np.random.default_rng(seed)
        chosen = drawn[rng.integers(0, len(drawn), size=count)]
        picked = rng.permuted(chosen, axis=1)[:, :length]
        return self.texts(picked)


class DirectionEmbedder:
    """An embedder that sums the fixed directions of a text's words."""

    name = "word-directions"
    similarity: Similarity = "cosine"

    def __init__(self, language: SyntheticLanguage) -> None:
        self._language = language
        self.dimension = language.directions.shape[1]

    def embed_query(self, text: str) -> FloatArray:
        """Return the query's vector, shape (d,)."""
        vector: FloatArray = self.embed_passages([text])[0]
        return vector

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return the passages' vectors, shape (n, d)."""
        known = self._language.numbers
        rows = [[known[w] for w in text.split() if w in known] for text in texts]
        return normalize(np.stack([self._language.directions[row].sum(axis=0) for row in rows]))
