"""How long does a system take for a question? Those for which it raised are left out."""

from collections.abc import Callable, Sequence

import numpy as np

from meve.evaluation.measures.base import Part, SetMeasure
from meve.evaluation.outcome import Outcome
from meve.evaluation.types import Question

_TAIL = "percentiles: Dean and Barroso, The Tail at Scale (2013)"


def milliseconds(_: Question, outcome: Outcome) -> Part:
    """How long one question took."""
    return () if outcome.error else (outcome.ms,)


def _of(statistic: Callable[[list[float]], float]) -> Callable[[Sequence[Part]], float | None]:
    def total(parts: Sequence[Part]) -> float | None:
        times = [ms for part in parts for ms in part]
        return float(statistic(times)) if times else None

    return total


MEAN = SetMeasure(
    name="mean ms",
    meaning="mean milliseconds a question",
    source="average retrieval time: MeVe (Ottem 2025), section 5",
    better="lower",
    part=milliseconds,
    total=_of(lambda times: float(np.mean(times))),
)
P50 = SetMeasure(
    name="p50 ms",
    meaning="median milliseconds a question",
    source=_TAIL,
    better="lower",
    part=milliseconds,
    total=_of(lambda times: float(np.percentile(times, 50))),
)
P95 = SetMeasure(
    name="p95 ms",
    meaning="milliseconds that 95 % of the questions stay below",
    source=_TAIL,
    better="lower",
    part=milliseconds,
    total=_of(lambda times: float(np.percentile(times, 95))),
)
