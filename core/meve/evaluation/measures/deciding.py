"""What measures of a system's decision to answer share. One that doesn't say answers whenever it has text.

One that raised is wrong either way: it neither answers what can be answered nor abstains from the rest.
"""

from collections.abc import Callable, Sequence

from meve.evaluation.measures.base import Part
from meve.evaluation.outcome import Outcome
from meve.evaluation.types import Question

RAISED = -1.0


def decision(question: Question, outcome: Outcome) -> Part:
    """Whether it can be answered, and whether an application that follows the system would: 1, 0 or `RAISED`."""
    said = outcome.handed.sufficient
    answers = bool(outcome.ids) if said is None else said
    return float(question.answerable), RAISED if outcome.error else float(answers)


def precision(answering: bool) -> Callable[[Sequence[Part]], float | None]:
    """Of those that it would answer (or not), the share that is answerable (or isn't)."""

    def total(parts: Sequence[Part]) -> float | None:
        base = [answerable for answerable, answers in parts if answers == answering]
        return _share([answerable == answering for answerable in base]) if _both(parts) else None

    return total


def recall(answering: bool) -> Callable[[Sequence[Part]], float | None]:
    """Of those that are answerable (or aren't), the share that it would answer (or not)."""

    def total(parts: Sequence[Part]) -> float | None:
        base = [answers for answerable, answers in parts if answerable == answering]
        return _share([answers == answering for answers in base]) if _both(parts) else None

    return total


def decided(answering: bool) -> Callable[[Part], bool]:
    """Whether a question is one that the system would answer (or not): those have a say in precision."""
    return lambda part: part[1] == answering


def asked(answering: bool) -> Callable[[Part], bool]:
    """Whether a question is answerable (or isn't): those have a say in recall."""
    return lambda part: part[0] == answering


def _both(parts: Sequence[Part]) -> bool:
    """Whether answerable and unanswerable questions are among them."""
    return len({answerable for answerable, _ in parts}) == 2


def _share(right: Sequence[bool]) -> float:
    return sum(right) / len(right) if right else 0.0
