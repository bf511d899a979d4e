"""Do the passages that a right answer rests on stand in the prompt, and little else?

Only asked of questions that can be answered: where a set's passages hold half of what is needed, finding that half is
no success.

Source: recall and precision, van Rijsbergen, Information Retrieval (1979), chapter 7, over the set that is handed over.
"""

from meve.evaluation.measures.base import Measure, each
from meve.evaluation.outcome import Outcome
from meve.evaluation.types import Question


def recall(question: Question, outcome: Outcome) -> float | None:
    """The share of the gold passages that stand in the prompt; None without gold, or unanswerable."""
    if not question.gold or not question.answerable:
        return None
    return len(question.gold.keys() & set(outcome.ids)) / len(question.gold)


def precision(question: Question, outcome: Outcome) -> float | None:
    """The share of the prompt's passages that are gold, a second copy not counting; an empty prompt has none.

    None without gold, or unanswerable.
    """
    if not question.gold or not question.answerable:
        return None
    return len(question.gold.keys() & set(outcome.ids)) / len(outcome.ids) if outcome.ids else 0.0


def complete(question: Question, outcome: Outcome) -> float | None:
    """1 if all gold passages stand in the prompt, otherwise 0; None without gold."""
    share = recall(question, outcome)
    return None if share is None else float(share == 1.0)


def hit(question: Question, outcome: Outcome) -> float | None:
    """1 if a gold passage stands in the prompt, otherwise 0; None without gold."""
    share = recall(question, outcome)
    return None if share is None else float(share > 0.0)


SUPPORTING_RECALL = Measure(
    name="supporting recall",
    meaning="share of the gold passages that stand in the prompt",
    better="higher",
    values=each(recall),
)
SUPPORTING_PRECISION = Measure(
    name="supporting precision",
    meaning="share of the prompt's passages that are gold; an empty prompt counts as 0",
    better="higher",
    values=each(precision),
)
ANY_GOLD = Measure(
    name="any gold",
    meaning="share of the questions with a gold passage in the prompt",
    better="higher",
    values=each(hit),
)
ALL_GOLD = Measure(
    name="all gold",
    meaning="share of the questions whose gold passages all stand in the prompt",
    better="higher",
    values=each(complete),
)
