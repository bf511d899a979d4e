"""How many passages does a system put into the prompt?"""

from meve.evaluation.measures.base import Measure, each

PASSAGES = Measure(
    name="passages",
    meaning="passages in the prompt",
    source="the size of the retrieved set, over which precision is taken: van Rijsbergen, Information Retrieval "
    "(1979), chapter 7",
    better="neither",
    values=each(lambda _, outcome: float(len(outcome.ids))),
)
