"""Finds when something was said: `last week` or `since May` in a question, resolved against the clock."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from dateutil.relativedelta import relativedelta, weekday

from meve.components._rewriting import fold
from meve.memory._recall.periods import (
    FIRST_YEAR,
    MONDAY,
    Window,
    before,
    holiday,
    length_of,
    months,
    part,
    period,
    season,
)
from meve.memory._recall.time_patterns import (
    ANY,
    APPROXIMATE,
    BEFORE,
    CLAUSE,
    COUNTS,
    DAYS,
    JUST_DONE,
    LISTING,
    MONTHS,
    MORE,
    NOWADAYS,
    ONWARDS,
    ORDINALS,
    PAST,
    PAST_SIGNS,
    PRESENT,
    RANGE,
    RELATION,
    TAIL,
    TELLING,
    TIME,
    TIME_SIGNS,
    VAGUE,
    YEARLY,
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """An expression of time in a question."""

    start: int
    end: int
    window: Window | None
    """None if it can't be computed which time is meant."""
    named: Mapping[str, str]


def find_time(question: str, now: datetime) -> TimeWindow | None:
    """Return the past time that an English question names; None for none.

    Weeks begin on Mondays. A month or day without a year is the last one that has begun. Of several times, the window
    reaches from the first to the last. It is never narrower than what the question names; in doubt there is none.

    Args:
        question: the question.
        now: the current time. Days begin in its time zone.

    >>> window = find_time("What did I say last week?", datetime(2026, 5, 20, tzinfo=UTC))
    >>> window.since.isoformat(), window.until.isoformat()
    ('2026-05-11T00:00:00+00:00', '2026-05-18T00:00:00+00:00')
    """
    found: _Found | None = None
    windows, end = list[Window](), 0
    for each in sorted(_find_all(question, now), key=lambda each: (each.start, -each.end)):
        if each.start < end:
            continue
        if each.window is None:
            return None
        end = each.end
        windows.append(each.window)
        if found is None or each.end - each.start > found.end - found.start:
            found = each
    if found is None:
        return None
    since, until = min(since for since, _ in windows), max(until for _, until in windows)
    return TimeWindow(
        expression=question[found.start : found.end], since=since.astimezone(UTC), until=until.astimezone(UTC)
    )


def _find_all(question: str, now: datetime) -> Iterator[_Found]:
    """Yield all expressions of past times; they may overlap."""
    folded = fold(question)
    is_past, is_time = (any(sign in folded for sign in signs) for signs in (PAST_SIGNS, TIME_SIGNS))
    if not is_past and not is_time:
        return
    is_told, is_now = TELLING.search(question) is not None, NOWADAYS.match(question) is not None
    for pattern in [*([PAST] if is_past else []), *([ANY] if is_time and is_told else [])]:
        end = 0
        for match in pattern.finditer(question):
            found = _evaluate(match, now)
            if is_now and found.named.keys() & {"now", "this"} and not _was_done(question, found):
                continue  # "Who has my truck today?"
            if match.start() >= end and found.window is not None and found.window[0] <= now:
                found = _extend(question, found, now)
                end = found.end
                yield found
    is_listed = not is_told and _lists(question)
    for match in RELATION.finditer(question) if is_told or is_listed else ():
        related = _relate(question, match, now)
        if related and (is_told or (match[1].lower() == "since" and TAIL.match(question, related.end))):
            yield related


def _was_done(question: str, time: _Found) -> bool:
    """Return whether a time in a question about now tells when something was done: "the house that I saw today"."""
    return time.named.get("now") != "now" and JUST_DONE.search(question[: time.start][-80:]) is not None


def _lists(question: str) -> bool:
    """Return whether a question that tells no tense may be about the past, as `Hikes since May?` does."""
    is_question = LISTING.match(question) is not None or question.rstrip().endswith("?")
    return is_question and PRESENT.search(question) is None


def _evaluate(match: re.Match[str], now: datetime) -> _Found:
    named = {name: text.lower() for name, text in match.groupdict().items() if text}
    return _Found(start=match.start(), end=match.end(), window=_compute_safely(named, now), named=named)


def _read(question: str, start: int, now: datetime) -> _Found | None:
    """Return the time that stands at this place; None for none."""
    starts = [start, start + 4] if question[start : start + 4].lower() == "the " else [start]
    matches = [match for place in starts for pattern in (PAST, TIME) if (match := pattern.match(question, place))]
    found = _evaluate(max(matches, key=lambda match: match.end()), now) if matches else None
    return found if found and found.window is not None else None


def _extend(question: str, found: _Found, now: datetime) -> _Found:
    """Return a time together with those that are listed after it, as in `in May or June`."""
    while found.window and (more := MORE.match(question, found.end)) and (other := _read(question, more.end(), now)):
        window = _join(found, other, is_range=False)
        found = replace(found, end=other.end, window=window, named=other.named)
    return found


def _join(first: _Found, second: _Found, *, is_range: bool) -> Window | None:
    """Return the window from one time to another one; None if their years can't be told."""
    assert first.window is not None
    assert second.window is not None
    begin, other = first.window, second.window
    is_of_year = _has_year(second.named) and not _has_year(first.named)
    if first.named.keys() & YEARLY and (begin[0] > other[0] if is_range else is_of_year):
        again = _compute_safely(first.named, other[0] if is_range else other[1] - timedelta(microseconds=1))
        if again is None or (not is_range and again[0].year != other[0].year):
            return None
        begin = again
    if is_range and begin[0] > other[0]:
        return None
    return min(begin[0], other[0]), max(begin[1], other[1])


def _has_year(named: Mapping[str, str]) -> bool:
    return any(name.endswith(("_year", "_of")) or name == "iso" for name in named)


def _relate(question: str, match: re.Match[str], now: datetime) -> _Found | None:
    """Return the time that is `since`, `before`, `between` … others; None for none."""
    relation, first = match[1].lower(), _read(question, match.end(), now)
    if first is None or first.window is None or first.window[0] > now:
        return None
    end = first.end
    window: Window | None = None
    if relation in ("between", "from"):
        if joint := RANGE.match(question, end):
            second = _read(question, joint.end(), now)
            end = second.end if second else joint.end()
            window = _join(first, second, is_range=True) if second else None
        elif onwards := ONWARDS.match(question, end):
            end, window = onwards.end(), (first.window[0], now)
        else:
            return None
    elif not CLAUSE.match(question, end) and not (relation in BEFORE and PRESENT.search(question)):
        other = MORE.match(question, end)
        is_listed = other is not None and _read(question, other.end(), now) is not None
        window = None if is_listed and relation != "since" else _shift(relation, first, now)
    if window is not None and window[0] >= window[1]:
        window = None
    return _Found(start=match.start(), end=end, window=window, named=first.named)


def _shift(relation: str, found: _Found, now: datetime) -> Window:
    """Return the time that is `since` or `before` another one, or near it."""
    assert found.window is not None
    since, until = found.window
    is_approximate = not found.named.keys().isdisjoint(APPROXIMATE)
    if relation == "since":
        return since, now
    if relation == "after":
        return (since if is_approximate else until), now
    if relation in BEFORE:
        ends_before = relation in ("before", "prior to") and not is_approximate
        return datetime(FIRST_YEAR, 1, 1, tzinfo=now.tzinfo), (since if ends_before else until)
    days = timedelta(days=3)
    if relation == "around":
        margin = max((until - since) / 2, days)
        return since - margin, until + margin
    if until - since > timedelta(days=2):  # a week of a month
        return since, until
    if relation == "weekend of":
        return since - days, until + days
    return since + MONDAY, since + timedelta(days=7)


def _compute_safely(named: Mapping[str, str], now: datetime) -> Window | None:
    """Return the time of an expression by its named parts; None for one that no calendar has, or before all others."""
    try:
        window = _compute(named, now)
    except (ValueError, OverflowError):
        return None
    return window if window and window[0].year > FIRST_YEAR and window[0] < window[1] else None


def _compute(named: Mapping[str, str], now: datetime) -> Window | None:
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
    if unit := named.get("earlier") or ("day" if "today" in named else ""):
        return period(unit, now)[0], now
    return _compute_possible(named, now)


def _compute_possible(named: Mapping[str, str], now: datetime) -> Window | None:
    """Do the same for expressions of `ANY`."""
    if unit := named.get("this") or named.get("own") or ("day" if "now" in named else ""):
        return period(unit, now)
    if whole := named.get("part_unit"):
        window = part(named["part"], period(whole, now))
        return window if window[0] <= now else part(named["part"], period(whole, now, 1))
    if name := named.get("part_month") or named.get("month"):
        window = months(_month(name), 1, now, _year(named, "part" if "part" in named else "month", now))
        return part(named["part"], window) if "part" in named else window
    if only := named.get("part_only") or named.get("only_year"):
        window = months(1, 12, now, int(only))
        return part(named["part"], window) if "part" in named else window
    if name := named.get("ordinal") or named.get("quarter"):
        return months(3 * _number(name) - 2, 3, now, _year(named, "quarter", now))
    if "weekend" in named:
        return period("weekend", now)
    if name := named.get("season"):
        return season(name, now, is_over=False, year=_year(named, "season", now))
    if name := named.get("holiday"):
        year = _year(named, "holiday", now)
        return holiday(name, now if year is None else datetime(year, 12, 31, tzinfo=now.tzinfo))
    return _compute_days(named, now)


def _compute_days(named: Mapping[str, str], now: datetime) -> Window | None:
    """Do the same for days."""
    if "day_ago" in named or "two_days_ago" in named:
        return period("day", now, 1 if "day_ago" in named else 2)
    if name := named.get("week_day"):
        return _day_in(period("week", now, 1), name)
    if name := named.get("from_day"):
        begin = _last_day(name, now)
        return begin, begin + timedelta(days=1 + (DAYS.index(named["to_day"][:3]) - DAYS.index(name[:3])) % 7)
    if name := named.get("weekday") or named.get("last_day"):
        begin = _last_day(name, now)
        return begin, begin + timedelta(days=1)
    return _days_of(named, now)


def _days_of(named: Mapping[str, str], now: datetime) -> Window | None:
    """Return the day, or the days from one to another, of a date."""
    if iso := named.get("iso"):
        year, number, first = map(int, iso.split("-"))
        return _days(year, number, first, first, now)
    if name := named.get("date_month"):
        day, year_of = named["date_day"], _year(named, "date", now)
        last = named.get("date_to", day)
    else:
        name, year_of = named["day_month"], _year(named, "day", now)
        day, last = named.get("from", named["day"]), named["day"]
    number = _month(name)
    for each in (year_of,) if year_of is not None else range(now.year, now.year - 9, -1):
        window = _days(each, number, _number(day), _number(last), now)
        if window and (year_of is not None or window[0] <= now):
            return window
    return None


def _days(year: int, number: int, first: int, last: int, now: datetime) -> Window | None:
    """Return the days of a month; None if there are none of these numbers in that year."""
    try:
        begin = datetime(year, number, first, tzinfo=now.tzinfo)
        end = begin.replace(day=last) + timedelta(days=1)
    except (ValueError, OverflowError):
        return None
    return (begin, end) if begin < end else None


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else ORDINALS.index(text) + 1


def _year(named: Mapping[str, str], name: str, now: datetime) -> int | None:
    """Return the year that a part of an expression names; None for none."""
    if text := named.get(f"{name}_of"):
        return now.year - (text == "last")
    return int(named[f"{name}_year"]) if f"{name}_year" in named else None


def _month(name: str) -> int:
    return MONTHS.index(name[:3]) + 1


def _ago(named: Mapping[str, str], unit: str, now: datetime) -> Window | None:
    least, most = _count(named["count"])
    if "more" in named:
        most = least + 1
    elif ("about" in named or "so" in named) and unit != "weekend" and "ago_day" not in named:
        return before(now, length_of(unit, most + 0.5)), before(now, length_of(unit, least - 0.5))
    if unit == "weekend" and not _is_weekend(now):
        least, most = least - 1, most - 1
    window = period(unit, now, most)[0], period(unit, now, least)[1]
    return _day_in(window, named["ago_day"]) if "ago_day" in named else window


def _count(words: str) -> tuple[int, int]:
    """Return how few and how many units a count means."""
    words = words.lower().removeprefix("a ")
    if words in VAGUE:
        return VAGUE[words]
    number = int(words) if words.isdecimal() else max(1, COUNTS.index(words)) if words in COUNTS else 1
    return number, number


def _is_weekend(now: datetime) -> bool:
    return now.weekday() > 4


def _last_day(name: str, now: datetime) -> datetime:
    """Return the beginning of the last day of this name that has begun, but not today."""
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    last: datetime = day + relativedelta(days=-1, weekday=weekday(DAYS.index(name[:3]), -1))
    return last


def _day_in(window: Window, name: str) -> Window:
    """Return the day of this name in the week in which a window begins."""
    begin = window[0] + MONDAY + timedelta(days=DAYS.index(name[:3]))
    return begin, begin + timedelta(days=1)
