"""Do the sentences that a right answer rests on stand in the prompt? Tells apart systems that cut passages.

Source: supporting facts, Yang et al., HotpotQA (2018), section 5; fact recovery is the query-aware memory paper's, key
facts in the prompt over key facts needed.
"""

from meve.evaluation.measures.base import Measure, each
from meve.evaluation.outcome import Outcome
from meve.evaluation.types import Question


def found(question: Question, outcome: Outcome) -> float | None:
    """The share of the gold sentences whose words stand in the prompt in a row; None without any."""
    if not question.sentences or not question.answerable:
        return None
    text = _spaced(outcome.handed.text)
    return sum(_spaced(s.text) in text for s in question.sentences) / len(question.sentences)


def facts(question: Question, outcome: Outcome) -> float | None:
    """The share of the key facts in the prompt: gold sentences, or gold passages where a set has no sentences."""
    if question.sentences:
        return found(question, outcome)
    if not question.gold or not question.answerable:
        return None
    return len(question.gold.keys() & set(outcome.ids)) / len(question.gold)


def _spaced(text: str) -> str:
    return " ".join(text.split())


SENTENCE_RECALL = Measure(
    name="sentence recall",
    meaning="share of the gold sentences that stand in the prompt",
    better="higher",
    values=each(found),
)
FACT_RECOVERY = Measure(
    name="fact recovery",
    meaning="share of the key facts (gold sentences, or gold passages without any) that stand in the prompt",
    better="higher",
    values=each(facts),
)
