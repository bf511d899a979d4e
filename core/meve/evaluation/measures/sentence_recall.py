"""Do the sentences that a right answer rests on stand in the prompt? Tells apart systems that cut passages."""

from meve.evaluation.measures.base import Measure, each
from meve.evaluation.outcome import Outcome
from meve.evaluation.types import Question


def found(question: Question, outcome: Outcome) -> float | None:
    """The share of the gold sentences whose words stand in the prompt in a row; None without any."""
    if not question.sentences or not question.answerable:
        return None
    text = _spaced(outcome.handed.text)
    return sum(_spaced(s.text) in text for s in question.sentences) / len(question.sentences)


def _spaced(text: str) -> str:
    return " ".join(text.split())


SENTENCE_RECALL = Measure(
    name="sentence recall",
    meaning="share of the gold sentences that stand in the prompt",
    source="recall of supporting facts: Yang et al., HotpotQA (2018), section 5",
    better="higher",
    values=each(found),
)
