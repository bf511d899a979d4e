"""What a measure is: a name, a meaning, a source, and a value for each question, or one for all of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from meve.evaluation.outcome import Outcome
from meve.evaluation.types import Question

Judged: TypeAlias = tuple[Question, Outcome]
"""A question, and what a system did with it."""

Better: TypeAlias = Literal["higher", "lower", "neither"]

Part: TypeAlias = tuple[float, ...]
"""What one question adds to a number that only many together have; empty where it adds nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A number for each question, whose mean is reported. A question without a result counts, as zero."""

    name: str
    """As tables and files call it."""
    meaning: str
    """In one sentence."""
    source: str
    """Who defined it, and where."""
    better: Better
    values: Callable[[Sequence[Judged]], list[float | None]]
    """One number a question, in the order given; None where the measure doesn't apply, whatever the system did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMeasure:
    """A number that only many questions together have."""

    name: str
    meaning: str
    source: str
    better: Better
    part: Callable[[Question, Outcome], Part]
    """What a question adds."""
    total: Callable[[Sequence[Part]], float | None]
    """The number, from what each question adds; None where it doesn't apply, or nothing is known."""
    bears: Callable[[Part], bool] = bool
    """Whether a question has a say in it: one that adds nothing hasn't."""

    def value(self, judged: Sequence[Judged]) -> float | None:
        """The number of these questions."""
        return self.total([self.part(question, outcome) for question, outcome in judged])

    def count(self, parts: Sequence[Part]) -> int:
        """How many questions have a say in it."""
        return sum(map(self.bears, parts))


AnyMeasure: TypeAlias = Measure | SetMeasure


def each(one: Callable[[Question, Outcome], float | None]) -> Callable[[Sequence[Judged]], list[float | None]]:
    """A measure's `values` from a function of one question."""

    def values(judged: Sequence[Judged]) -> list[float | None]:
        return [one(question, outcome) for question, outcome in judged]

    return values


def has_gold(question: Question) -> bool:
    """Whether gold passages make an answer. Where a set's passages hold half of what is needed, they don't."""
    return bool(question.gold) and question.answerable
