"""Tells whether a memory and an answer may give one value in different words, for English.

A missed contradiction does less harm than a false one, so whatever can't be compared contradicts nothing.
"""

import re
from itertools import product

from meve.memory._contradiction.lexicon import MONTHS
from meve.memory._contradiction.statements import Statement

_DAY_KINDS = (
    MONTHS,
    frozenset({"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}),
    frozenset({"daily", "weekly", "monthly", "yearly"}),
)
_SIZES = {
    unit: (dimension, size)
    for dimension, sizes in {
        "weight": {"g": 1.0, "lb": 453.6, "pound": 453.6},
        "length": {"mm": 1.0, "mile": 1_609_344.0, "ft": 304.8, "in": 25.4},
        "volume": {"ml": 1.0},
        "time": {"min": 1.0, "day": 1_440.0, "month": 43_830.0},
        "degrees Celsius": {"°c": 1.0},
        "degrees Fahrenheit": {"°f": 1.0},
        **{currency: {currency: 1.0} for currency in ("eur", "usd", "gbp", "yen", "chf")},
    }.items()
    for unit, size in sizes.items()
}
"""The dimension of each unit of normalised values, and its size. Only values of one dimension are compared."""
_ROUNDED = 0.07
"""The relative difference that may come from rounding."""
_PERIODS_IN_ANOTHER = (7, 12, 24, 30, 52, 60, 365)
_PERIOD = re.compile(r"\b(?:an?|per|each|every) (hour|day|week|month|year)\b|\b(hour|dai|week|month|annual|year)ly\b")
_PERIOD_NAMES = {"dai": "day", "annual": "year"}
_ROUGHLY = re.compile(r"(?:\b(?:about|around|roughly|approximately|almost|nearly) |[~≈] ?)\d", re.I)
_BEFORE_NOON = re.compile(r"\d\s?a\.?m\b|\bin the morning\b|\bmidnight\b|\b0\d:\d\d", re.I)
_AFTER_NOON = re.compile(r"\d\s?p\.?m\b|\bin the (?:afternoon|evening)\b|\bnoon\b|\btonight\b", re.I)
_TIME = re.compile(r"(\d\d):(\d\d)")
_HOUR = re.compile(r"[1-9]|1[0-2]")
_AMOUNT = re.compile(r"(-?\d+(?:\.\d+)?)([a-z°]*)")


def may_be_same_numbers(memory: Statement, claim: Statement) -> bool:
    """Return whether one of the memory's numbers may be one of the claim's, or none can be compared.

    >>> from meve.memory._contradiction.statements import parse_statement
    >>> ferry = parse_statement("The ferry leaves at 18:00.")
    >>> [may_be_same_numbers(ferry, parse_statement(f"It leaves at {time}.")) for time in ("6", "6 am", "7")]
    [True, False, False]
    """
    pairs = product(memory.values.numbers, claim.values.numbers)
    verdicts = {_may_be_same(mine, memory, theirs, claim) for mine, theirs in pairs}
    return True in verdicts or False not in verdicts


def may_be_same_days(mine: frozenset[str], theirs: frozenset[str]) -> bool:
    """Return whether two sets of days don't exclude each other: "tomorrow" may be any weekday."""
    return not any(mine - theirs <= kind and theirs - mine <= kind for kind in _DAY_KINDS)


def _may_be_same(mine: str, memory: Statement, theirs: str, claim: Statement) -> bool | None:
    """Return whether two normalised numbers may mean the same; None if they can't be compared."""
    if _TIME.fullmatch(mine) or _TIME.fullmatch(theirs):
        return _may_be_same_time(mine, memory, theirs, claim)
    one, other = _AMOUNT.fullmatch(mine), _AMOUNT.fullmatch(theirs)
    if not (one and other):
        return mine == theirs
    dimension, size = _SIZES.get(one[2], ("", 1.0))
    other_dimension, other_size = _SIZES.get(other[2], ("", 1.0))
    if dimension and other_dimension and dimension != other_dimension:
        return None
    is_converted = bool(dimension and other_dimension) and size != other_size
    if not dimension or not other_dimension:
        size = other_size = 1.0  # 900 may be 900 euros
    a, b = float(one[1]) * size, float(other[1]) * other_size
    if is_converted or _ROUGHLY.search(memory.plain) or _ROUGHLY.search(claim.plain):
        return abs(a - b) <= _ROUNDED * max(abs(a), abs(b))
    return a == b or _may_be_same_per_period(a, _find_periods(memory.text), b, _find_periods(claim.text))


def _may_be_same_per_period(a: float, periods: set[str], b: float, other_periods: set[str]) -> bool | None:
    """Return whether one amount may be the other in another period: 900 a month and 10,800 a year."""
    if periods and other_periods and periods.isdisjoint(other_periods):
        return None
    low, high = sorted((abs(a), abs(b)))
    return periods != other_periods and any(abs(low * times - high) <= 0.01 * high for times in _PERIODS_IN_ANOTHER)


def _find_periods(text: str) -> set[str]:
    return {_PERIOD_NAMES.get(name, name) for pair in _PERIOD.findall(text.lower()) for name in pair if name}


def _may_be_same_time(mine: str, memory: Statement, theirs: str, claim: Statement) -> bool | None:
    """Return whether two times may be the same if one is told in the 12-hour form: 18:00 and "at 6"."""
    one, other = _read_minutes(mine), _read_minutes(theirs)
    if one is None or other is None:
        return None
    (early, early_text), (late, late_text) = sorted(((one, memory.text), (other, claim.text)))
    if early == late:
        return True
    if late - early != 12 * 60:
        return False
    if late // 60 == 12 and not _AFTER_NOON.search(late_text):
        return True  # "at 12" may be midnight
    return not _BEFORE_NOON.search(early_text)


def _read_minutes(number: str) -> int | None:
    """Return a time, or a number that may be an hour, in minutes after midnight."""
    if time := _TIME.fullmatch(number):
        return 60 * int(time[1]) + int(time[2])
    return 60 * int(number) if _HOUR.fullmatch(number) else None
