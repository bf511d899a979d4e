"""Does the prompt hold the answer, or a wrong one? Needs no language model, and no gold passages.

Source: answers compared as Rajpurkar et al., SQuAD (2016), section 6.1; whether a passage holds the answer, Karpukhin
et al., Dense Passage Retrieval (2020), section 5; token recall is the query-aware memory paper's, here of the prompt.
"""

from collections.abc import Sequence

from meve.evaluation.answers import holds, normalised, words
from meve.evaluation.measures.base import Measure, each
from meve.evaluation.outcome import Outcome
from meve.evaluation.types import Question

_UNFINDABLE = {"yes", "no", "noanswer"}
"""Answers that a text doesn't show by holding them."""


def in_context(question: Question, outcome: Outcome) -> float | None:
    """1 if the prompt has the words of an accepted answer in a row, otherwise 0; None for yes, no and unanswerable."""
    answers = _findable(question)
    if not answers or not question.answerable:
        return None
    text = normalised(outcome.handed.text)
    return float(any(holds(text, answer) for answer in answers))


def misled(question: Question, outcome: Outcome) -> float | None:
    """1 if the prompt has the words of a wrong answer that passages give, otherwise 0; None where none does."""
    wrong = [w for w in question.misleading if normalised(w)]
    if not wrong:
        return None
    text = normalised(outcome.handed.text)
    return float(any(holds(text, w) for w in wrong))


def recalled(question: Question, outcome: Outcome) -> float | None:
    """The share of an accepted answer's distinct words that the prompt holds, of whichever fares best."""
    answers = _findable(question)
    if not answers or not question.answerable:
        return None
    there = set(words(outcome.handed.text))
    return max(len(set(words(a)) & there) / len(set(words(a))) for a in answers)


def _findable(question: Question) -> Sequence[str]:
    answers = [a for a in question.answers if normalised(a)]
    return [] if any(normalised(a) in _UNFINDABLE for a in answers) else answers


ANSWER_IN_CONTEXT = Measure(
    name="answer in context",
    meaning="share of the questions whose answer's words stand in the prompt in a row",
    better="higher",
    values=each(in_context),
)
MISLED = Measure(
    name="wrong answer in context",
    meaning="share of the questions with a false answer in the prompt, where some passage gives one",
    better="lower",
    values=each(misled),
)
TOKEN_RECALL = Measure(
    name="context token recall",
    meaning="share of the answer's words that stand in the prompt itself, no reader having answered",
    better="higher",
    values=each(recalled),
)
