"""What a measure is: a name, a meaning, and a value for each question, or one for all of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from meve.evaluation.outcome import Outcome
from meve.evaluation.types import Question

Judged: TypeAlias = tuple[Question, Outcome]
"""A question, and what a system did with it."""

Better: TypeAlias = Literal["higher", "lower", "neither"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A number for each question, whose mean is reported. A question without a result counts, as zero."""

    name: str
    """As tables and files call it."""
    meaning: str
    """In one sentence."""
    better: Better
    values: Callable[[Sequence[Judged]], list[float | None]]
    """One number a question, in the order given; None where the measure doesn't apply, whatever the system did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMeasure:
    """A number that only many questions together have."""

    name: str
    meaning: str
    better: Better
    value: Callable[[Sequence[Judged]], float | None]
    """The number; None where it doesn't apply, or nothing is known."""


AnyMeasure: TypeAlias = Measure | SetMeasure


def each(one: Callable[[Question, Outcome], float | None]) -> Callable[[Sequence[Judged]], list[float | None]]:
    """A measure's `values` from a function of one question."""

    def values(judged: Sequence[Judged]) -> list[float | None]:
        return [one(question, outcome) for question, outcome in judged]

    return values
