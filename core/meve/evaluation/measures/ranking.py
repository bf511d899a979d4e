"""How far up does a system rank what is relevant? Computed by ir-measures, over everything that it would hand over.

Source: Järvelin and Kekäläinen, Cumulated Gain-Based Evaluation of IR Techniques (2002), for NDCG; Voorhees, The TREC-8
Question Answering Track Report (1999), for the reciprocal rank.
"""

from collections.abc import Callable, Sequence
from typing import Any

from meve.errors import missing_extra
from meve.evaluation.measures.base import Judged, Measure
from meve.evaluation.types import Question


def _ranked(name: str, pick: Callable[[Any], Any]) -> Callable[[Sequence[Judged]], list[float | None]]:
    """A measure's `values` by ir-measures. A question for which nothing is ranked gets 0."""

    def values(judged: Sequence[Judged]) -> list[float | None]:
        try:
            import ir_measures
        except ImportError as cause:
            raise missing_extra("ir_measures", "bench", name) from cause
        asked = [(str(n), question, outcome) for n, (question, outcome) in enumerate(judged) if _asked(question)]
        qrels = {n: dict(question.gold) for n, question, _ in asked}
        run = {n: _scores(outcome.handed.ranked) for n, _, outcome in asked if outcome.handed.ranked}
        if not qrels:
            return [None] * len(judged)
        found = {m.query_id: float(m.value) for m in ir_measures.iter_calc([pick(ir_measures)], qrels, run)}
        return [found.get(str(n), 0.0) if _asked(question) else None for n, (question, _) in enumerate(judged)]

    return values


def _asked(question: Question) -> bool:
    return bool(question.gold) and question.answerable


def _scores(ranked: Sequence[str]) -> dict[str, float]:
    return {passage_id: float(len(ranked) - place) for place, passage_id in reversed(list(enumerate(ranked)))}


MRR = Measure(
    name="MRR@10",
    meaning="mean of 1 / rank of the first relevant passage, 0 beyond the tenth",
    better="higher",
    values=_ranked("MRR@10", lambda m: m.RR @ 10),
)
RECALL_5 = Measure(
    name="recall@5",
    meaning="share of the relevant passages among the first 5 ranked",
    better="higher",
    values=_ranked("recall@5", lambda m: m.R @ 5),
)
RECALL_20 = Measure(
    name="recall@20",
    meaning="share of the relevant passages among the first 20 ranked",
    better="higher",
    values=_ranked("recall@20", lambda m: m.R @ 20),
)
NDCG_10 = Measure(
    name="NDCG@10",
    meaning="normalised discounted cumulative gain of the first 10 ranked",
    better="higher",
    values=_ranked("NDCG@10", lambda m: m.nDCG @ 10),
)
