"""Split ASCII texts into words and punctuation marks as BERT's tokenizers do, to find the tokens of a word once."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

_MOST_KNOWN = 50_000
"""The most words whose tokens are kept."""
_SHORT = 20
"""The most characters of such a word."""
_PIECE = re.compile(r"[0-9a-z]+|[^ \t\r\n]")
_WHOLE = ["BertNormalizer", "BertPreTokenizer", "WordPiece"]


def find_others(settings: Mapping[str, Any]) -> re.Pattern[str] | None:
    """Return a pattern of what a text must not hold to be split in lower case; None if no text may be.

    Args:
        settings: those of a `tokenizers.Tokenizer`.
    """
    parts = [settings[name] and settings[name]["type"] for name in ("normalizer", "pre_tokenizer", "model")]
    if parts != _WHOLE or not settings["normalizer"]["lowercase"]:
        return None
    # of the special tokens alone, since four letters beyond ASCII, such as İ, are variants of ASCII letters for `re`
    special = [f"(?i:{re.escape(token['content'])})" for token in settings["added_tokens"]]
    return re.compile("|".join([r"[^\t\r\n -~]", *special]))


class WordTokens:
    """Tokenizes ASCII texts word by word, and keeps the tokens of short words. One thread at a time may use it.

    Args:
        tokenize: returns the tokens of each text.
        others: what `find_others` returns for the tokenizer; texts with such a part are tokenized as a whole.
    """

    def __init__(self, tokenize: Callable[[Sequence[str]], list[list[int]]], others: re.Pattern[str]) -> None:
        self._tokenize, self._others = tokenize, others
        self._known: dict[str, list[int]] = {}

    def __call__(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each text."""
        split = [[] if self._others.search(text) else _PIECE.findall(text.lower()) for text in sentences]
        others = [text for text, pieces in zip(sentences, split, strict=True) if not pieces]
        known = self._known
        new = list(set[str]().union(*split).difference(known))
        tokens = self._tokenize([*new, *others]) if new or others else []
        known.update(zip(new, tokens, strict=False))
        whole = iter(tokens[len(new) :])
        found = [[*chain.from_iterable(map(known.__getitem__, pieces))] if pieces else next(whole) for pieces in split]
        for word in new:
            if len(word) > _SHORT:
                del known[word]
        if len(known) > _MOST_KNOWN:
            known.clear()
        return found


def tokenize_by_words(model: Any) -> None:  # noqa: ANN401 - model2vec is imported on use
    """Let a `model2vec.StaticModel` tokenize ASCII texts word by word, where its tokenizer allows that."""
    others = find_others(json.loads(model.tokenizer.to_str()))
    if others:
        model.tokenize = WordTokens(model.tokenize, others)
