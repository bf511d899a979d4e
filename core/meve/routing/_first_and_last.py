"""Finds the oldest or the newest memories of a topic, for questions such as `When did I last go hiking?`."""

import re
from collections.abc import Sequence

from meve.routing._base_forms import base_stem
from meve.routing._groups import stems_with_groups
from meve.routing._plan import RoutePlan
from meve.routing._reader import time_of
from meve.routing._tellers import choose_told
from meve.routing._topic import topic_stems
from meve.types import Candidate

_FIRST = re.compile(r"\b(?:first(?! names?\b)|start(?:ed)?|beg[aiu]n|earliest|since when)\b", re.IGNORECASE)
_LAST = re.compile(r"\b(?:last(?! names?\b)|latest|most recent(?:ly)?)\b", re.IGNORECASE)
_COMPARED = re.compile(r"\b(?:or|between)\b", re.IGNORECASE)
_FRAME = frozenset(map(base_stem, ("start", "begin", "earliest", "latest")))
"""Stems of words that ask for an end, and needn't stand in the memory."""
_SHOWN = 2
"""The number of memories of an end, since one of them may only mention the topic."""


def asks_for_end(plan: RoutePlan) -> bool:
    """Return whether a question asks when something happened first or last, and doesn't compare several things."""
    text = plan.question if plan.period is None else plan.question.replace(plan.period.expression, " ")
    is_one = (_FIRST.search(text) is None) != (_LAST.search(text) is None)
    return plan.intent in ("order", "when") and is_one and _COMPARED.search(text) is None


def find_end(plan: RoutePlan, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return the oldest or the newest memories that hold most words of the question's topic.

    Args:
        plan: the plan of a question that asks for an end.
        candidates: the memories, in any order.
    """
    topic = topic_stems(plan.question, plan.period) - _FRAME
    then = [c for c in candidates if plan.period is None or plan.period.contains(time_of(c))]
    shared = {c.id: len(topic & stems_with_groups(c.passage.text)) for c in then}
    most = max(shared.values(), default=0)
    about = [c for c in then if most and shared[c.id] == most]
    ordered = sorted(choose_told(plan.question, about) or about, key=lambda c: (time_of(c), c.id))
    return tuple(ordered[:_SHOWN] if _FIRST.search(plan.question) else ordered[-_SHOWN:])
