"""How often does a system hand over nothing?"""

from meve.evaluation.measures.base import Measure, each

EMPTY = Measure(
    name="empty",
    meaning="share of the questions for which nothing is handed over",
    source="queries with empty contexts: MeVe (Ottem 2025), section 5, of its mode without fallback",
    better="neither",
    values=each(lambda _, outcome: float(not outcome.ids)),
)
