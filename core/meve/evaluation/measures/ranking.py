"""What measures of a ranking share: computed by ir-measures, over everything that a system would hand over."""

from collections.abc import Callable, Sequence
from typing import Any

from meve.errors import missing_extra
from meve.evaluation.measures.base import Judged, has_gold


def ranked(name: str, pick: Callable[[Any], Any]) -> Callable[[Sequence[Judged]], list[float | None]]:
    """A measure's `values` by ir-measures. A question for which nothing is ranked gets 0."""

    def values(judged: Sequence[Judged]) -> list[float | None]:
        try:
            import ir_measures
        except ImportError as cause:
            raise missing_extra("ir_measures", "bench", name) from cause
        asked = [(str(n), question, outcome) for n, (question, outcome) in enumerate(judged) if has_gold(question)]
        qrels = {n: dict(question.gold) for n, question, _ in asked}
        run = {n: _scores(outcome.handed.ranked) for n, _, outcome in asked if outcome.handed.ranked}
        if not qrels:
            return [None] * len(judged)
        found = {m.query_id: float(m.value) for m in ir_measures.iter_calc([pick(ir_measures)], qrels, run)}
        return [found.get(str(n), 0.0) if has_gold(question) else None for n, (question, _) in enumerate(judged)]

    return values


def _scores(ranked: Sequence[str]) -> dict[str, float]:
    return {passage_id: float(len(ranked) - place) for place, passage_id in reversed(list(enumerate(ranked)))}
