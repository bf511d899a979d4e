"""Does the prompt hold the answer? Needs no language model, and no gold passages."""

from meve.evaluation.answers import findable, holds, normalised
from meve.evaluation.measures.base import Measure, each
from meve.evaluation.outcome import Outcome
from meve.evaluation.types import Question


def in_context(question: Question, outcome: Outcome) -> float | None:
    """1 if the prompt has the words of an accepted answer in a row, otherwise 0; None for yes, no and unanswerable."""
    answers = findable(question.answers)
    if not answers or not question.answerable:
        return None
    text = normalised(outcome.handed.text)
    return float(any(holds(text, answer) for answer in answers))


ANSWER_IN_CONTEXT = Measure(
    name="answer in context",
    meaning="share of the questions whose answer's words stand in the prompt in a row",
    source="Karpukhin et al., Dense Passage Retrieval (2020), section 5; answers compared as Rajpurkar et al., SQuAD "
    "(2016), section 6.1",
    better="higher",
    values=each(in_context),
)
