"""Does a system know when its prompt can't carry an answer? A system that doesn't say answers whenever it has text."""

from collections.abc import Callable, Sequence

from meve.evaluation.measures.base import Judged, SetMeasure
from meve.evaluation.outcome import Outcome


def answers(outcome: Outcome) -> bool:
    """Whether an application that follows the system would answer."""
    said = outcome.handed.sufficient
    return bool(outcome.ids) if said is None else said


def _share(
    of: Callable[[bool, bool], bool], which: Callable[[bool, bool], bool]
) -> Callable[[Sequence[Judged]], float | None]:
    """The share of `which` among `of`, both functions of (answerable, answered); only where both kinds are asked."""

    def value(judged: Sequence[Judged]) -> float | None:
        pairs = [(question.answerable, answers(outcome)) for question, outcome in judged]
        if len({answerable for answerable, _ in pairs}) < 2:
            return None
        base = [pair for pair in pairs if of(*pair)]
        return sum(which(*pair) for pair in base) / len(base) if base else 0.0

    return value


ANSWERING_PRECISION = SetMeasure(
    name="answering precision",
    meaning="of the questions that it would answer, the share that is answerable",
    better="higher",
    value=_share(lambda _, answered: answered, lambda answerable, _: answerable),
)
ANSWERING_RECALL = SetMeasure(
    name="answering recall",
    meaning="of the answerable questions, the share that it would answer",
    better="higher",
    value=_share(lambda answerable, _: answerable, lambda _, answered: answered),
)
ABSTENTION_PRECISION = SetMeasure(
    name="abstention precision",
    meaning="of the questions that it would not answer, the share that is unanswerable",
    better="higher",
    value=_share(lambda _, answered: not answered, lambda answerable, _: not answerable),
)
ABSTENTION_RECALL = SetMeasure(
    name="abstention recall",
    meaning="of the unanswerable questions, the share that it would not answer",
    better="higher",
    value=_share(lambda answerable, _: not answerable, lambda _, answered: not answered),
)
