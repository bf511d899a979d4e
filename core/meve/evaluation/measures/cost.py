"""Measures of what an answer costs: tokens, passages, empty prompts and milliseconds."""

from collections.abc import Callable, Sequence

import numpy as np

from meve.evaluation.measures._measure import Contribution, Measure, SetMeasure, each
from meve.evaluation.types import Question, QuestionOutcome

_TAIL = "percentiles: Dean and Barroso, The Tail at Scale (2013)"


def milliseconds(_: Question, outcome: QuestionOutcome) -> Contribution:
    """Return how long one question took; nothing if the system raised."""
    return () if outcome.error else (outcome.ms,)


def _latency(name: str, meaning: str, source: str, statistic: Callable[[list[float]], np.floating]) -> SetMeasure:
    def total(contributions: Sequence[Contribution]) -> float | None:
        times = [ms for contribution in contributions for ms in contribution]
        return float(statistic(times)) if times else None

    return SetMeasure(name=name, meaning=meaning, source=source, better="lower", contribution=milliseconds, total=total)


SIZES = (
    Measure(
        name="tokens",
        meaning="tokens of the prompt's context",
        source="average context tokens: MeVe (Ottem 2025), section 5",
        better="lower",
        values=each(lambda _, outcome: float(outcome.output.tokens)),
    ),
    Measure(
        name="passages",
        meaning="passages in the prompt",
        source="the size of the retrieved set, over which precision is taken: van Rijsbergen, Information Retrieval "
        "(1979), chapter 7",
        better="neither",
        values=each(lambda _, outcome: float(len(outcome.ids))),
    ),
    Measure(
        name="empty",
        meaning="share of the questions with an empty prompt",
        source="queries with empty contexts: MeVe (Ottem 2025), section 5, of its mode without fallback",
        better="neither",
        values=each(lambda _, outcome: float(not outcome.ids)),
    ),
)
LATENCIES = (
    _latency(
        "mean ms",
        "mean milliseconds a question",
        "average retrieval time: MeVe (Ottem 2025), section 5",
        lambda times: np.mean(times),
    ),
    _latency("p50 ms", "median milliseconds a question", _TAIL, lambda times: np.percentile(times, 50)),
    _latency(
        "p95 ms", "milliseconds that 95 % of the questions stay below", _TAIL, lambda times: np.percentile(times, 95)
    ),
)
