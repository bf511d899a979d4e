"""The measures, by kind, each with its meaning, source and computation. `MEASURES` lists all of them by name."""

from meve.evaluation.measures import answers, cost, decisions, gold_passages, ranking
from meve.evaluation.measures._measure import AnyMeasure, Better, Contribution, JudgedQuestion, Measure, SetMeasure
from meve.evaluation.measures.calibration import CALIBRATION_ERROR

__all__ = ["MEASURES", "AnyMeasure", "Better", "Contribution", "JudgedQuestion", "Measure", "SetMeasure"]

MEASURES: dict[str, AnyMeasure] = {
    measure.name: measure
    for measure in (
        gold_passages.SUPPORTING_RECALL,
        gold_passages.SUPPORTING_PRECISION,
        gold_passages.ANY_GOLD,
        gold_passages.ALL_GOLD,
        gold_passages.SENTENCE_RECALL,
        gold_passages.FACT_RECOVERY,
        answers.ANSWER_IN_CONTEXT,
        answers.TOKEN_RECALL,
        answers.WRONG_ANSWER,
        cost.TOKENS,
        cost.PASSAGES,
        cost.EMPTY,
        ranking.MRR,
        ranking.RECALL_5,
        ranking.RECALL_20,
        ranking.NDCG_10,
        decisions.ANSWERING_PRECISION,
        decisions.ANSWERING_RECALL,
        decisions.ABSTENTION_PRECISION,
        decisions.ABSTENTION_RECALL,
        CALIBRATION_ERROR,
        answers.DERIVED,
        answers.POTENTIALLY_RELEVANT,
        cost.MEAN,
        cost.P50,
        cost.P95,
    )
}
"""Every measure by its name, in the order of the tables."""
