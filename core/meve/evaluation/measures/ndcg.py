"""How well is the order of a ranking, relevance in grades?"""

from meve.evaluation.measures.base import Measure
from meve.evaluation.measures.ranking import ranked

NDCG_10 = Measure(
    name="NDCG@10",
    meaning="normalised discounted cumulative gain of the first 10 ranked",
    source="Järvelin and Kekäläinen, Cumulated Gain-Based Evaluation of IR Techniques (2002)",
    better="higher",
    values=ranked("NDCG@10", lambda m: m.nDCG @ 10),
)
