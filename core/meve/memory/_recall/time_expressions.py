"""Finds when something was said: `last week` or `in May` in a question, resolved by dateparser against the clock."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from meve._fork_safety import ForkSafeLock

_WEEKDAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH = "(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_DAY_OF_MONTH = r"\d{1,2}(?:st|nd|rd|th)?"
_NUMBER = r"(?:\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_PAST = re.compile(
    rf"""\b(?:
    the\ day\ before\ yesterday | yesterday | last\ night
    | last\ (?:week(?:end)? | month | year | {_WEEKDAY})
    | {_NUMBER}\ (?:day|week|month|year)s?\ ago
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Expressions that name a time in the past."""
_ANY = re.compile(
    rf"""\b(?:
    today | this\ (?:morning | week | month | year)
    | (?:on\ )? \d{{4}}-\d\d-\d\d
    | (?:on\ )? {_MONTH}\ {_DAY_OF_MONTH} (?:,?\ \d{{4}})?
    | (?:on\ )? (?:the\ )? {_DAY_OF_MONTH}\ (?:of\ )?{_MONTH} (?:\ \d{{4}})?
    | on\ {_WEEKDAY}
    | (?:in|since|during|last)\ {_MONTH} (?:\ \d{{4}})?
    | (?:in|since|during)\ (?:19|20)\d\d
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Expressions that may also name when something happens. They count only with a verb of `_TELLING`."""
_TELLING = re.compile(
    r"\b(?:say|said|tell|told|mention(?:ed)?|talk(?:ed)?|report(?:ed)?|ask(?:ed)?|wrote|discuss(?:ed)?|did (?:i|we))\b",
    re.IGNORECASE,
)
_DIRECTION = re.compile(rf"^(?:on|in|since|during)\ |^last\ (?={_MONTH})|\bthe\ (?!day)|\bof\ ")
"""Words that dateparser doesn't need."""
_LOCK = ForkSafeLock()


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindow:
    """The time that a question names."""

    expression: str
    """The words of the question."""
    since: datetime
    """The first moment, in UTC."""
    until: datetime
    """The first moment after it, in UTC."""

    def contains(self, moment: datetime) -> bool:
        """Return whether a moment is within it."""
        return self.since <= moment < self.until

    def to_dict(self) -> dict[str, str]:
        """Return JSON-ready values, times in ISO 8601."""
        return {"expression": self.expression, "since": self.since.isoformat(), "until": self.until.isoformat()}


def find_time(question: str, now: datetime) -> TimeWindow | None:
    """Return the past time that an English question names; None for none.

    Weeks begin on Mondays. A month or day without a year is the last one that has begun.

    Args:
        question: the question.
        now: the current time, in UTC.

    >>> window = find_time("What did I say last week?", datetime(2026, 5, 20, tzinfo=UTC))
    >>> window.since.isoformat(), window.until.isoformat()
    ('2026-05-11T00:00:00+00:00', '2026-05-18T00:00:00+00:00')
    """
    match = _PAST.search(question) or (_ANY.search(question) if _TELLING.search(question) else None)
    if match is None:
        return None
    expression = match.group()
    since, until = _resolve(" ".join(expression.lower().split()), now)
    return None if since is None or since > now else TimeWindow(expression=expression, since=since, until=until)


def _resolve(expression: str, now: datetime) -> tuple[datetime | None, datetime]:
    """Return the beginning of the time that an expression names, None for none, and its end."""
    words = _DIRECTION.sub("", expression)
    day, period = _parse(words.replace("weekend", "saturday"), now)
    if day is None:
        return None, now
    day = datetime(day.year, day.month, day.day, tzinfo=UTC)
    if period == "year":
        since, until = day.replace(month=1, day=1), day.replace(year=day.year + 1, month=1, day=1)
    elif period == "month":
        since = day.replace(day=1)
        until = (since + timedelta(days=31)).replace(day=1)
    elif period == "week":
        since = day - timedelta(days=day.weekday())
        until = since + timedelta(days=7)
    else:
        since, until = day, day + timedelta(days=2 if "weekend" in words else 1)
    return since, max(until, now) if expression.startswith("since") else until


def _parse(words: str, now: datetime) -> tuple[datetime | None, str]:
    """Return a moment and the period, such as `week`, that words name."""
    from dateparser.date import DateDataParser

    settings = {"RELATIVE_BASE": now.replace(tzinfo=None), "PREFER_DATES_FROM": "past"}
    with _LOCK:  # dateparser caches per language without a lock
        data = DateDataParser(languages=["en"], settings=settings).get_date_data(words)
    return data.date_obj, data.period
