"""Reads the turns to record, as callers give them: their role, their id, and when they were said."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

from meve.conversation.turn import Turn, TurnRecord, parse_turn
from meve.errors import ValidationError
from meve.memory._timestamps import check_past

ROLES = ("user", "assistant", "tool", "function", "system", "developer")
"""Roles of turns that are skipped without an error where the rules name no source for them."""
_ALIASES = {"human": "user", "ai": "assistant"}
"""LangChain's names of roles."""
_EARLIEST_ZONE = timedelta(hours=14)
"""Where a day begins first, it does so this long before it begins in UTC."""


def read_turns(records: object, name: str, roles: Collection[str], now: datetime) -> list[Turn]:
    """Return turns with a known role, an id, and a time that is aware or a date.

    Args:
        records: a list of `Turn`, of mappings with `role` and `content`, or of pairs (role, text).
        name: the argument, for errors.
        roles: the roles that the rules name.
        now: the time of the memory's clock; no turn may be after it.

    Raises:
        ValidationError: it is no such list, or a turn's role or time is invalid.
    """
    return [_check(turn, roles, now) for turn in read_conversation(records, name)]


def read_conversation(records: object, name: str) -> list[Turn]:
    """Return turns whose roles and times aren't checked.

    Raises:
        ValidationError: it is no list of turns as `read_turns` takes them.
    """
    if isinstance(records, str | Mapping) or not isinstance(records, Sequence):
        raise ValidationError(f"{name} must be a list of turns, got {records!r:.80}")
    return [_read(record, n, name) for n, record in enumerate(records)]


def is_role(speaker: str, roles: Collection[str]) -> bool:
    """Return whether `read_turns` takes turns of this speaker."""
    return speaker in (*roles, *ROLES, *_ALIASES)


def said_at(turn: Turn, now: datetime) -> datetime | None:
    """Return when a turn of `read_turns` was said, in UTC, of a date its noon or now; None if it has no time."""
    if isinstance(turn.time, datetime):
        return turn.time.astimezone(UTC)
    return min(datetime.combine(turn.time, time(12), UTC), now) if isinstance(turn.time, date) else None


def _read(record: TurnRecord, n: int, name: str) -> Turn:
    if isinstance(record, Turn):
        turn = record
    elif isinstance(record, Mapping) or (isinstance(record, tuple) and len(record) == 2):
        turn = parse_turn(record, n)
        given = record.get("id") if isinstance(record, Mapping) else None
        turn = turn if given is None else replace(turn, id=given if isinstance(given, str) else repr(given))
    else:
        raise ValidationError(
            f'{name} must be a list of Turn(speaker="user", text=…) or of {{"role": "user", "content": …}}, '
            f"got {record!r:.80} in place {n}"
        )
    if not isinstance(turn.text, str):
        raise ValidationError(f"the text of turn {n} must be a string, got {turn.text!r:.80}")
    return turn if turn.id else replace(turn, id=_make_id(turn))


def _make_id(turn: Turn) -> str:
    """Return the id of a turn without one: a hash of its role and text, and its time."""
    role = _ALIASES.get(turn.speaker, turn.speaker)
    digest = hashlib.sha256(f"{role}:{turn.text}".encode(errors="replace")).hexdigest()[:32]
    return digest if turn.time is None else f"{digest}-{turn.time}"


def _check(turn: Turn, roles: Collection[str], now: datetime) -> Turn:
    speaker = turn.speaker if turn.speaker in roles else _ALIASES.get(turn.speaker, turn.speaker)
    if not is_role(speaker, roles):
        known = ", ".join(dict.fromkeys((*roles, *ROLES)))
        raise ValidationError(
            f"the speaker of turn {turn.id!r:.40} must be a role, one of {known} (human and ai are user and "
            f"assistant), got {turn.speaker!r:.40}: use one of them, or name it in TurnRules.sources"
        )
    return replace(turn, speaker=speaker, time=_check_time(turn, now))


def _check_time(turn: Turn, now: datetime) -> datetime | date | None:
    """Return the time of a turn, which may be a text in ISO 8601."""
    given, name = turn.time, f"the time of turn {turn.id!r:.40}"
    if isinstance(given, str):
        try:
            given = date.fromisoformat(given) if len(given) == 10 else datetime.fromisoformat(given)
        except ValueError:
            raise ValidationError(
                f"{name} must be a datetime with a time zone, a date, or one of both in ISO 8601, got {given!r:.40}"
            ) from None
    if given is None or isinstance(given, datetime):
        if given is not None:
            check_past(given, name, now)
        return given
    if not isinstance(given, date):
        raise ValidationError(f"{name} must be a datetime with a time zone, or a date, got {given!r:.40}")
    if given > (now + _EARLIEST_ZONE).date():
        raise ValidationError(f"{name} must not be after today, {now.date()}, got {given}")
    return given
