"""Measures of a ranking, computed by ir-measures over everything that a system would return without a budget."""

from collections.abc import Callable, Sequence
from typing import Any

from meve.errors import missing_extra
from meve.evaluation.measures._measure import JudgedQuestion, Measure, has_gold


def _ranking_values(
    name: str, select: Callable[[Any], Any]
) -> Callable[[Sequence[JudgedQuestion]], list[float | None]]:
    """Return a measure's `values` by ir-measures; a question with an empty ranking gets 0."""

    def values(judged: Sequence[JudgedQuestion]) -> list[float | None]:
        try:
            import ir_measures
        except ImportError as cause:
            raise missing_extra("ir_measures", "bench", name) from cause
        numbered = [(str(n), question, outcome) for n, (question, outcome) in enumerate(judged) if has_gold(question)]
        qrels = {n: dict(question.gold) for n, question, _ in numbered}
        run = {n: _rank_scores(outcome.output.ranked) for n, _, outcome in numbered if outcome.output.ranked}
        if not qrels:
            return [None] * len(judged)
        by_id = {m.query_id: float(m.value) for m in ir_measures.iter_calc([select(ir_measures)], qrels, run)}
        return [by_id.get(str(n), 0.0) if has_gold(question) else None for n, (question, _) in enumerate(judged)]

    return values


def _rank_scores(ranked: Sequence[str]) -> dict[str, float]:
    return {passage_id: float(len(ranked) - rank) for rank, passage_id in reversed(list(enumerate(ranked)))}


def _recall_at(k: int) -> Measure:
    name = f"recall@{k}"
    return Measure(
        name=name,
        meaning=f"share of the relevant passages among the first {k} ranked",
        source="Manning, Raghavan and Schütze, Introduction to Information Retrieval (2008), section 8.4",
        better="higher",
        values=_ranking_values(name, lambda m: m.R @ k),
    )


MRR = Measure(
    name="MRR@10",
    meaning="mean of 1 / rank of the first relevant passage, 0 beyond the tenth",
    source="Voorhees, The TREC-8 Question Answering Track Report (1999)",
    better="higher",
    values=_ranking_values("MRR@10", lambda m: m.RR @ 10),
)
RECALL_5 = _recall_at(5)
RECALL_20 = _recall_at(20)
NDCG_10 = Measure(
    name="NDCG@10",
    meaning="normalised discounted cumulative gain of the first 10 ranked",
    source="Järvelin and Kekäläinen, Cumulated Gain-Based Evaluation of IR Techniques (2002)",
    better="higher",
    values=_ranking_values("NDCG@10", lambda m: m.nDCG @ 10),
)
