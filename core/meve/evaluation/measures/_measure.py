"""The types of measures: a name, a meaning, a source, and a value for each question or for all of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from meve.evaluation.types import Question, QuestionOutcome

JudgedQuestion: TypeAlias = tuple[Question, QuestionOutcome]
"""A question and a system's outcome on it."""

Better: TypeAlias = Literal["higher", "lower", "neither"]

Contribution: TypeAlias = tuple[float, ...]
"""The contribution of one question to a measure of the whole set; empty if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Description:
    name: str
    """The name in tables and saved results."""
    meaning: str
    """The meaning, in one sentence."""
    source: str
    """The publication that defines it."""
    better: Better = "higher"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure(_Description):
    """A measure with a number for each question; the mean is reported. A question without a result counts as zero."""

    values: Callable[[Sequence[JudgedQuestion]], list[float | None]]
    """Returns one number per question, in the order given; None where the measure doesn't apply to the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMeasure(_Description):
    """A measure that has a value only for many questions together, such as a percentile."""

    contribution: Callable[[Question, QuestionOutcome], Contribution]
    """Returns the contribution of one question."""
    total: Callable[[Sequence[Contribution]], float | None]
    """Returns the value from all contributions; None where the measure doesn't apply."""
    counts: Callable[[Contribution], bool] = bool
    """Returns whether a question counts towards n; by default, whether its contribution isn't empty."""

    def count(self, contributions: Sequence[Contribution]) -> int:
        """Return how many questions count towards n."""
        return sum(map(self.counts, contributions))


AnyMeasure: TypeAlias = Measure | SetMeasure


def each(
    one: Callable[[Question, QuestionOutcome], float], applies: Callable[[Question], bool] = lambda _: True
) -> Callable[[Sequence[JudgedQuestion]], list[float | None]]:
    """Return a measure's `values` from a function of one question, and one that says to which questions it applies."""
    return lambda judged: [one(question, outcome) if applies(question) else None for question, outcome in judged]


def has_gold(question: Question) -> bool:
    """Return whether the question is answerable and has gold passages."""
    return bool(question.gold) and question.answerable
