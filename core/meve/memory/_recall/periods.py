"""Calendar arithmetic: periods such as weeks, seasons and holidays, counted back from now, in the time zone of now."""

from datetime import UTC, datetime, timedelta

SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The first month of each season of the northern hemisphere; each has three."""
HOLIDAYS = ("christmas", "xmas", "new year", "halloween", "easter")
_LENGTHS = {
    "minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7),
    "fortnight": timedelta(days=14), "month": timedelta(days=30.44), "quarter": timedelta(days=91.3),
    "year": timedelta(days=365.25),
}  # fmt: skip
FIRST_YEAR = 2
"""The year before which nothing begins."""
Window = tuple[datetime, datetime]
"""The first moment, and the first moment after it."""


def length_of(unit: str, count: float) -> timedelta:
    """Return the length of some units, at most 1,000 years."""
    return min(_LENGTHS[unit] * count, timedelta(days=365_000))


def before(now: datetime, length: timedelta) -> datetime:
    """Return the moment this long before now, not before the first year."""
    moment = now.astimezone(UTC)  # clocks that are set back don't make it longer
    return (moment - min(length, moment - month(12 * FIRST_YEAR, moment))).astimezone(now.tzinfo)


def period(unit: str, now: datetime, back: int = 0) -> Window:
    """Return the calendar period, such as `week`, that lies this many periods before the current one."""
    day = now.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    if unit in ("minute", "hour"):
        moment = before(now, length_of(unit, back))
        return before(moment, max(length_of(unit, back) / 2, timedelta(hours=1))), now
    if unit == "weekend":
        saturday = day - timedelta(days=(day.weekday() - 5) % 7)  # of the weekend that began last
        begin = _days_before(saturday, 7 * back)
        return begin, begin + timedelta(days=2)
    if unit in ("day", "week", "fortnight"):
        days = {"day": 1, "week": 7, "fortnight": 14}[unit]
        monday = day if unit == "day" else day - timedelta(days=day.weekday())
        begin = _days_before(monday, days * back)
        return begin, begin + timedelta(days=min(days, 7))
    months = {"month": 1, "quarter": 3, "year": 12}[unit]
    first = (day.year * 12 + day.month - 1) // months * months - months * back
    return month(first, now), month(first + months, now)


def _days_before(day: datetime, days: int) -> datetime:
    """Return the beginning of the day this many days earlier, however long the days between are."""
    return day - min(timedelta(days=days), day - month(12 * FIRST_YEAR, day))


def month(number: int, now: datetime) -> datetime:
    """Return the beginning of a month in the time zone of now, counted from the year 0; not before the first year."""
    number = max(number, 12 * FIRST_YEAR)
    return datetime(number // 12, number % 12 + 1, 1, tzinfo=now.tzinfo)


def season(name: str, now: datetime, *, is_over: bool, year: int | None = None) -> Window:
    """Return the last season of this name that has begun, or that is over; of a year, both winters that touch it."""
    first = (now.year if year is None else year) * 12 + SEASONS[name] - 1
    if year is not None:
        return month(first - 12 if name == "winter" else first, now), month(first + 3, now)
    while month(first + 3 if is_over else first, now) > now:
        first -= 12
    return month(first, now), month(first + 3, now)


def holiday(name: str, now: datetime) -> Window:
    """Return the days around the last holiday of this name."""
    year = now.year
    while (day := _day_of(name, year).replace(tzinfo=now.tzinfo)) > now:
        year -= 1
    return day - timedelta(days=3), day + timedelta(days=4)


def _day_of(name: str, year: int) -> datetime:
    if name == "easter":
        return _easter(year)
    dates = {"christmas": (12, 25), "xmas": (12, 25), "new year": (1, 1), "halloween": (10, 31)}
    return datetime(year, *dates[name])


def _easter(year: int) -> datetime:
    """Return Easter Sunday by the Gregorian calendar (Gauss's rule, as Lichtenberg completed it)."""
    k = year // 100
    m = 15 + (3 * k + 3) // 4 - (8 * k + 13) // 25
    s = 2 - (3 * k + 3) // 4
    a = year % 19
    d = (19 * a + m) % 30
    r = (d + a // 11) // 29
    og = 21 + d - r
    sz = 7 - (year + year // 4 + s) % 7
    return datetime(year, 3, 1) + timedelta(days=og + 7 - (og - sz) % 7 - 1)


def part(which: str, window: Window) -> Window:
    """Return the early, middle or late third of a window, its first or last week, or a half."""
    begin, end = window
    if which.endswith("week"):
        week = timedelta(days=7)
        return (begin, min(begin + week, end)) if which.startswith("first") else (max(begin, end - week), end)
    if which.endswith("half"):
        is_year = end - begin > timedelta(days=300)
        middle = month(12 * begin.year + 6, begin) if is_year else begin + (end - begin) / 2
        return (begin, middle) if which.startswith("first") else (middle, end)
    third = (end - begin) / 3
    if which in ("early", "start", "beginning"):
        return begin, begin + third
    return (begin + third, end - third) if which in ("mid", "middle") else (end - third, end)
