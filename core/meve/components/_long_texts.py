"""Reads texts that exceed a model's window: a long question in stretches, a long passage by its likeliest pieces."""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from meve._pasted_text import holds_pasted_text
from meve._warn_once import warn_once
from meve.components._text_splitter import TextPiece, TextSplitter
from meve.components.lexical.analyzers import content_words
from meve.errors import QueryError
from meve.types import FloatArray

LONGEST_QUERY = 4_096
"""The most tokens of a question, enough for a stack trace or a long letter."""
MOST_READINGS = 16
"""The most pairs of a stretch of the question and a piece of a passage that are read."""

MOST_ASKED = 3
"""The most sentences of a long question that are read by themselves."""
_QUESTION = re.compile(r"(?<![^\n.!?？。])[^\n.!?？。]++[?？]")


def split_query(splitter: TextSplitter, query: str, limit: int, *, name: str, overlap: int = 0) -> list[TextPiece]:
    """Return the stretches in which a model reads a question; one if it fits. Warns once of the first that doesn't.

    Args:
        splitter: the model's tokenizer.
        query: the question.
        limit: the most tokens of a stretch, without special ones.
        name: the model's name in messages.
        overlap: about how many tokens a stretch repeats from the one before.

    Raises:
        QueryError: the question isn't text, or has more than 4,096 tokens.
    """
    if not isinstance(query, str):
        raise QueryError(f"the query must be text, got {type(query).__name__}")
    tokens = splitter.count(query)
    if tokens > LONGEST_QUERY:
        raise QueryError(
            f"the query has {tokens} tokens, but {name} reads at most {LONGEST_QUERY}: ask for what is needed, and "
            "give long texts as passages"
        )
    if tokens <= limit:
        return [TextPiece(text=query, tokens=max(tokens, 1))]
    warn_once(
        "long query",
        "a question of %d tokens exceeds the %d that %s takes at once: it is read in stretches, which takes longer and "
        "finds less; ask for what is needed in a sentence or two",
        tokens, limit, name,
    )  # fmt: skip
    return splitter.split(query, limit, overlap)


def find_asked(splitter: TextSplitter, query: str, limit: int) -> list[TextPiece]:
    """Return what a question asks for that is too long or holds a pasted text; nothing for other questions.

    That is its last three sentences with a question mark, or else its first and last line.

    Beside a stack trace or a letter, a model overlooks the question; so it is read by itself too.

    Args:
        splitter: the model's tokenizer.
        query: the question.
        limit: the most tokens of a part; longer ones are left out.
    """
    if not holds_pasted_text(query) and splitter.count(query) <= limit:
        return []
    parts = [part.strip() for part in _QUESTION.findall(query) if len(part.split()) > 1][-MOST_ASKED:]
    lines = [line.strip() for line in query.splitlines() if line.strip()]
    parts = list(dict.fromkeys(parts or [*lines[:1], *lines[-1:]]))
    counts = splitter.count_many(parts)
    return [TextPiece(text=part, tokens=n) for part, n in zip(parts, counts, strict=True) if 0 < n <= limit]


def join_query(whole: FloatArray, asked: FloatArray) -> FloatArray:
    """Return the vector of a long question, shape (d,): half from its stretches, half from what it asks for.

    Args:
        whole: the mean vector of its stretches, shape (d,).
        asked: the vectors of what it asks for, shape (n, d); may be empty.
    """
    return np.asarray((whole + asked.mean(axis=0)) / 2 if len(asked) else whole, dtype=np.float32)


def choose_readings(stretches: Sequence[str], pieces: Sequence[str]) -> list[tuple[int, int]]:
    """Return the pairs of a piece and a stretch to read, by their indices, in order of the pieces.

    All of them, if they are few. Else those that share the most words, where a word in few pieces weighs more; the
    first piece, which introduces the text, with the first stretch in any case.
    """
    pairs = [(p, s) for p in range(len(pieces)) for s in range(len(stretches))]
    if len(pairs) <= MOST_READINGS:
        return pairs
    asked = [set(content_words(stretch)) for stretch in stretches]
    every = set().union(*asked)
    found = [every & set(content_words(piece)) for piece in pieces]
    counts = Counter(word for words in found for word in words)
    weights = {word: float(np.log1p(len(pieces) / n)) for word, n in counts.items()}
    shared = {(p, s): sum(weights[word] for word in found[p] & asked[s]) for p, s in pairs}
    return sorted(sorted(pairs, key=lambda pair: (pair != (0, 0), -shared[pair]))[:MOST_READINGS])
