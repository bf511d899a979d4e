"""Does the prompt hold anything that a right answer rests on?"""

from meve.evaluation.measures.base import Measure, each
from meve.evaluation.measures.supporting_recall import recall
from meve.evaluation.outcome import Outcome
from meve.evaluation.types import Question


def hit(question: Question, outcome: Outcome) -> float | None:
    """1 if a gold passage stands in the prompt, otherwise 0; None without gold, or unanswerable."""
    share = recall(question, outcome)
    return None if share is None else float(share > 0.0)


ANY_GOLD = Measure(
    name="any gold",
    meaning="share of the questions with a gold passage in the prompt",
    source="top-k retrieval accuracy: Karpukhin et al., Dense Passage Retrieval (2020), section 5, by labels",
    better="higher",
    values=each(hit),
)
