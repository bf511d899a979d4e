"""Does little else stand in the prompt than the passages that a right answer rests on?"""

from meve.evaluation.measures.base import Measure, each, has_gold
from meve.evaluation.outcome import Outcome
from meve.evaluation.types import Question


def precision(question: Question, outcome: Outcome) -> float | None:
    """The share of the prompt's passages that are gold, a second copy not counting; an empty prompt has none.

    None without gold, or unanswerable.
    """
    if not has_gold(question):
        return None
    return len(question.gold.keys() & set(outcome.ids)) / len(outcome.ids) if outcome.ids else 0.0


SUPPORTING_PRECISION = Measure(
    name="supporting precision",
    meaning="share of the prompt's passages that are gold; an empty prompt counts as 0",
    source="precision of a set: van Rijsbergen, Information Retrieval (1979), chapter 7",
    better="higher",
    values=each(precision),
)
