"""Does the prompt hold everything that a right answer rests on? Half of a chain of evidence answers nothing."""

from meve.evaluation.measures.base import Measure, each
from meve.evaluation.measures.supporting_recall import recall
from meve.evaluation.outcome import Outcome
from meve.evaluation.types import Question


def complete(question: Question, outcome: Outcome) -> float | None:
    """1 if all gold passages stand in the prompt, otherwise 0; None without gold, or unanswerable."""
    share = recall(question, outcome)
    return None if share is None else float(share == 1.0)


ALL_GOLD = Measure(
    name="all gold",
    meaning="share of the questions whose gold passages all stand in the prompt",
    source="paragraph exact match: Asai et al., Learning to Retrieve Reasoning Paths over Wikipedia Graph (2020)",
    better="higher",
    values=each(complete),
)
