"""Measures of a ranking, computed by ir-measures over everything that a system would return without a budget."""

from collections.abc import Callable, Sequence
from typing import Any

from meve.errors import missing_extra
from meve.evaluation.measures._measure import JudgedQuestion, Measure, has_gold


def _ranking_measure(name: str, meaning: str, source: str, select: Callable[[Any], Any]) -> Measure:
    """Return a measure by ir-measures; a question with an empty ranking gets 0."""

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

    return Measure(name=name, meaning=meaning, source=source, values=values)


def _rank_scores(ranked: Sequence[str]) -> dict[str, float]:
    return {passage_id: float(len(ranked) - rank) for rank, passage_id in reversed(list(enumerate(ranked)))}


_MANNING = "Manning, Raghavan and Schütze, Introduction to Information Retrieval (2008), section 8.4"

MEASURES = (
    _ranking_measure(
        "MRR@10",
        "mean of 1 / rank of the first relevant passage, 0 beyond the tenth",
        "Voorhees, The TREC-8 Question Answering Track Report (1999)",
        lambda m: m.RR @ 10,
    ),
    _ranking_measure(
        "recall@5", "share of the relevant passages among the first 5 ranked", _MANNING, lambda m: m.R @ 5
    ),
    _ranking_measure(
        "recall@20", "share of the relevant passages among the first 20 ranked", _MANNING, lambda m: m.R @ 20
    ),
    _ranking_measure(
        "NDCG@10",
        "normalised discounted cumulative gain of the first 10 ranked",
        "Järvelin and Kekäläinen, Cumulated Gain-Based Evaluation of IR Techniques (2002)",
        lambda m: m.nDCG @ 10,
    ),
)
