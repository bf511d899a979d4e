"""How many of the key facts does the prompt hold? Gold sentences, or gold passages where a set has no sentences."""

from meve.evaluation.measures.base import Measure, each
from meve.evaluation.measures.sentence_recall import found
from meve.evaluation.measures.supporting_recall import recall
from meve.evaluation.outcome import Outcome
from meve.evaluation.types import Question


def facts(question: Question, outcome: Outcome) -> float | None:
    """The share of the key facts in the prompt; None without any, or unanswerable."""
    return found(question, outcome) if question.sentences else recall(question, outcome)


FACT_RECOVERY = Measure(
    name="fact recovery",
    meaning="share of the key facts (gold sentences, or gold passages without any) that stand in the prompt",
    source="the query-aware memory paper: key facts in the prompt over key facts needed",
    better="higher",
    values=each(facts),
)
