"""Does a system know when its prompt can't carry an answer? A system that doesn't say answers whenever it has text.

One that raised is wrong either way: it neither answers what can be answered nor abstains from the rest.

Source: precision and recall of answering and of abstaining; rejection in Chen et al., Benchmarking Large Language
Models in Retrieval-Augmented Generation (2024), section 3.
"""

from collections.abc import Callable, Sequence

from meve.evaluation.measures.base import Judged, SetMeasure
from meve.evaluation.outcome import Outcome


def answers(outcome: Outcome) -> bool | None:
    """Whether an application that follows the system would answer; None if the system raised."""
    if outcome.error:
        return None
    said = outcome.handed.sufficient
    return bool(outcome.ids) if said is None else said


def _precision(answering: bool) -> Callable[[Sequence[Judged]], float | None]:
    """Of those that it would answer (or not), the share that is answerable (or isn't)."""

    def value(judged: Sequence[Judged]) -> float | None:
        base = [question.answerable for question, outcome in judged if answers(outcome) is answering]
        return _share([answerable is answering for answerable in base]) if _both(judged) else None

    return value


def _recall(answering: bool) -> Callable[[Sequence[Judged]], float | None]:
    """Of those that are answerable (or aren't), the share that it would answer (or not)."""

    def value(judged: Sequence[Judged]) -> float | None:
        base = [answers(outcome) for question, outcome in judged if question.answerable is answering]
        return _share([answered is answering for answered in base]) if _both(judged) else None

    return value


def _both(judged: Sequence[Judged]) -> bool:
    """Whether answerable and unanswerable questions are among them."""
    return len({question.answerable for question, _ in judged}) == 2


def _share(right: Sequence[bool]) -> float:
    return sum(right) / len(right) if right else 0.0


ANSWERING_PRECISION = SetMeasure(
    name="answering precision",
    meaning="of the questions that it would answer, the share that is answerable",
    better="higher",
    value=_precision(answering=True),
)
ANSWERING_RECALL = SetMeasure(
    name="answering recall",
    meaning="of the answerable questions, the share that it would answer",
    better="higher",
    value=_recall(answering=True),
)
ABSTENTION_PRECISION = SetMeasure(
    name="abstention precision",
    meaning="of the questions that it would not answer, the share that is unanswerable",
    better="higher",
    value=_precision(answering=False),
)
ABSTENTION_RECALL = SetMeasure(
    name="abstention recall",
    meaning="of the unanswerable questions, the share that it would not answer",
    better="higher",
    value=_recall(answering=False),
)
