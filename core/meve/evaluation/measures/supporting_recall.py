"""Do the passages that a right answer rests on stand in the prompt?"""

from meve.evaluation.measures.base import Measure, each, has_gold
from meve.evaluation.outcome import Outcome
from meve.evaluation.types import Question


def recall(question: Question, outcome: Outcome) -> float | None:
    """The share of the gold passages that stand in the prompt; None without gold, or unanswerable."""
    if not has_gold(question):
        return None
    return len(question.gold.keys() & set(outcome.ids)) / len(question.gold)


SUPPORTING_RECALL = Measure(
    name="supporting recall",
    meaning="share of the gold passages that stand in the prompt",
    source="recall of a set: van Rijsbergen, Information Retrieval (1979), chapter 7",
    better="higher",
    values=each(recall),
)
