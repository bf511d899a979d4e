"""Replaces relative days, such as `yesterday`, by dates. Uses dateparser, for English."""

import re
from datetime import date, datetime, timedelta

from meve._fork_safety import ForkSafeLock
from meve.errors import ModelError, wrap_errors
from meve.memory._contradiction.lexicon import PAST_VERBS

_UNIT = "(?:day|week|month|year)"
_WEEKDAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_COUNT = r"(?:\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_RELATIVE = re.compile(
    rf"""\b(?P<before>(?:since|until|till|by|from|for|before|after|on)\s+)?(?P<told>
    the\s+day\s+(?:before\s+yesterday|after\s+tomorrow) | yesterday | today | tomorrow | last\s+night | tonight
    | (?:last|next|this)\s+{_WEEKDAY} | (?:last|next)\s+(?:week|month|year) (?!\w|\s+(?:of|in)\b)
    | {_COUNT}\s+{_UNIT}s?\s+ago | in\s+{_COUNT}\s+{_UNIT}s? (?!\s+time)
    )\b(?!['’-]\w|\s+and\s+age)""",
    re.IGNORECASE | re.VERBOSE,
)
_CLAUSE_END = re.compile(r"[.,;:!?](?!\d)|\b(?:and|but|or|that|because|so)\b")
_REPEATED = re.compile(
    r"\b(?:times?|once|twice|can|could|usually|normally|often|always|n?ever|(?:have|has|had)n['’]t)\b", re.IGNORECASE
)
"""Words of a clause in which "in two days" is the time that something takes, or took."""
_AHEAD = re.compile(
    r"\b(?:will|shall|is|are|am)\b|['’](?:ll|m|re)\b|(?<!able )(?<!used )(?<!managed )\bto\b", re.IGNORECASE
)
"""Words of a clause in which it counts from now."""
_PAST = re.compile(
    rf"\b(?:\w+[^\We]ed|read|wrote|swam|drove|flew|ate|drank|slept|spent|built|grew|learnt|taught|{'|'.join(PAST_VERBS)})\b",
    re.IGNORECASE,
)
_LOCK = ForkSafeLock()


def resolve_days(text: str, spoken: datetime | date) -> str:
    """Return a text in which days, weeks, months and years relative to a moment are dates.

    Args:
        text: an English text.
        spoken: when it was said.

    Raises:
        ModelError: dateparser failed.

    >>> resolve_days("Yesterday I met Ann. I fly to Rome next Friday.", date(2026, 5, 20))
    'On 19 May 2026 I met Ann. I fly to Rome on 22 May 2026.'
    """
    return _RELATIVE.sub(lambda match: _as_date(match, spoken), text)


def _as_date(match: re.Match[str], spoken: datetime | date) -> str:
    told, before = match["told"], match["before"] or ""
    if told[:3].lower() == "in " and _is_span(match):
        return match[0]
    day, period = _parse(" ".join(told.lower().split()), spoken)
    if day is None:
        return match[0]
    if period == "year":
        preposition, when = "in", f"{day.year}"
    elif period == "month":
        preposition, when = "in", f"{day:%B %Y}"
    elif period == "week":
        day -= timedelta(days=day.weekday())
        preposition, when = "in", f"the week of {day.day} {day:%B %Y}"
    else:
        preposition, when = "on", f"{day.day} {day:%B %Y}"
    phrase = f"{before}{when}" if before else f"{preposition} {when}"
    return phrase[0].upper() + phrase[1:] if match[0][0].isupper() else phrase


def _is_span(match: re.Match[str]) -> bool:
    """Return whether "in two days" tells how long something takes, as in "I read it in two days"."""
    clause = _CLAUSE_END.split(match.string[max(0, match.start() - 200) : match.start()])[-1]
    if not clause.strip():
        clause = _CLAUSE_END.split(match.string[match.end() : match.end() + 200], maxsplit=1)[0]
    return bool(_REPEATED.search(clause) or (_PAST.search(clause) and not _AHEAD.search(clause)))


def _parse(told: str, spoken: datetime | date) -> tuple[datetime | None, str]:
    from dateparser.date import DateDataParser  # here, since it takes a while

    base = datetime(spoken.year, spoken.month, spoken.day, 12)
    with _LOCK, wrap_errors(ModelError, "resolving a date with dateparser"):  # dateparser caches without a lock
        data = DateDataParser(languages=["en"], settings={"RELATIVE_BASE": base}).get_date_data(told)
    return data.date_obj, data.period
