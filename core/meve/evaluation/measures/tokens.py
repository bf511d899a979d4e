"""How much does a system put into the prompt?"""

from meve.evaluation.measures.base import Measure, each

TOKENS = Measure(
    name="tokens",
    meaning="tokens of the prompt's context",
    source="average context tokens: MeVe (Ottem 2025), section 5",
    better="lower",
    values=each(lambda _, outcome: float(outcome.handed.tokens)),
)
