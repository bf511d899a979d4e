"""Facts of synthetic users: a sentence each, with the question that it answers, its topic, and the kind of its value.

Every sentence is made from a pattern, a subject and a value, all drawn with a seed. Patterns are few and subjects many,
so that each fact has similar neighbours that a store must tell apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal, Self, TypeAlias

ValueKind: TypeAlias = Literal["number", "day", "name", "denial", "word"]
"""The kind of value that differs between versions of a fact; the contradiction rules don't cover `word`."""
VALUE_KINDS: tuple[ValueKind, ...] = ("number", "day", "name", "denial", "word")

_PLANTS = "basil fennel lavender quince rosemary saffron tarragon thyme walnut wisteria".split()  # noqa: SIM905 - ten words, one line
_PLACES = ["Bergen", "Calais", "Dover", "Elba", "Genoa", "Kiel", "Naxos", "Oslo", "Palermo", "Split"]
_PROJECTS = "archive bakery bridge harbour library lighthouse museum orchard tramway vineyard".split()  # noqa: SIM905 - ten words, one line
_PEOPLE = ["Ana", "Boris", "Clara", "Dmitri", "Elsa", "Farid", "Greta", "Hugo", "Irma", "Jonas"]
_THINGS = "boiler camera dishwasher fridge heater lawnmower piano printer scooter toaster".split()  # noqa: SIM905 - ten words, one line
_HOTELS = "Aurora Bellevue Corona Delfin Europa Fortuna Gloria Imperial Metropol Panorama".split()  # noqa: SIM905 - ten words, one line
_LEADERS = "Kowalski Lindqvist Marchetti Novak Okafor Petrov Quiroga Rasmussen Sato Tanaka".split()  # noqa: SIM905 - ten words, one line
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
_MONTHS = ["January", "February", "March", "April", "June", "July", "August", "October", "November", "December"]
_TIMES = [f"{hour}:{minutes}" for hour in range(6, 12) for minutes in ("15", "45")]
_SOILS = ["chalky", "clayey", "loamy", "peaty", "sandy", "silty", "stony"]
_FOODS = ["almonds", "celery", "cinnamon", "lupins", "mustard", "peanuts", "sesame", "shellfish", "soya"]


@dataclass(frozen=True, slots=True)
class FactPattern:
    """A pattern of facts, whose texts contain {s} for the subject and {v} for the value."""

    topic: str
    value_kind: ValueKind
    text: str
    rewording: str
    """The text in other words, as a correction says it."""
    question: str
    subjects: Sequence[str]
    values: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserFact:
    """A pattern with a subject and a value, known to one user."""

    id: str
    user: str
    pattern: FactPattern
    subject: str
    value: str
    reworded: bool = False

    @property
    def text(self) -> str:
        """The sentence that is remembered."""
        pattern = self.pattern.rewording if self.reworded else self.pattern.text
        return pattern.format(s=self.subject, v=self.value)

    @property
    def question(self) -> str:
        """The question that the sentence answers."""
        return self.pattern.question.format(s=self.subject)

    @property
    def topic(self) -> str:
        """The tag."""
        return self.pattern.topic

    @property
    def kind(self) -> str:
        """What differs from the fact's other version: the kind of the value, and perhaps the wording."""
        return f"{self.pattern.value_kind}, {'other words' if self.reworded else 'same words'}"

    @property
    def kind_order(self) -> tuple[int, bool]:
        """The place of the kind in a table."""
        return VALUE_KINDS.index(self.pattern.value_kind), self.reworded

    def with_other_value(self, rng: Random, id: str, *, exclude: Sequence[str] = (), reworded: bool = False) -> Self:
        """Return the fact with another value, none of `exclude` if there are enough."""
        free = [v for v in self.pattern.values if v != self.value and v not in exclude]
        others = free or [v for v in self.pattern.values if v != self.value]
        return replace(self, id=id, value=rng.choice(others), reworded=reworded)


PATTERNS = (
    FactPattern(
        "garden", "number", "The {s} needs {v} hours of sun a day.", "It is {v} hours of sun a day that the {s} wants.",
        "How many hours of sun does the {s} need?", _PLANTS, [str(n) for n in range(2, 11)],
    ),
    FactPattern(
        "garden", "word", "The {s} grows in {v} soil.", "We moved the {s}: now it grows in {v} soil.",
        "What soil does the {s} grow in?", _PLANTS, _SOILS,
    ),
    FactPattern(
        "travel", "number", "The ferry to {s} leaves at {v}.", "They told me that the ferry to {s} goes at {v} now.",
        "When does the ferry to {s} leave?", _PLACES, _TIMES,
    ),
    FactPattern(
        "travel", "name", "In {s} we stay at the hotel {v}.", "We changed the hotel in {s}: we stay at the {v}.",
        "Which hotel do we stay at in {s}?", _PLACES, _HOTELS,
    ),
    FactPattern(
        "work", "day", "The review of the {s} project is on {v}.", "They moved the review of the {s} project to {v}.",
        "On which day is the review of the {s} project?", _PROJECTS, _DAYS,
    ),
    FactPattern(
        "work", "name", "The {s} project is led by {v}.", "Since last week the leader of the {s} project is {v}.",
        "Who leads the {s} project?", _PROJECTS, _LEADERS,
    ),
    FactPattern(
        "family", "day", "My cousin {s} was born in {v}.", "I was wrong: the birthday of my cousin {s} is in {v}.",
        "In which month was my cousin {s} born?", _PEOPLE, _MONTHS,
    ),
    FactPattern(
        "family", "word", "My cousin {s} is allergic to {v}.", "The doctor says that my cousin {s} is allergic to {v}.",
        "What is my cousin {s} allergic to?", _PEOPLE, _FOODS,
    ),
    FactPattern(
        "family", "denial", "My cousin {s} {v} meat.", "At table my cousin {s} {v} meat these days.",
        "Does my cousin {s} eat meat?", _PEOPLE, ["eats", "doesn't eat"],
    ),
    FactPattern(
        "home", "number", "The guarantee of the {s} lasts {v} years.", "I found {v} years of guarantee for the {s}.",
        "How many years does the guarantee of the {s} last?", _THINGS, [str(n) for n in range(2, 11)],
    ),
    FactPattern(
        "home", "denial", "The {s} {v} as it should.", "I tried it again: the {s} {v} as it should.",
        "Does the {s} run as it should?", _THINGS, ["runs", "doesn't run"],
    ),
    FactPattern(
        "home", "day", "The {s} was serviced in {v}.", "The bill says {v} for the service of the {s}.",
        "In which month was the {s} serviced?", _THINGS, _MONTHS,
    ),
)  # fmt: skip
"""Twelve patterns over five topics."""
TOPICS = tuple(dict.fromkeys(pattern.topic for pattern in PATTERNS))
MAX_FACTS = sum(len(pattern.subjects) for pattern in PATTERNS)
"""The most facts of one user: each pattern with each of its subjects."""


def make_facts(rng: Random, count: int, user: str) -> list[UserFact]:
    """Return one user's facts with the ids `f000`, `f001` and so on, each with another question.

    Args:
        rng: the random generator.
        count: from 1 to `MAX_FACTS`.
        user: the user's id.
    """
    combinations = [(pattern, subject) for pattern in PATTERNS for subject in pattern.subjects]
    return [
        UserFact(id=f"f{n:03}", user=user, pattern=pattern, subject=subject, value=rng.choice(list(pattern.values)))
        for n, (pattern, subject) in enumerate(rng.sample(combinations, count))
    ]
