"""Finds when something was said: `last week` or `in May` in a question, resolved against the clock.

Periods and vague counts are computed here; dateparser reads single days, months and years.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from meve._fork_safety import ForkSafeLock
from meve.components._rewriting import fold
from meve.memory._recall.periods import (
    HOLIDAYS,
    SEASONS,
    Window,
    before,
    holiday,
    length_of,
    month,
    part,
    period,
    season,
)

_WEEKDAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH = "(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_DAY_OF_MONTH = r"\d{1,2}(?:st|nd|rd|th)?"
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_COUNTS = ("an", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBER = rf"(?:\d{{1,3}}|a|{'|'.join(_COUNTS)})"
_VAGUE = {"couple of": (1, 3), "few": (2, 5), "several": (3, 8)}
"""How few and how many units vague words mean."""
_COUNT = rf"(?:a\ )?(?:couple\ of|few|several)|{_NUMBER}"
_UNIT = "minute|hour|day|week|weekend|fortnight|month|quarter|year"
_SEASON = "|".join(SEASONS)
_PART = r"early|mid|middle|late|start|beginning|end|first\ week|last\ week"
_ANY_PART = rf"(?:(?:at\ |in\ )?(?:the\ )?(?P<part>{_PART})(?:[ -](?:of\ )?(?:the\ )?))?"
_PAST = re.compile(
    rf"""\b(?:
    (?:the\ )?(?P<before_last>day|night|week|weekend|month|year)\ before\ last
    | (?P<half>half\ an?)\ (?P<half_unit>hour|year)\ ago
    | (?:(?P<about>about|around|roughly)\ )?(?P<count>{_COUNT})\ (?P<unit>{_UNIT})s?
      (?P<more>\ or\ two)?(?P<so>\ or\ so)?\ ago(?:\ (?:on\ |last\ )?(?P<ago_day>{_WEEKDAY}))?
    | (?:in|over|during|within|for|since)?\ ?the\ (?:last|past|previous)\ (?P<recent>{_COUNT})
      \ (?P<recent_unit>{_UNIT})s?
    | (?:in|over|during|within)\ the\ (?:last|past)\ (?P<rolling>hour|day|week|month|year)
    | (?:the\ )?(?:previous|past)\ (?P<previous>week|weekend|month|quarter|year)
    | (?P<week_day>{_WEEKDAY})\ (?:of\ )?last\ week
    | {_ANY_PART}last\ (?:(?P<last>week|weekend|month|quarter|year)|(?P<last_season>{_SEASON}))
    | earlier\ (?:(?P<today>today)|this\ (?P<earlier>week|month|quarter|year))
    | the\ day\ before\ yesterday | yesterday | last\ night
    | last\ {_WEEKDAY}
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Expressions that name a time in the past."""
_PAST_SIGNS = ("last", "ago", "past", "previous", "earlier", "yesterday")
"""Words, one of which is in a folded text if `_PAST` matches; they are found faster."""
_ANY = re.compile(
    rf"""\b(?:
    today | this\ (?:morning | afternoon | evening)
    | (?:in\ |at\ )?(?:the\ )?(?P<part>{_PART})(?:[ -](?:of\ )?)(?:the\ |this\ )?
      (?:(?P<part_unit>week|month|quarter|year)|(?P<part_month>{_MONTH})(?:,?\ (?P<part_year>\d{{4}}))?)
    | (?:in\ )?(?P<month>{_MONTH})\ (?:of\ )?(?P<month_of>last|this)\ year
    | this\ (?P<this>week|weekend|month|quarter|year)
    | how\ (?:was|were|did|has|have)\ (?:my|our)\ (?P<own>day|week|weekend|month|year)
    | (?P<weekend_since>since|over|at|on|during)\ the\ weekend
    | between\ (?P<from_day>{_WEEKDAY})\ and\ (?P<to_day>{_WEEKDAY})
    | (?P<season_since>in|over|during|since)\ (?:the\ |this\ )?(?P<season>{_SEASON})
    | (?P<holiday_since>at|around|over|since|on|during)\ (?P<holiday>{"|".join(HOLIDAYS)})(?:'?s)?
    | (?:on\ )? \d{{4}}-\d\d-\d\d
    | (?:on\ )? {_MONTH}\ {_DAY_OF_MONTH} (?:,?\ \d{{4}})?
    | (?:on\ )? (?:the\ )? (?:{_DAY_OF_MONTH}|{"|".join(_ORDINALS)})\ (?:of\ )?{_MONTH} (?:\ \d{{4}})?
    | on\ {_WEEKDAY}
    | (?:in|since|during|last)\ {_MONTH} (?:\ \d{{4}})?
    | (?:in|since|during|of)\ (?:19|20)\d\d
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Expressions that may also name when something happens. They count only with words of `_TELLING`."""
_TELLING = re.compile(
    r"\b(?:say|said|tell|told|mention(?:ed)?|talk(?:ed)?|report(?:ed)?|ask(?:ed)?|wrote|discuss(?:ed)?"
    r"|(?:did|was|were|had|have|has|what['\u2019]d) (?:i|we|my|our)|highlights"
    r"|(?:i|we) (?:saw|met|did|bought|went|visited)"
    r"|(?:what|anything|everything)(?: (?!will|would)\w+)? (?:happened|happen|went)"
    r"|(?:did|was|were|had|have|has)\b[^?!.]{0,80}\bthis (?:week|month|quarter|year))\b",
    re.IGNORECASE,
)
_DIRECTION = re.compile(rf"^(?:on|in|since|during)\ |^last\ (?={_MONTH})|\bthe\ (?!day)|\bof\ ")
"""Words that dateparser doesn't need."""
_ORDINAL = re.compile(rf"^(?:{'|'.join(_ORDINALS)})\b")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
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
    folded = fold(question)
    past = _PAST.search(question) if any(sign in folded for sign in _PAST_SIGNS) else None
    matches = [past, _ANY.search(question) if _TELLING.search(question) else None]
    match = max((each for each in matches if each), key=lambda each: len(each.group()), default=None)
    if match is None:
        return None
    expression = match.group()
    named = {name: text.lower() for name, text in match.groupdict().items() if text}
    since, until = _compute(named, now) or _resolve(" ".join(expression.lower().split()), now)
    return None if since is None or since > now else TimeWindow(expression=expression, since=since, until=until)


def _compute(named: Mapping[str, str], now: datetime) -> Window | None:
    """Return the time of an expression by its named parts; None leaves it to dateparser."""
    if unit := named.get("before_last"):
        return period("day" if unit == "night" else unit, now, 1 if unit == "weekend" else 2)
    if unit := named.get("half_unit"):
        middle = before(now, length_of(unit, 0.5))
        margin = length_of(unit, 0.15)
        return before(middle, margin), min(middle + margin, now)
    if unit := named.get("unit"):
        return _ago(named, unit, now)
    if unit := named.get("recent_unit"):
        unit = "week" if unit == "weekend" else unit
        return before(now, length_of(unit, _count(named["recent"])[1])), now
    if unit := named.get("rolling"):
        return before(now, length_of(unit, 1)), now
    if unit := named.get("previous") or named.get("last"):
        window = period(unit, now, 0 if unit == "weekend" and not _is_weekend(now) else 1)
        return part(named["part"], window) if "part" in named else window
    if name := named.get("last_season"):
        window = season(name, now, is_over=True)
        return part(named["part"], window) if "part" in named else window
    if name := named.get("week_day"):
        return _day_in(period("week", now, 1), name)
    if unit := named.get("earlier") or ("day" if "today" in named else ""):
        return period(unit, now)[0], now
    return _compute_possible(named, now)


def _compute_possible(named: Mapping[str, str], now: datetime) -> Window | None:
    """Do the same for expressions of `_ANY`."""
    if unit := named.get("this") or named.get("own"):
        return period(unit, now)
    if unit := named.get("part_unit"):
        window = part(named["part"], period(unit, now))
        return window if window[0] <= now else part(named["part"], period(unit, now, 1))
    if name := named.get("part_month") or named.get("month"):
        of_year = now.year - 1 if named.get("month_of") == "last" else now.year
        number = _MONTHS.index(name[:3]) + 12 * int(named.get("part_year", of_year))
        if number > now.year * 12 + now.month - 1 and "part_year" not in named:
            number -= 12
        window = month(number), month(number + 1)
        return part(named["part"], window) if "part" in named else window
    if since := named.get("weekend_since"):
        return _until_now(period("weekend", now), since, now)
    if name := named.get("season"):
        return _until_now(season(name, now, is_over=False), named["season_since"], now)
    if name := named.get("holiday"):
        return _until_now(holiday(name, now), named["holiday_since"], now)
    if name := named.get("from_day"):
        begin = _last_day(name, now)
        return begin, begin + timedelta(days=1 + (_DAYS.index(named["to_day"][:3]) - _DAYS.index(name[:3])) % 7)
    return None


def _ago(named: Mapping[str, str], unit: str, now: datetime) -> Window | None:
    least, most = _count(named["count"])
    if "more" in named:
        most = least + 1
    elif ("about" in named or "so" in named) and unit != "weekend" and "ago_day" not in named:
        return before(now, length_of(unit, most + 0.5)), before(now, length_of(unit, least - 0.5))
    elif unit in ("day", "month", "year") and least == most and "ago_day" not in named:
        return None
    if unit == "weekend" and not _is_weekend(now):
        least, most = least - 1, most - 1
    window = period(unit, now, most)[0], period(unit, now, least)[1]
    return _day_in(window, named["ago_day"]) if "ago_day" in named else window


def _count(words: str) -> tuple[int, int]:
    """Return how few and how many units a count means."""
    words = words.lower().removeprefix("a ")
    if words in _VAGUE:
        return _VAGUE[words]
    number = int(words) if words.isdecimal() else max(1, _COUNTS.index(words)) if words in _COUNTS else 1
    return number, number


def _until_now(window: Window, word: str, now: datetime) -> Window:
    return (window[0], now) if word == "since" else window


def _is_weekend(now: datetime) -> bool:
    return now.weekday() > 4


def _last_day(name: str, now: datetime) -> datetime:
    """Return the beginning of the last day of this name that has begun, but not today."""
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return day - timedelta(days=(day.weekday() - _DAYS.index(name[:3]) - 1) % 7 + 1)


def _day_in(window: Window, name: str) -> Window:
    """Return the day of this name in the week in which a window begins."""
    monday = window[0] - timedelta(days=window[0].weekday())
    begin = monday + timedelta(days=_DAYS.index(name[:3]))
    return begin, begin + timedelta(days=1)


def _resolve(expression: str, now: datetime) -> tuple[datetime | None, datetime]:
    """Return the beginning of the time that an expression names, None for none, and its end."""
    words = _ORDINAL.sub(lambda match: str(_ORDINALS.index(match.group()) + 1), _DIRECTION.sub("", expression))
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
