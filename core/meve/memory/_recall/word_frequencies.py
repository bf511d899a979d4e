"""How often the common words of English stand in a text."""

from functools import cache

from meve.components.lexical.analyzers import stemmed_words
from meve.components.tokenizers.huggingface import load_minilm_tokens

_FIRST = 1996
"""The number of the first whole word in the shipped vocabulary; letters and signs precede it."""
_COUNTED = 2000
"""The number of common words; a rarer one changes no weight."""
_LENGTH = 30
"""The words of a text."""


@cache
def word_frequencies() -> dict[str, float]:
    """Return the share of English texts that contain a word, by stem, at most 0.5; function words are left out.

    The vocabulary of BERT's uncased tokenizer is ordered by frequency. The word of rank r is taken to be 0.1 / r of all
    words.

    Source: Zipf, Human Behavior and the Principle of Least Effort (1949).

    >>> frequencies = word_frequencies()
    >>> frequencies["year"] > frequencies["daughter"] > frequencies.get("kayak", 0.0)
    True
    """
    numbers = load_minilm_tokens().vocabulary().items()
    common = sorted((number, word) for word, number in numbers if number >= _FIRST and word.isalpha())[:_COUNTED]
    frequencies: dict[str, float] = {}
    for rank, (_, word) in enumerate(common, 1):
        for stem in stemmed_words(word):
            frequencies.setdefault(stem, min(0.1 * _LENGTH / rank, 0.5))
    return frequencies
