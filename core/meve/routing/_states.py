"""Finds questions for a state, which lasts until something ends it, and prefers what held at the time they name."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from meve.memory._recall.time_expressions import TimeWindow, find_time
from meve.memory.records import validity
from meve.routing._groups import stems_with_groups
from meve.routing._plan import RoutePlan
from meve.routing._reader import record_of
from meve.routing._rules import asks_for_change
from meve.routing._topic import topic_stems
from meve.types import Candidate

HELD = 0.2
"""Added to the score of a memory that held at the time, which is at most about 1."""
_LATER = 0.05
"""The most that is added to a memory that began to hold later than others that held then, since it may replace them."""
_EVENT = timedelta(days=2)
"""Up to this length of the time, verbs of `_LASTING` tell an event: `What did I wear on Saturday?`"""
_MEALS = r"(?:breakfast|lunch|dinner|supper|dessert|drinks?|coffee|tea)"
_STATES = (
    r"(?:live|reside|own|possess|belong|weigh|measure|cost|owe|know|like|love|hate|dislike|prefer|believe|need|rent"
    r"|lease|be)"
)
"""Verbs that only tell states."""
_LASTING = (
    rf"(?:have(?! (?:to|an? \w+ (?:with|about|at)|{_MEALS}|for {_MEALS})\b)|work|study|drive|wear|use|take(?! \w)|pay"
    r"|earn|keep|share|speak|smoke|support|coach|teach|manage|subscribe|date|practi[sc]e|go by|look like|train)"
)
"""Verbs that tell a state if the time is longer."""
_STATES_PAST = r"(?:lived|resided|owned|belonged|weighed|cost|loved|hated|rented)"
_LASTING_PAST = r"(?:had|worked|studied|drove|wore|used|taught|coached|managed|shared)"
_SUBJECT = r"(?:(?:my|our|his|her|their|the|your) )?[^\W\d_][\w'.-]*(?: (?:and )?[\w'.-]+){0,2}?"
_OFTEN = r"(?:still |already |usually |mostly |normally |mainly |both |all |currently )?"
_JOINED = r"(?:married|engaged|employed|enrolled|registered|insured|divorced|retired|separated|pregnant|called|named)"
_NOT_STATE = re.compile(
    r"^\W*(?:(?:and|so|but|well),? )?(?:when\b|how (?:often|frequently|long|was|were|did (?:my|our|the) \w+ go)\b"
    r"|how many times\b|(?:what|which) (?:day|date|month|year|week|time)\b|(?:what|which) (?:was|were) (?:\S+ )?(?:last"
    r"|first|best|worst|most|latest)\b|who (?:was|were) (?:at|in|on|there|with)\b)"
    r"|\b(?:was|were) (?:i|we|\w+) (?:doing|going|up to|born|there)\b|\bwhat happened\b"
    r"|\b(?:was|were) the \b.{0,60}\b(?:i|we|he|she|they) (?:\w+ed|went|bought|saw|met|had|took|made|gave|got|did)\b"
)
"""Questions for events, dates, and numbers of times."""
_WAS = re.compile(
    rf"\b(?:was|were) {_SUBJECT} (?:\w+ing|{_JOINED}|an?|the|my|our|in|on|at|with|from|of|under|like|able|still)\b"
    rf"|^(?:who|what|whose|which \w+)(?:'s| was| were) (?:(?:my|our|his|her|their|the|\S+'s) )?(?!\w+ing\b)\w"
    r"|^(?:what|which|whose|how) (?:\w+ ){1,3}(?:was|were) [^\W\d_]+\b"
    r"|^(?:was|were) (?:i|we|he|she|they) (?!\w+ed\b)\w"
)
_DID = re.compile(rf"\bdid {_SUBJECT} {_OFTEN}{_STATES}\b|^(?:who|what|which)(?: \w+){{0,3}} {_STATES_PAST}\b")
_DID_LONGER = re.compile(rf"\bdid {_SUBJECT} {_OFTEN}{_LASTING}\b|^(?:who|what|which)(?: \w+){{0,3}} {_LASTING_PAST}\b")
_STILL = re.compile(rf"^(?:do|does|am|is|are) {_SUBJECT} still\b")
_BEFORE = re.compile(r"\b(before|after) (?=\S*\w)", re.IGNORECASE)
_SEVERAL = re.compile(
    r"^(?:in |at |on |to |for |with |from )?(?:what|which) (?:\w+ ){0,2}(?!\w*(?:ss|us|is) )\w{2,}s"
    r" (?:(?:in|of|at|from|for) (?:\w+ ){1,3}?)?(?:did|was|were)\b"
)


def find_state(question: str, period: TimeWindow | None, now: datetime) -> tuple[TimeWindow | None, bool]:
    """Return the past time that a question names, and whether it asks for what held then, or whether it still holds.

    In `Who was treasurer in May?` only the verb tells that a past time is meant.

    Args:
        question: the question.
        period: the time that it names by itself.
        now: the current time. Days begin in its time zone.

    >>> may = datetime(2026, 5, 1).astimezone()
    >>> [find_state(text, None, may)[1] for text in ("Where did I live in April?", "What did I buy in April?")]
    [True, False]
    """
    if _STILL.search(_normalize(question)) is not None or (period is not None and asks_for_change(question)):
        return period, True
    then = period or find_time(f"did I {question}", now)
    return (then, True) if _asks_for_state(question, then) else (period, False)


def _asks_for_state(question: str, period: TimeWindow | None) -> bool:
    text = _normalize(question if period is None else question.replace(period.expression, " "))
    if (period is None and _BEFORE.search(text) is None) or _NOT_STATE.search(text) is not None:
        return False
    if _DID.search(text) is not None or _WAS.search(text) is not None:
        return True
    is_long = period is None or period.until - period.since > _EVENT
    return is_long and _DID_LONGER.search(text) is not None


def asks_for_one_state(question: str) -> bool:
    """Return whether a question for a state asks for one thing, and not for `which cities`."""
    return _SEVERAL.search(_normalize(question)) is None


def split_times(plan: RoutePlan) -> list[str]:
    """Return the texts to search for: of a question for a state, what stands before and after `before` or `after`.

    The time that such a question names is left out, since memories of any kind hold its words.
    """
    if not plan.state:
        return [plan.question]
    match = _BEFORE.search(plan.question) if plan.period is None else None
    if match is not None and topic_stems(plan.question[: match.start()]):
        return [plan.question[: match.start()].rstrip(), plan.question[match.end() :]]
    text = plan.question if plan.period is None else plan.question.replace(plan.period.expression, "")
    return [text if topic_stems(text) else plan.question]


def prefer_held(plan: RoutePlan, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates with a bonus for those that held at the time of a question for a state, in the same order.

    What was said holds until another memory replaced it. Of what may have held then, the latest gets most, since
    nothing may have marked the others as replaced.
    """
    window = _find_window(plan, candidates)
    if window is None:
        return list(candidates)
    since, until = window
    begins = {c.id: begin for c in candidates if (begin := _begin_if_held(c, since, until)) is not None}
    places = {begin: place for place, begin in enumerate(sorted(set(begins.values())), 1)}
    return [
        replace(c, score=(c.score or 0.0) + HELD + _LATER * places[begins[c.id]] / len(places)) if c.id in begins else c
        for c in candidates
    ]


def _begin_if_held(candidate: Candidate, since: datetime | None, until: datetime) -> datetime | None:
    begin, end = validity(record_of(candidate))
    return begin if begin < until and (since is None or end is None or end > since) else None


def _find_window(plan: RoutePlan, candidates: Sequence[Candidate]) -> tuple[datetime | None, datetime] | None:
    """Return the time at which a state held; None for no time, or if no memory tells of what `before` names."""
    if not plan.state:
        return None
    if plan.period is not None:
        return plan.period.since, plan.period.until
    match = _BEFORE.search(plan.question)
    if match is None or match[1].lower() != "before":
        return None
    anchor = topic_stems(plan.question[match.end() :])
    shared = {c.id: len(anchor & stems_with_groups(c.passage.text)) for c in candidates}
    most = max(shared.values(), default=0)
    begins = [validity(record_of(c))[0] for c in candidates if most and shared[c.id] == most]
    return (None, min(begins)) if begins else None


def _normalize(question: str) -> str:
    return " ".join(question[:500].casefold().replace("\u2019", "'").split())
