"""Measures, one idea a file: what each means, and how it is computed. `MEASURES` has them all, by name."""

from meve.evaluation.measures.answer import ANSWER_IN_CONTEXT, MISLED, TOKEN_RECALL
from meve.evaluation.measures.base import AnyMeasure, Better, Judged, Measure, SetMeasure
from meve.evaluation.measures.calibration import CALIBRATION_ERROR
from meve.evaluation.measures.grounding import DERIVED, POTENTIALLY_RELEVANT
from meve.evaluation.measures.latency import MEAN, P50, P95
from meve.evaluation.measures.ranking import MRR, NDCG_10, RECALL_5, RECALL_20
from meve.evaluation.measures.sentences import FACT_RECOVERY, SENTENCE_RECALL
from meve.evaluation.measures.size import EMPTY, PASSAGES, TOKENS
from meve.evaluation.measures.sufficiency import (
    ABSTENTION_PRECISION,
    ABSTENTION_RECALL,
    ANSWERING_PRECISION,
    ANSWERING_RECALL,
)
from meve.evaluation.measures.supporting import ALL_GOLD, ANY_GOLD, SUPPORTING_PRECISION, SUPPORTING_RECALL

__all__ = ["MEASURES", "AnyMeasure", "Better", "Judged", "Measure", "SetMeasure"]

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
        MISLED,
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
