"""How long does a system take for a question? Those for which it raised are left out."""

from collections.abc import Callable, Sequence

import numpy as np

from meve.evaluation.measures.base import Judged, SetMeasure


def _percentile(q: float) -> Callable[[Sequence[Judged]], float | None]:
    def value(judged: Sequence[Judged]) -> float | None:
        times = [outcome.ms for _, outcome in judged if not outcome.error]
        return float(np.percentile(times, q)) if times else None

    return value


def _mean(judged: Sequence[Judged]) -> float | None:
    times = [outcome.ms for _, outcome in judged if not outcome.error]
    return float(np.mean(times)) if times else None


MEAN = SetMeasure(name="mean ms", meaning="mean milliseconds a question", better="lower", value=_mean)
P50 = SetMeasure(name="p50 ms", meaning="median milliseconds a question", better="lower", value=_percentile(50))
P95 = SetMeasure(
    name="p95 ms", meaning="milliseconds that 95 % of the questions stay below", better="lower", value=_percentile(95)
)
