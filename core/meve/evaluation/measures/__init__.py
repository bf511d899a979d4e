"""Measures, one a file: what each means, who defined it, and how it is computed. `MEASURES` has them all, by name."""

from meve.evaluation.measures.abstention import ABSTENTION_PRECISION, ABSTENTION_RECALL
from meve.evaluation.measures.all_gold import ALL_GOLD
from meve.evaluation.measures.answer_in_context import ANSWER_IN_CONTEXT
from meve.evaluation.measures.answering import ANSWERING_PRECISION, ANSWERING_RECALL
from meve.evaluation.measures.any_gold import ANY_GOLD
from meve.evaluation.measures.base import AnyMeasure, Better, Judged, Measure, Part, SetMeasure
from meve.evaluation.measures.calibration_error import CALIBRATION_ERROR
from meve.evaluation.measures.empty import EMPTY
from meve.evaluation.measures.fact_recovery import FACT_RECOVERY
from meve.evaluation.measures.grounding_proxy import DERIVED, POTENTIALLY_RELEVANT
from meve.evaluation.measures.latency import MEAN, P50, P95
from meve.evaluation.measures.ndcg import NDCG_10
from meve.evaluation.measures.passages import PASSAGES
from meve.evaluation.measures.recall_at_k import RECALL_5, RECALL_20
from meve.evaluation.measures.reciprocal_rank import MRR
from meve.evaluation.measures.sentence_recall import SENTENCE_RECALL
from meve.evaluation.measures.supporting_precision import SUPPORTING_PRECISION
from meve.evaluation.measures.supporting_recall import SUPPORTING_RECALL
from meve.evaluation.measures.token_recall import TOKEN_RECALL
from meve.evaluation.measures.tokens import TOKENS
from meve.evaluation.measures.wrong_answer import WRONG_ANSWER

__all__ = ["MEASURES", "AnyMeasure", "Better", "Judged", "Measure", "Part", "SetMeasure"]

MEASURES: dict[str, AnyMeasure] = {
    measure.name: measure
    for measure in (
        SUPPORTING_RECALL,
        SUPPORTING_PRECISION,
        ANY_GOLD,
        ALL_GOLD,
        SENTENCE_RECALL,
        FACT_RECOVERY,
        ANSWER_IN_CONTEXT,
        TOKEN_RECALL,
        WRONG_ANSWER,
        TOKENS,
        PASSAGES,
        EMPTY,
        MRR,
        RECALL_5,
        RECALL_20,
        NDCG_10,
        ANSWERING_PRECISION,
        ANSWERING_RECALL,
        ABSTENTION_PRECISION,
        ABSTENTION_RECALL,
        CALIBRATION_ERROR,
        DERIVED,
        POTENTIALLY_RELEVANT,
        MEAN,
        P50,
        P95,
    )
}
"""Every measure by its name, in the order of the tables."""
