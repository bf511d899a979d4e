"""How far up does a system rank the first relevant passage?"""

from meve.evaluation.measures.base import Measure
from meve.evaluation.measures.ranking import ranked

MRR = Measure(
    name="MRR@10",
    meaning="mean of 1 / rank of the first relevant passage, 0 beyond the tenth",
    source="Voorhees, The TREC-8 Question Answering Track Report (1999)",
    better="higher",
    values=ranked("MRR@10", lambda m: m.RR @ 10),
)
