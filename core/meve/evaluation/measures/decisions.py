"""Measures of a system's decision to answer or to abstain.

A system that reports no sufficiency answers whenever it returns text. A system that raised is wrong either way.
"""

from collections.abc import Callable, Sequence

from meve.evaluation.measures._measure import Contribution, SetMeasure
from meve.evaluation.types import Outcome, Question

RAISED = -1.0


def decision(question: Question, outcome: Outcome) -> Contribution:
    """Return whether the question is answerable, and whether the system would answer it: 1, 0 or `RAISED`."""
    sufficient = outcome.output.sufficient
    answers = bool(outcome.ids) if sufficient is None else sufficient
    return float(question.answerable), RAISED if outcome.error else float(answers)


def _precision(answering: bool) -> Callable[[Sequence[Contribution]], float | None]:
    def total(decisions: Sequence[Contribution]) -> float | None:
        decided = [answerable for answerable, answers in decisions if answers == answering]
        return _share([answerable == answering for answerable in decided]) if _has_both_kinds(decisions) else None

    return total


def _recall(answering: bool) -> Callable[[Sequence[Contribution]], float | None]:
    def total(decisions: Sequence[Contribution]) -> float | None:
        expected = [answers for answerable, answers in decisions if answerable == answering]
        return _share([answers == answering for answers in expected]) if _has_both_kinds(decisions) else None

    return total


def _system_decided(answering: bool) -> Callable[[Contribution], bool]:
    """Select the questions that count for precision: those that the system would answer, or wouldn't."""
    return lambda decision: decision[1] == answering


def _is_answerable(answering: bool) -> Callable[[Contribution], bool]:
    """Select the questions that count for recall: the answerable ones, or the unanswerable ones."""
    return lambda decision: decision[0] == answering


def _has_both_kinds(decisions: Sequence[Contribution]) -> bool:
    return len({answerable for answerable, _ in decisions}) == 2


def _share(right: Sequence[bool]) -> float:
    return sum(right) / len(right) if right else 0.0


_SUFFICIENCY = (
    "sufficiency of a context: Joren et al., Sufficient Context (2025); precision and recall of its being called so"
)
_REJECTION = (
    "negative rejection: Chen et al., Benchmarking Large Language Models in Retrieval-Augmented Generation (2024), "
    "section 3; precision and recall of it"
)

ANSWERING_PRECISION = SetMeasure(
    name="answering precision",
    meaning="share of the answerable questions among those that the system would answer",
    source=_SUFFICIENCY,
    better="higher",
    contribution=decision,
    total=_precision(answering=True),
    counts=_system_decided(answering=True),
)
ANSWERING_RECALL = SetMeasure(
    name="answering recall",
    meaning="share of the answerable questions that the system would answer",
    source=_SUFFICIENCY,
    better="higher",
    contribution=decision,
    total=_recall(answering=True),
    counts=_is_answerable(answering=True),
)
ABSTENTION_PRECISION = SetMeasure(
    name="abstention precision",
    meaning="share of the unanswerable questions among those that the system would not answer",
    source=_REJECTION,
    better="higher",
    contribution=decision,
    total=_precision(answering=False),
    counts=_system_decided(answering=False),
)
ABSTENTION_RECALL = SetMeasure(
    name="abstention recall",
    meaning="share of the unanswerable questions that the system would not answer",
    source=_REJECTION,
    better="higher",
    contribution=decision,
    total=_recall(answering=False),
    counts=_is_answerable(answering=False),
)
