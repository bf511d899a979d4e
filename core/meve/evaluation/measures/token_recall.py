"""How many of the answer's words does the prompt hold?"""

from meve.evaluation.answers import findable, words
from meve.evaluation.measures.base import Measure, each
from meve.evaluation.outcome import Outcome
from meve.evaluation.types import Question


def recalled(question: Question, outcome: Outcome) -> float | None:
    """The share of an accepted answer's distinct words that the prompt holds, of whichever fares best."""
    answers = findable(question.answers)
    if not answers or not question.answerable:
        return None
    there = set(words(outcome.handed.text))
    return max(len(set(words(a)) & there) / len(set(words(a))) for a in answers)


TOKEN_RECALL = Measure(
    name="context token recall",
    meaning="share of the answer's words that stand in the prompt itself, no reader having answered",
    source="token recall of the query-aware memory paper, which takes it of a generated answer",
    better="higher",
    values=each(recalled),
)
