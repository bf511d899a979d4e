"""How much does a system put into the prompt, and how often nothing?"""

from meve.evaluation.measures.base import Measure, each

TOKENS = Measure(
    name="tokens",
    meaning="tokens of the prompt's context",
    better="lower",
    values=each(lambda _, outcome: float(outcome.handed.tokens)),
)
PASSAGES = Measure(
    name="passages",
    meaning="passages in the prompt",
    better="neither",
    values=each(lambda _, outcome: float(len(outcome.ids))),
)
EMPTY = Measure(
    name="empty",
    meaning="share of the questions for which nothing is handed over",
    better="neither",
    values=each(lambda _, outcome: float(not outcome.ids)),
)
