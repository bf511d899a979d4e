"""Moments: their checks, and their stored form, microseconds since 1970."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from meve.errors import ValidationError, show

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(moment: datetime) -> int:
    """Return the microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(value: int) -> datetime:
    """Return the moment, in UTC."""
    return _EPOCH + timedelta(microseconds=value)


def micros_or_none(moment: datetime | None) -> int | None:
    """Return the microseconds since 1970; None for no moment."""
    return None if moment is None else to_micros(moment)


def moment_or_none(value: int | None) -> datetime | None:
    """Return the moment of microseconds since 1970; None for None."""
    return None if value is None else from_micros(value)


def check_moment(value: object, name: str) -> datetime:
    """Return a moment in UTC.

    Raises:
        ValidationError: it is no datetime, has no time zone, or isn't within the years 1 to 9999 in UTC.
    """
    if not isinstance(value, datetime):
        raise ValidationError(f"{name} must be a datetime with a time zone, got {show(value, 80)}")
    if value.tzinfo is None or value.utcoffset() is None:
        raise ValidationError(f"{name} must have a time zone, such as datetime.now(UTC), got {value.isoformat()}")
    try:
        return value.astimezone(UTC)
    except OverflowError as cause:
        raise ValidationError(f"{name} must be within the years 1 to 9999 in UTC, got {value.isoformat()}") from cause


def check_time_zone(name: object) -> tzinfo:
    """Return the time zone of an IANA name; UTC for None.

    Raises:
        ValidationError: it is no name of a time zone that the machine knows.
    """
    if name is None or (isinstance(name, str) and name == "UTC"):
        return UTC
    if isinstance(name, str):
        with suppress(ValueError, OSError, LookupError):
            return ZoneInfo(name)
    raise ValidationError(
        f"time_zone must be the IANA name of a time zone, such as 'Europe/Prague', got {show(name, 60)}; where names "
        "are unknown, as on Windows, install tzdata"
    )


def check_past(value: object, name: str, now: datetime) -> datetime:
    """Return a moment in UTC that isn't after now.

    Raises:
        ValidationError: it is in the future, or no moment with a time zone.
    """
    moment = check_moment(value, name)
    if moment > now:
        raise ValidationError(f"{name} must not be after now, {now.isoformat()}, got {moment.isoformat()}")
    return moment


def ago(now: datetime, length: object, name: str) -> datetime | None:
    """Return the moment this long before now; None if it is before the year 1.

    Raises:
        ValidationError: `length` is no timedelta, or negative.
    """
    if not isinstance(length, timedelta) or length < timedelta(0):
        raise ValidationError(f"{name} must be a timedelta of zero or more, got {show(length, 80)}")
    try:
        return now - length
    except OverflowError:
        return None
