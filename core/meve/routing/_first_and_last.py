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
_LAST = re.compile(r"\b(?:last(?! names?\b)|latest|newest|most recent(?:ly)?)\b", re.IGNORECASE)
_COMPARED = re.compile(r"\b(?:or|between)\b", re.IGNORECASE)
_ONE = re.compile(
    r"\b(?:first|last|latest|earliest|newest|most recent) (?:[\w'-]{1,30} ){1,3}?(?:(?:that|which|whom?) )?(?:i|we)"
    r"(?:'ve)? \w|\bdid (?:i|we) (?:first|last|most recently) \w"
    r"|\b(?:did|have) (?:i|we) \w.{0,60}\b(?:first|last|most recently)\W{0,9}$",
    re.IGNORECASE,
)
"""A question for the first or the last thing of a kind, as in `What was the last book I read?`"""
_FRAME = frozenset(map(base_stem, ("start", "begin", "earliest", "latest", "newest")))
"""Stems of words that ask for an end, and needn't stand in the memory."""
_SHOWN = 2
"""The number of memories of an end, since one of them may only mention the topic."""


def asks_for_end(plan: RoutePlan) -> bool:
    """Return whether a question asks for what happened first or last, and doesn't compare several things."""
    text = plan.question if plan.period is None else plan.question.replace(plan.period.expression, " ")
    is_one = (_FIRST.search(text) is None) != (_LAST.search(text) is None)
    is_asked = plan.intent in ("order", "when") or (plan.intent == "fact" and _ONE.search(text) is not None)
    return is_asked and is_one and _COMPARED.search(text) is None


def find_end(plan: RoutePlan, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return the oldest or the newest memories that hold most words of the question's topic, the end first.

    Args:
        plan: the plan of a question that asks for an end.
        candidates: the memories, in any order.
    """
    topic = topic_stems(plan.question, plan.period) - _FRAME
    then = [c for c in candidates if plan.period is None or plan.period.contains(time_of(c))]
    shared = {c.id: len(topic & stems_with_groups(c.passage.text)) for c in then}
    most = max(shared.values(), default=0)
    about = [c for c in then if most and shared[c.id] == most]
    is_last = _FIRST.search(plan.question) is None
    told = choose_told(plan.question, about) or about
    return tuple(sorted(told, key=lambda c: (time_of(c), c.id), reverse=is_last)[:_SHOWN])
