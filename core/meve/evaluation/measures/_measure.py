"""The types of measures: a name, a meaning, a source, and a value for each question or for all of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from meve.evaluation.types import Outcome, Question

JudgedQuestion: TypeAlias = tuple[Question, Outcome]
"""A question, and what a system did with it."""

Better: TypeAlias = Literal["higher", "lower", "neither"]

Contribution: TypeAlias = tuple[float, ...]
"""What one question contributes to a measure of the whole set; empty if nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A measure with a number for each question; the mean is reported. A question without a result counts as zero."""

    name: str
    """The name in tables and saved results."""
    meaning: str
    """One sentence."""
    source: str
    """The publication that defines it."""
    better: Better
    values: Callable[[Sequence[JudgedQuestion]], list[float | None]]
    """One number a question, in the order given; None where the measure doesn't apply to the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMeasure:
    """A measure that has a value only for many questions together, such as a percentile."""

    name: str
    meaning: str
    source: str
    better: Better
    contribution: Callable[[Question, Outcome], Contribution]
    """What one question contributes."""
    total: Callable[[Sequence[Contribution]], float | None]
    """The number, from all contributions; None where it doesn't apply."""
    counts: Callable[[Contribution], bool] = bool
    """Whether a question counts towards n; by default, whether it contributes anything."""

    def value(self, judged: Sequence[JudgedQuestion]) -> float | None:
        """Return the measure of these questions; None where it doesn't apply."""
        return self.total([self.contribution(question, outcome) for question, outcome in judged])

    def count(self, contributions: Sequence[Contribution]) -> int:
        """Return how many questions count towards n."""
        return sum(map(self.counts, contributions))


AnyMeasure: TypeAlias = Measure | SetMeasure


def each(one: Callable[[Question, Outcome], float | None]) -> Callable[[Sequence[JudgedQuestion]], list[float | None]]:
    """Return a measure's `values` function from a function of one question."""

    def values(judged: Sequence[JudgedQuestion]) -> list[float | None]:
        return [one(question, outcome) for question, outcome in judged]

    return values


def has_gold(question: Question) -> bool:
    """Whether the question is answerable and has gold passages."""
    return bool(question.gold) and question.answerable
