"""Compares the number of times that an answer tells with the memories that tell of it."""

import re
from collections.abc import Iterable

from meve.memory._recall.memory_passage import MemoryPassage
from meve.routing._base_forms import base_stem, base_stems, is_past
from meve.routing._evidence import RoutedRecall
from meve.routing._grounding import find_numbers
from meve.routing._plan import RoutePlan
from meve.routing._topic import topic_stems

_ASKED = re.compile(
    r"\bhow (?:often|many times) (?:did|have) (?:i|we) (?:ever |already |actually )?(?:go (?=\w+ing\b)|gone )?(\w+)",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"\b(?:couple|few|several|many|about|around|roughly|almost|nearly|at least|at most|over|more than|less than|or"
    r"|between|per|every|each|an? (?:day|week|month|year))\b",
    re.IGNORECASE,
)
_TIMES = re.compile(r"\b(?:once|twice|thrice|([\w-]{1,30}) times?)\b", re.IGNORECASE)
_BARE_WORDS = 2
"""The most words of an answer that may tell a number of times without saying `times`."""
_OPENING = re.compile(r"\W*(?:i|we) (?:also |just |finally |\w+ly )?(\w+)(?: (\w+ing)\b)?", re.IGNORECASE)
_WENT = frozenset({"went", "was", "been"})
_DENIED = re.compile(r"\b(?:not|never|no|almost|nearly)\b|n['\u2019]t\b", re.IGNORECASE)
_REPEATED = re.compile(
    r"\b(?:every|each|daily|weekly|monthly|usually|often|always|regularly|sometimes|times? (?:a|per)|(?:mon|tues|wednes"
    r"|thurs|fri|satur|sun)days)\b",
    re.IGNORECASE,
)
"""Words of habits, of which no number of memories tells how often something happened."""
_MORE = re.compile(r"\b(?:and|again|both|also|then)\b|,", re.IGNORECASE)
"""Words between several events of one memory."""


def find_miscount(plan: RoutePlan, answer: str, evidence: RoutedRecall) -> str:
    """Return why an answer to `how often` or `how many times` can't be right; empty if it may be.

    The least number is that of days on which the user told of it as done, in the time of the question. The most is
    that of all matching memories, more where one may tell of several events.
    """
    asked = _ASKED.search(plan.question)
    count = find_times(answer) if asked is not None and evidence.matching_ids else None
    if asked is None or count is None or evidence.matching_ids is None:
        return ""
    passages = [each.passage for each in evidence.passages if each.passage.id in evidence.matching_ids]
    texts = [passage.text for passage in passages]
    if any(_REPEATED.search(text) for text in texts):
        return ""
    unseen = len(evidence.matching_ids) - len(texts)
    most = unseen + sum(1 + len(_MORE.findall(text)) + sum(_count_told(text)) for text in texts)
    if count > most:
        return f"the evidence tells it {_name(most)} at most, not {_name(count)}"
    least = _count_days(plan, asked[1].lower(), (p for p in passages if isinstance(p, MemoryPassage)))
    return f"the evidence tells it on {least} days, not {_name(count)}" if count < least else ""


def find_times(answer: str) -> float | None:
    """Return the number of times that an answer tells; None for none, several or a vague one.

    >>> find_times("Nine times."), find_times("You went there twice."), find_times("A couple of times")
    (9.0, 2.0, None)
    """
    if _VAGUE.search(answer) is not None:
        return None
    told = _count_told(answer)
    if not told and len(answer.split()) <= _BARE_WORDS:
        told = find_numbers(answer)
    return told[0] if len(told) == 1 else None


def _name(count: float) -> str:
    return "once" if count == 1 else f"{count:g} times"


def _count_told(text: str) -> list[float]:
    return [number for match in _TIMES.finditer(text) for number in find_numbers(match[0])]


def _count_days(plan: RoutePlan, verb: str, passages: Iterable[MemoryPassage]) -> int:
    """Return the number of days on which the user told of what is asked for as done."""
    topic = topic_stems(plan.question, plan.period)
    days = set()
    for passage in passages:
        record = passage.record
        is_then = plan.period is None or plan.period.contains(record.valid_from or record.created_at)
        is_told = record.source == "chat_user" and topic <= frozenset(base_stems(passage.text))
        if is_then and is_told and _does(passage.text, verb):
            days.add(passage.day.date())
    return len(days)


def _does(text: str, verb: str) -> bool:
    """Return whether a text begins with what the user did, and the verb is that of the question."""
    match = _OPENING.match(text)
    if match is None or _DENIED.search(text) is not None:
        return False
    first, second = match[1].lower(), (match[2] or "").lower()
    done = second if first in _WENT else first if is_past(first) else ""
    return bool(done) and base_stem(done) == base_stem(verb)
