"""Tell whether a passage repeats a similar one or adds something to it (phase 4)."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from meve.components.lexical.analyzers import FUNCTION_WORDS, words
from meve.types import Passage

ENDS = (".", "!", "?")
"""The marks at the end of a sentence."""
WORDS_PER_GAP = 10
"""A duplicate may leave out words of the other passage at one place for each of so many words of its own."""
NEIGHBOURS = 2
"""The number of left-out words at either side of a gap that must not change what the passage says."""
SHORT = 20
"""Texts of fewer words are compared with their titles, which may name what they are about: "Default: 3"."""
_DECISIVE = """
not no never none nobody nothing neither nor cannot without except unless only before after until since more less most
least over under above below on off in out up down may must first last next all some any each both or and
nicht kein keine keinen keiner ohne nie pas jamais non sin nunca 不 没 無 无 未 非 勿 莫
"""
DECISIVE_WORDS = frozenset(_DECISIVE.split())
"""Short words that change what a sentence says; they count although most of them are function words."""
_SYMBOL = re.compile(r"!=|[<>=≤≥≠$€£¥%]+|(?<!\w)[-+](?=\d)")
"""Comparisons, currencies, per cent and signs, which count as words."""


class RepeatedText:
    """Relates two similar passages: `same` if the first repeats the second, else unrelated.

    A passage repeats another if its content words, numbers and negations stand in the other one in the same order, with
    few of the other's left out between them, or if all of its sentences stand in the other one as they are. A single
    word of its own makes it another passage: a missed duplicate costs tokens, a wrong one loses a fact. Splits each
    passage once; make one judge for each retrieval.
    """

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str], tuple[str, list[str]]] = {}

    def __call__(self, one: Passage, other: Passage) -> Literal["", "same"]:
        """Return `same` if `one` adds nothing to `other`, else an empty string."""
        (mine, own_words), (theirs, their_words) = self._read(one), self._read(other)
        repeats = bool(own_words) and not adds_something(own_words, their_words)
        return "same" if mine == theirs or repeats or _is_within(mine, theirs) else ""

    def _read(self, passage: Passage) -> tuple[str, list[str]]:
        """Return the text that counts and its words, but for function words that change nothing."""
        key = passage.id, passage.text  # a passage may have been shortened
        known = self._texts.get(key)
        if known is None:
            text, split = passage.text, _split(passage.text)
            if len(split) < SHORT:
                text, split = passage.content, _split(passage.content)
            known = self._texts[key] = text, [w for w in split if w not in FUNCTION_WORDS or _is_decisive(w)]
        return known


def _is_within(mine: str, theirs: str) -> bool:
    """Return whether whole sentences of a text, in any case and layout, are mine."""
    part, whole = (" ".join(text.casefold().split()) for text in (mine, theirs))
    at = whole.find(part)
    return at >= 0 and part.endswith(ENDS) and (at == 0 or whole[: at - 1].endswith(ENDS))


def adds_something(mine: Sequence[str], theirs: Sequence[str]) -> bool:
    """Return whether words say something that other words, in their order, don't. Takes linear time.

    >>> kept = "floor 1 has eight seats screen".split()
    >>> adds_something("floor 1 has eight seats".split(), kept)
    False
    >>> adds_something("floor 2 has eight seats".split(), kept)
    True
    """
    if len(mine) > len(theirs) or not set(mine) <= set(theirs):
        return True
    gaps = 0
    for n, gap in enumerate(_gaps(mine, theirs)):
        if gap is None or any(word in DECISIVE_WORDS or word.endswith("n't") for word in gap):
            return True
        gaps += bool(gap) and 0 < n < len(mine)
    return gaps * WORDS_PER_GAP > len(mine)


def _split(text: str) -> list[str]:
    return words(_SYMBOL.sub(lambda sign: f" sign{sign[0].encode().hex()} ", text))


def _gaps(mine: Sequence[str], theirs: Sequence[str]) -> Iterator[Sequence[str] | None]:
    """Yield the ends of what is left out before each of my words and after the last; None if a word isn't found."""
    at = 0
    for word in mine:
        start = at
        while at < len(theirs) and theirs[at] != word:
            at += 1
        if at == len(theirs):
            yield None
            return
        yield _ends(theirs, start, at)
        at += 1
    yield _ends(theirs, at, len(theirs))


def _ends(theirs: Sequence[str], start: int, stop: int) -> Sequence[str]:
    return [*theirs[start : min(start + NEIGHBOURS, stop)], *theirs[max(start, stop - NEIGHBOURS) : stop]]


def _is_decisive(word: str) -> bool:
    return word in DECISIVE_WORDS or word.endswith("n't") or any(letter.isdigit() for letter in word)
