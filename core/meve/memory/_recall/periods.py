"""Calendar arithmetic: periods such as weeks, seasons and holidays, counted back from now, in the time zone of now."""

from datetime import UTC, datetime, time, timedelta

from dateutil.easter import easter
from dateutil.relativedelta import MO, SA, relativedelta

SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The first month of each season of the northern hemisphere; each has three."""
HOLIDAYS = ("christmas", "xmas", "new year", "halloween", "easter")
_LENGTHS = {
    "minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7),
    "fortnight": timedelta(days=14), "month": timedelta(days=30.44), "quarter": timedelta(days=91.3),
    "year": timedelta(days=365.25),
}  # fmt: skip
MONDAY, _SATURDAY = (relativedelta(weekday=day(-1)) for day in (MO, SA))
"""The last day of this name: today or before."""
_YEAR = relativedelta(years=1)
FIRST_YEAR = 2
"""The year before which nothing begins."""
Window = tuple[datetime, datetime]
"""The first moment, and the first moment after it."""


def length_of(unit: str, count: float) -> timedelta:
    """Return the length of some units."""
    return _LENGTHS[unit] * count


def before(now: datetime, length: timedelta) -> datetime:
    """Return the moment this long before now.

    Raises:
        OverflowError: there is no such moment.
    """
    return (now.astimezone(UTC) - length).astimezone(now.tzinfo)  # clocks that are set back don't make it longer


def period(unit: str, now: datetime, back: int = 0) -> Window:
    """Return the calendar period, such as `week`, that lies this many periods before the current one.

    Raises:
        OverflowError, ValueError: there is no such period.
    """
    day = now.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    if unit in ("minute", "hour"):
        moment = before(now, length_of(unit, back))
        return before(moment, max(length_of(unit, back) / 2, timedelta(hours=1))), now
    if unit == "day":
        begin = day - timedelta(days=back)
        return begin, begin + timedelta(days=1)
    if unit == "weekend":  # the one that began last
        begin = day - timedelta(weeks=back) + _SATURDAY
        return begin, begin + timedelta(days=2)
    if unit in ("week", "fortnight"):
        begin = day - timedelta(weeks=back if unit == "week" else 2 * back) + MONDAY
        return begin, begin + timedelta(days=7)
    count = {"month": 1, "quarter": 3, "year": 12}[unit]
    first = (day.month - 1) // count * count + 1
    begin = day.replace(month=first, day=1) - relativedelta(months=count * back)
    return begin, begin + relativedelta(months=count)


def months(first: int, count: int, now: datetime, year: int | None = None) -> Window:
    """Return some months from one of a year on; without a year, the last ones that have begun."""
    begin = datetime(now.year if year is None else year, first, 1, tzinfo=now.tzinfo)
    if year is None and begin > now:
        begin -= _YEAR
    return begin, begin + relativedelta(months=count)


def season(name: str, now: datetime, *, is_over: bool, year: int | None = None) -> Window:
    """Return the last season of this name that has begun, or that is over; of a year, both winters that touch it."""
    if year is not None and name == "winter":
        return months(12, 15, now, year - 1)
    begin, end = months(SEASONS[name], 3, now, year)
    is_last = year is None and is_over and end > now
    return (begin - _YEAR, end - _YEAR) if is_last else (begin, end)


def holiday(name: str, now: datetime) -> Window:
    """Return the days around the last holiday of this name."""
    year = now.year
    while (day := _day_of(name, year).replace(tzinfo=now.tzinfo)) > now:
        year -= 1
    return day - timedelta(days=3), day + timedelta(days=4)


def _day_of(name: str, year: int) -> datetime:
    if name == "easter":
        return datetime.combine(easter(year), time())
    dates = {"christmas": (12, 25), "xmas": (12, 25), "new year": (1, 1), "halloween": (10, 31)}
    return datetime(year, *dates[name])


def part(which: str, window: Window) -> Window:
    """Return the early, middle or late third of a window, its first or last week, or a half."""
    begin, end = window
    if which.endswith("week"):
        week = timedelta(days=7)
        return (begin, min(begin + week, end)) if which.startswith("first") else (max(begin, end - week), end)
    if which.endswith("half"):
        is_year = end - begin > timedelta(days=300)
        middle = begin + relativedelta(months=6) if is_year else begin + (end - begin) / 2
        return (begin, middle) if which.startswith("first") else (middle, end)
    third = (end - begin) / 3
    if which in ("early", "start", "beginning"):
        return begin, begin + third
    return (begin + third, end - third) if which in ("mid", "middle") else (end - third, end)
