"""Makes pairs of short, plain statements about attributes: of what has one value at a time, and of what may have many.

A new value ends an older statement only of an attribute with one value, of the same person or thing, and as a fact of
today. Patterns and values (`attributes.jsonl`) were written for this project.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from meve.types import LabelledPair

FILE = Path(__file__).parent / "attributes.jsonl"
PEOPLE = (
    "My sister", "My brother", "My mother", "Dad", "My wife", "My son", "My daughter", "My colleague", "Tom", "Yuki",
    "Amira", "My flatmate", "Our neighbour", "My boss", "Grandma", "Uncle Raj", "Lena", "My best friend", "Our nanny",
    "Paul",
)  # fmt: skip
OF_OTHERS = 0.15
"""The share of pairs whose statements are both about another person."""
ELSEWHERE = 0.2
"""The share of pairs whose newer statement is about another thing, so that both hold."""
UNPUNCTUATED = 0.2
"""The share of pairs without full stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """Patterns of statements about one attribute; `{v}` is its value, and `{p}` another person."""

    about: str
    """A word for what it is about; attributes about the same may end each other."""
    values: Sequence[str]
    says: Sequence[str]
    """The user says it of himself or of a thing."""
    others: Sequence[str] = ()
    """Of another person."""
    others_changes: Sequence[str] = ()
    """A new value of another person is announced; the old one may be named as `{o}`."""
    changes: Sequence[str] = ()
    """A new value is announced; the old one may be named as `{o}`."""
    ends: Sequence[str] = ()
    """The value `{v}` has ended, and none is named instead."""
    beside: Sequence[str] = ()
    """May hold beside any value: past, plan, question, exception, detail, another thing."""
    many: bool = False
    """Whether several values may hold at a time."""


def read_attributes(file: Path = FILE) -> list[Attribute]:
    """Return the attributes of a file with one per line."""
    return [Attribute(**json.loads(line)) for line in file.read_text("utf-8").splitlines()]


def make_attribute_pairs(count: int, rng: random.Random) -> Iterator[LabelledPair]:
    """Yield pairs of statements, about four in ten of which end the older one."""
    attributes = read_attributes()
    for _ in range(count):
        attribute = rng.choice(attributes)
        first, second = rng.sample(list(attribute.values), 2)
        older = _fill(rng.choice(attribute.says), first, "", rng)
        newer, is_end = _make_newer(attribute, first, second, rng)
        if attribute.others and rng.random() < OF_OTHERS:
            older, newer, is_end = _of_others(attribute, first, second, rng)
        if rng.random() < ELSEWHERE:
            newer, is_end = _say_anything(_choose_other(attribute, attributes, rng), rng), False
        if rng.random() < UNPUNCTUATED:
            older, newer = older.rstrip("."), newer.rstrip(".")
        if older != newer:
            yield LabelledPair(query=older, passage=newer, relevant=is_end)


def _make_newer(attribute: Attribute, first: str, second: str, rng: random.Random) -> tuple[str, bool]:
    """Return a statement that is newer than one with the first value, and whether it ends that one."""
    kinds = ["new value", "beside", "beside", "same"]
    kinds += ["change"] * bool(attribute.changes) + ["end", "other end"] * bool(attribute.ends)
    kinds += ["other"] * bool(attribute.others) + ["new value"] * (not attribute.many)
    kind = rng.choice(kinds)
    if kind == "beside":
        return _fill(rng.choice(attribute.beside), rng.choice((first, second, second)), "", rng), False
    if kind == "same":
        return _fill(rng.choice(attribute.says), first, "", rng), False
    if kind == "other":
        return _fill(rng.choice(attribute.others), rng.choice((first, second)), "", rng), False
    if kind == "change":
        return _fill(rng.choice(attribute.changes), second, first, rng), True
    if kind == "end":
        return _fill(rng.choice(attribute.ends), first, "", rng), True
    if kind == "other end" and attribute.many:
        named = [text for text in attribute.ends if "{v}" in text]
        return _fill(rng.choice(named), second, "", rng), False
    return _fill(rng.choice(attribute.says), second, "", rng), not attribute.many


def _choose_other(attribute: Attribute, attributes: Sequence[Attribute], rng: random.Random) -> Attribute:
    """Return an attribute that is about another thing, in every second case one with values in common if there is."""
    others = [other for other in attributes if other.about != attribute.about]
    alike = [other for other in others if not set(other.values).isdisjoint(attribute.values)]
    return rng.choice(alike if alike and rng.random() < 0.5 else others)


def _say_anything(attribute: Attribute, rng: random.Random) -> str:
    """Return what is said of an attribute, or announces its change or its end."""
    first, second = rng.sample(list(attribute.values), 2)
    return _fill(rng.choice((*attribute.says, *attribute.changes, *attribute.ends)), second, first, rng)


def _of_others(attribute: Attribute, first: str, second: str, rng: random.Random) -> tuple[str, str, bool]:
    """Return statements about one other person or about two, and whether the newer one ends the older one."""
    one, other = rng.sample(PEOPLE, 2)
    is_same = rng.random() < 0.5
    older = rng.choice(attribute.others).format(p=one, v=first)
    patterns = (*attribute.others, *attribute.others_changes)
    newer = rng.choice(patterns).format(p=one if is_same else other, v=second, o=first)
    older, newer = (text[0].upper() + text[1:] for text in (older, newer))
    return older, newer, is_same and not attribute.many


def _fill(pattern: str, value: str, old: str, rng: random.Random) -> str:
    text = pattern.format(v=value, o=old, p=rng.choice(PEOPLE))
    return text[0].upper() + text[1:]
