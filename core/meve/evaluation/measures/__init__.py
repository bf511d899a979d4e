"""The measures, by kind, each with its meaning, source and computation. `MEASURES` lists all of them by name."""

from meve.evaluation.measures import answers, cost, decisions, gold_passages, ranking
from meve.evaluation.measures._measure import AnyMeasure, Better, Contribution, JudgedQuestion, Measure, SetMeasure

__all__ = ["MEASURES", "AnyMeasure", "Better", "Contribution", "JudgedQuestion", "Measure", "SetMeasure"]

MEASURES: dict[str, AnyMeasure] = {
    measure.name: measure
    for measure in (
        *gold_passages.MEASURES,
        *answers.MEASURES,
        *cost.SIZES,
        *ranking.MEASURES,
        *decisions.MEASURES,
        *answers.PROXIES,
        *cost.LATENCIES,
    )
}
"""Every measure by its name, in the order of the tables."""
