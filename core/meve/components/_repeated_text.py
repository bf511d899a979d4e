"""Tell whether a passage repeats a similar one or adds something to it (phase 4)."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Literal

from meve.components.lexical.analyzers import FUNCTION_WORDS, words
from meve.types import Passage

MAX_ADDED = 0.1
"""The largest share of the words of a duplicate that the other passage may lack."""
LONGEST_ADDITION = 3
"""The most content words in a row that a duplicate may add."""
SPELLED_ALIKE = 0.75
"""The least similarity of two words that count as spellings of the same, as `difflib` measures it, in [0, 1]."""
SHORT = 20
"""Texts of fewer words are compared with their titles, which may name what they are about: "Default: 3"."""
_DECISIVE = """
not no never none nobody nothing neither nor cannot without except unless only before after until since more less most
least over under above below on off in out up down may must first last next all some any each both
"""
DECISIVE_WORDS = frozenset(_DECISIVE.split())
"""Short words that change what a sentence says; a passage that adds one is no duplicate."""


class RepeatedText:
    """Relates two similar passages: `same` if the first repeats the second, else unrelated.

    A passage repeats another if its words stand in the other in the same order, but for spellings, function words and a
    tenth of further words, none of which is a number, a negation or another word that changes a statement.
    Reads each passage once; make one judge for each retrieval.
    """

    def __init__(self) -> None:
        self._words: dict[str, list[str]] = {}

    def __call__(self, one: Passage, other: Passage) -> Literal["", "same"]:
        """Return `same` if `one` adds nothing to `other`, else an empty string."""
        return "" if adds_something(self._split(one), self._split(other)) else "same"

    def _split(self, passage: Passage) -> list[str]:
        known = self._words.get(passage.id)
        if known is None:
            known = words(passage.text)
            if len(known) < SHORT:
                known = words(passage.content)
            self._words[passage.id] = known
        return known


def adds_something(mine: Sequence[str], theirs: Sequence[str]) -> bool:
    """Return whether words say something that other words, in their order, don't.

    >>> kept = "Floor 1 has eight seats and a screen.".lower().split()
    >>> adds_something("Floor 1 has eight seats and a screen.".lower().split(), kept)
    False
    >>> adds_something("Floor 2 has eight seats and a screen.".lower().split(), kept)
    True
    >>> adds_something("floor 1 has eight seats".split(), kept)
    False
    """
    if mine == theirs:
        return False
    most = int(MAX_ADDED * len(mine))
    there = set(theirs)
    new = [word for word in mine if word not in there]
    if any(_is_decisive(word) for word in new) or len(new) > 2 * most + 1:
        return True
    added = 0
    for kind, begin, end, start, stop in SequenceMatcher(None, theirs, mine, autojunk=False).get_opcodes():
        if kind not in ("insert", "replace"):
            continue
        fresh = list(mine[start:stop])
        if kind == "replace":
            fresh = _without_respelled(fresh, theirs[begin:end])
        content = [word for word in fresh if word not in FUNCTION_WORDS]
        if any(map(_is_decisive, fresh)) or len(content) > LONGEST_ADDITION or (content and kind == "replace"):
            return True
        added += len(content)
    return added > most


def _is_decisive(word: str) -> bool:
    return word in DECISIVE_WORDS or word.endswith("n't") or any(letter.isdigit() for letter in word)


def _without_respelled(fresh: Sequence[str], replaced: Sequence[str]) -> list[str]:
    """Return the words that are no spelling of one that they replace."""
    return [
        word
        for word in fresh
        if not any(SequenceMatcher(None, word, old, autojunk=False).ratio() >= SPELLED_ALIKE for old in replaced)
        or any(letter.isdigit() for letter in word)
    ]
