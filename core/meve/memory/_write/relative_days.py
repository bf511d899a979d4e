"""Replaces relative days, such as `yesterday`, by dates. Uses dateparser, for English."""

import re
from datetime import date, datetime, timedelta
from threading import Lock

from meve.errors import ModelError, wrap_errors

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
_LOCK = Lock()


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


def _parse(told: str, spoken: datetime | date) -> tuple[datetime | None, str]:
    from dateparser.date import DateDataParser  # here, since it takes a while

    base = datetime(spoken.year, spoken.month, spoken.day, 12)
    with _LOCK, wrap_errors(ModelError, "resolving a date with dateparser"):  # dateparser caches without a lock
        data = DateDataParser(languages=["en"], settings={"RELATIVE_BASE": base}).get_date_data(told)
    return data.date_obj, data.period
