"""Puts what a user told last of an allergy or an illness above what was told of it before."""

from collections.abc import Sequence

import numpy as np

from meve.components.lexical.analyzers import stem
from meve.memory._contradiction.claims import Claim, parse_claim
from meve.memory._contradiction.lexicon import HEALTH
from meve.memory.records import MemoryRecord
from meve.types import FloatArray

_WORDS = tuple(word for word in HEALTH if len(word) > 4)  # "ms" is part of many words
_LONGEST = 500
"""The most characters of a statement that is compared."""
_ALLERGIES = frozenset(map(stem, ("allergic", "allergy")))


def put_latest_first(records: Sequence[MemoryRecord], scores: FloatArray) -> FloatArray:
    """Return scores in which no memory of an illness is above a later one of the same illness and person.

    "I'm allergic to nuts" stands below "I did a test and I'm not allergic to nuts", and is still shown.

    Args:
        records: the memories.
        scores: their scores, shape (n,).
    """
    texts = [record.text.lower() if len(record.text) <= _LONGEST else "" for record in records]
    told = [n for n, text in enumerate(texts) if any(word in text for word in _WORDS)]
    if len(told) < 2:
        return scores
    told.sort(key=lambda n: records[n].created_at)
    claims = {n: parse_claim(records[n].text) for n in told}
    scores = scores.copy()
    for place, later in enumerate(told):
        below = [scores[n] for n in told[:place] if _are_of_one_illness(claims[n], claims[later])]
        if below and max(below) >= scores[later]:
            scores[later] = np.nextafter(max(below), np.float32(np.inf))
    return scores


def _are_of_one_illness(one: Claim, other: Claim) -> bool:
    """Return whether two claims share an illness and, of allergies, what else they tell, and are about one person."""
    mine, theirs = (frozenset(map(stem, claim.illnesses)) for claim in (one, other))
    shared = one.content & other.content - mine - theirs
    are_allergies = not (mine.isdisjoint(_ALLERGIES) or theirs.isdisjoint(_ALLERGIES))
    is_same = bool(shared) if are_allergies else bool(mine & theirs)
    return is_same and one.people == other.people and one.subject_names == other.subject_names
