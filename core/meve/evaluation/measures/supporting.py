"""Do the passages that a right answer rests on stand in the prompt, and little else?"""

from meve.evaluation.measures.base import Measure, each
from meve.evaluation.outcome import Outcome
from meve.evaluation.types import Question


def recall(question: Question, outcome: Outcome) -> float | None:
    """The share of the gold passages that stand in the prompt; None without gold."""
    if not question.gold:
        return None
    return len(question.gold.keys() & set(outcome.ids)) / len(question.gold)


def precision(question: Question, outcome: Outcome) -> float | None:
    """The share of the prompt's passages that are gold; an empty prompt has none. None without gold."""
    if not question.gold:
        return None
    ids = set(outcome.ids)
    return len(question.gold.keys() & ids) / len(ids) if ids else 0.0


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
