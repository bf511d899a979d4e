"""The MeVe paper's grounding proxy: kept for comparison only, since it can't tell right from wrong.

The paper takes, as if it were an answer, the sentence of the context with the most keywords in common with the
question, and calls it derived from the context, or not. How many must be in common isn't published; here one is enough
for `derived`. For the paper's `potentially relevant` it gives no rule at all; here, half of the question's keywords.
"""

import re

from meve.components.lexical.analyzers import content_words
from meve.evaluation.measures.base import Measure, each
from meve.evaluation.outcome import Outcome
from meve.evaluation.types import Question

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_SOURCE = "MeVe (Ottem 2025), appendix A.5 and figure 5"


def shared(question: Question, outcome: Outcome) -> float:
    """The share of the question's keywords in the sentence of the context that has most of them, in [0, 1]."""
    keywords = set(content_words(question.text))
    if not keywords:
        return 0.0
    sentences = _SENTENCE.split(outcome.handed.text)
    return max(len(keywords & set(content_words(sentence))) for sentence in sentences) / len(keywords)


DERIVED = Measure(
    name="proxy: derived from context",
    meaning="share of the questions with a sentence in the context that has a keyword in common with them",
    source=_SOURCE,
    better="neither",
    values=each(lambda question, outcome: float(shared(question, outcome) > 0)),
)
POTENTIALLY_RELEVANT = Measure(
    name="proxy: potentially relevant",
    meaning="share of the questions with a sentence in the context that has half of their keywords",
    source=_SOURCE,
    better="neither",
    values=each(lambda question, outcome: float(shared(question, outcome) >= 0.5)),
)
