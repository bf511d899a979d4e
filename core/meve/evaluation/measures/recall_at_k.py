"""How much of what is relevant is among the first k ranked?"""

from meve.evaluation.measures.base import Measure
from meve.evaluation.measures.ranking import ranked


def _at(k: int) -> Measure:
    name = f"recall@{k}"
    return Measure(
        name=name,
        meaning=f"share of the relevant passages among the first {k} ranked",
        source="Manning, Raghavan and Schütze, Introduction to Information Retrieval (2008), section 8.4",
        better="higher",
        values=ranked(name, lambda m: m.R @ k),
    )


RECALL_5 = _at(5)
RECALL_20 = _at(20)
