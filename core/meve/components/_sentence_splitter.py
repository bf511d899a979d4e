"""Splits a text into sentences."""

import re
from collections.abc import Iterable, Iterator

from meve._tables import split_tables
from meve.errors import ModelError, wrap_errors

_LONGEST = 4_000
"""The most characters that are split at once."""
_NUMBER = re.compile(r"\d{1,3}(?:\.\d{1,3}){0,3}\.")
"""The number of a section or an item, such as `4.` or `2.1.`."""
_OPEN_LABEL = re.compile(r"\*\*[^\s*][^*\n]{0,80}")
"""The beginning of a bold label in Markdown whose end was split off, such as `**Staff.` of `**Staff.** We need two.`"""
_ENDS = ("\n\n", "\n", ". ", "? ", "! ", " ")
"""The separators after which a text may be cut, the best first."""


def split_sentences(text: str) -> list[str]:
    """Return the sentences of an English text, in order; only white space between them and lone surrogates are dropped.

    Raises:
        ModelError: the text can't be split.

    >>> split_sentences("Dr. Smith went home. It rained.")
    ['Dr. Smith went home.', 'It rained.']
    >>> split_sentences("4. Rent is due monthly. It rises.")
    ['4. Rent is due monthly.', 'It rises.']
    >>> split_sentences("**Staff.** We need two. They open up.")
    ['**Staff.** We need two.', 'They open up.']
    """
    import sentencex

    with wrap_errors(ModelError, "splitting a text into sentences"):
        whole = text.encode(errors="ignore").decode()
        pieces = (piece for part in _cut(whole) for piece in sentencex.segment("en", part))
        return [sentence for piece in _join_labels(pieces) if (sentence := piece.strip())]


def _join_labels(pieces: Iterable[str]) -> Iterator[str]:
    """Yield the pieces of a text; the number of a section or an item, or a bold label, with what follows it."""
    label = ""
    for piece in pieces:
        if _NUMBER.fullmatch(piece.strip()) or _OPEN_LABEL.fullmatch(piece.strip()):
            label += piece
        else:
            yield label + piece
            label = ""
    yield label


def _cut(text: str) -> Iterator[str]:
    """Yield parts of a text that are short enough: `sentencex` takes quadratic time for a run of backticks or quotes.

    A part ends with a paragraph, or else a line, a sentence, or a word.
    """
    at = 0
    while len(text) - at > _LONGEST:
        window = text[at : at + _LONGEST]
        end = next((n + len(mark) for mark in _ENDS if (n := window.rfind(mark)) > 0), _LONGEST)
        yield window[:end]
        at += end
    yield text[at:]


def split_passage(text: str) -> list[str]:
    """Return the sentences of a passage; a row of a table counts as one, and so does its header with the rule below.

    Raises:
        ModelError: the text can't be split.
    """
    parts = split_tables(text)
    return [one for part, is_table in parts for one in ([part.strip()] if is_table else split_sentences(part))]
