"""Knows words for groups of people and animals, whose members are told by other words: `family` by `husband`."""

import re
from collections.abc import Iterable
from types import MappingProxyType

from meve.routing._base_forms import base_stem, base_stems

_PARENTS = "mother father mom mum dad"
_CHILDREN = "son daughter"
_SIBLINGS = "brother sister"
_KIN = f"""
{_PARENTS} {_CHILDREN} {_SIBLINGS} parent child kid sibling husband wife spouse partner aunt uncle cousin nephew niece
grandmother grandfather grandma grandpa granddaughter grandson stepmother stepfather
"""
_PETS = "dog cat puppy kitten rabbit hamster parrot budgie tortoise goldfish"
_ILLNESSES = """
flu influenza bronchitis migraine pneumonia covid angina tonsillitis measles chickenpox shingles asthma diabetes
hepatitis sinusitis appendicitis gastritis anaemia anemia depression
"""
_LISTED = {
    "family": _KIN, "relative": _KIN, "sibling": _SIBLINGS, "parent": _PARENTS, "child": _CHILDREN, "kid": _CHILDREN,
    "pet": _PETS, "animal": f"{_PETS} horse pony cow goat sheep hen chicken",
    "illness": _ILLNESSES, "disease": _ILLNESSES, "sickness": _ILLNESSES, "ailment": _ILLNESSES,
    "vehicle": "car bike bicycle motorbike motorcycle scooter van truck lorry moped",
    "instrument": "guitar piano violin cello flute trumpet drum saxophone clarinet ukulele viola harp accordion",
}  # fmt: skip
_MEMBERS = {base_stem(group): frozenset(map(base_stem, members.split())) for group, members in _LISTED.items()}
_GROUPS = MappingProxyType({
    member: frozenset(group for group, members in _MEMBERS.items() if member in members)
    for member in frozenset().union(*_MEMBERS.values())
})  # fmt: skip
"""The stems of the groups that each member belongs to."""
_OPEN = re.compile(
    r"\b(?:friends|people (?:close to|around|(?:that |whom |who )?(?:i|we) know)|acquaintances|hobbies|interests"
    r"|sports?|pastimes|activities|trips|journeys|vacations|countries|cities|towns|places)\b",
    re.IGNORECASE,
)


def stems_with_groups(text: str) -> frozenset[str]:
    """Return the stems of the words of a text, and of the groups to which they belong.

    >>> sorted(stems_with_groups("My brother sings."))
    ['brother', 'famili', 'my', 'relat', 'sibl', 'sing']
    """
    return add_groups(base_stems(text))


def add_groups(stems: Iterable[str]) -> frozenset[str]:
    """Return stems and those of their groups."""
    own = frozenset(stems)
    return own.union(*(_GROUPS[stem] for stem in own & _GROUPS.keys()))


def asks_for_open_group(question: str) -> bool:
    """Return whether a question asks for members of a group that any word may name, as of friends, hobbies and cities.

    >>> asks_for_open_group("Who are my friends?"), asks_for_open_group("Who is my boss?")
    (True, False)
    """
    return _OPEN.search(question) is not None
