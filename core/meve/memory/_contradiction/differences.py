"""Tells statements about different persons, things, directions or times apart, by rules for English."""

from collections.abc import Iterable

from meve.memory._contradiction import lexicon
from meve.memory._contradiction.claims import Claim


def concern_different_things(one: Claim, other: Claim) -> bool:
    """Return whether the statements are about different persons, things or directions, or swap two roles."""
    mine, theirs = one.word_set, other.word_set
    return (
        bool(one.people and other.people and one.people.isdisjoint(other.people))
        or not (one.subject_people <= other.people and other.subject_people <= one.people)
        or bool(one.owners - theirs and other.owners - mine)
        or lexicon.QUALIFIERS.isdisjoint(mine) != lexicon.QUALIFIERS.isdisjoint(theirs)
        or bool(one.subject_names - theirs and other.subject_names - mine)
        or name_contrasts(one, other)
        or _swap_roles(one, other)
        or bool(one.subject_numbers and other.subject_numbers and one.subject_numbers != other.subject_numbers)
        or _is_narrower(one, other)
        or _is_narrower(other, one)
        or any(one.roles[word] != other.roles[word] for word in one.roles.keys() & other.roles.keys())
    )


def name_contrasts(one: Claim, other: Claim) -> bool:
    """Return whether the statements name things or directions of which each excludes the other: left and right."""
    return _have_contrast(lexicon.CONTRASTS, one, other)


def have_different_times(one: Claim, other: Claim) -> bool:
    """Return whether the statements name different times of the day."""
    return _have_contrast(lexicon.TIMES_OF_DAY, one, other)


def _have_contrast(groups: Iterable[frozenset[str]], one: Claim, other: Claim) -> bool:
    mine, theirs = one.contrasts, other.contrasts
    return mine != theirs and any((group & mine) - theirs and (group & theirs) - mine for group in groups)


def _is_narrower(one: Claim, other: Claim) -> bool:
    """Return whether the subject of one statement has all topics of the other's and more, besides names."""
    return bool(other.bare_head) and other.bare_head < one.bare_head


def _swap_roles(one: Claim, other: Claim) -> bool:
    """Return whether the subject of each is an object of the other, or the words are the same in another order."""
    if one.word_set == other.word_set and one.words != other.words and sorted(one.words) == sorted(other.words):
        return True
    a, b = one.actors, other.actors
    return bool(a and b) and a.isdisjoint(b) and a <= other.objects and b <= one.objects
