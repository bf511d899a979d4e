"""A turn of a conversation, and the record formats that become one."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import TypeAlias

from meve.errors import ValidationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A turn of a conversation: who says what."""

    text: str
    speaker: str = ""
    """Name or role of the speaker, such as `Ana`, `user`, `assistant` or `tool`; empty if unknown."""
    time: datetime | date | str | None = None
    """Time of the turn. Dialogues display it, a datetime as its day; memories resolve "yesterday" by a date.
    Turns keep the order in which they come."""
    id: str = ""
    """Identifier that is unique in the session and stable over calls. Memories need it, dialogues don't."""

    @property
    def label(self) -> str:
        """Speaker and time, as far as they are known, to be printed before the text.

        >>> Turn(text="…", speaker="Ana", time=date(2024, 2, 15)).label
        'Ana (2024-02-15): '
        """
        day = self.time.isoformat()[:10] if isinstance(self.time, date) else str(self.time or "")
        name = f"{self.speaker} ({day})" if self.speaker and day else self.speaker or day
        return f"{name}: " if name else ""


TurnRecord: TypeAlias = Turn | Mapping[str, object] | tuple[str, str] | str
"""A turn; a mapping with `text` (or `content`) and optionally `speaker` (or `role`) and `time`; a pair; or a text."""


def parse_turn(record: TurnRecord, n: int) -> Turn:
    """Convert a record to a turn.

    Args:
        record: in one of the formats of `TurnRecord`.
        n: position of the turn, from 0, for error messages.

    Raises:
        ValidationError: an unknown format, no text, or a text that isn't valid UTF-8.
    """
    if isinstance(record, Turn):
        turn = record
    elif isinstance(record, str):
        turn = Turn(text=record)
    elif isinstance(record, Mapping):
        turn = _parse_mapping(record, n)
    elif isinstance(record, tuple | list) and len(record) == 2:
        turn = Turn(speaker=record[0], text=record[1])
    else:
        raise ValidationError(f"turn {n} is {record!r:.80}: give a mapping with text, (speaker, text), or a text")
    if not isinstance(turn.time, date | str | None):
        raise ValidationError(f"the time of turn {n} is {turn.time!r:.80}: give a datetime, a date, a text or None")
    for name, value in (("text", turn.text), ("speaker", turn.speaker), ("time", str(turn.time))):
        if not isinstance(value, str):
            raise ValidationError(f"the {name} of turn {n} is {value!r:.80}: give text")
        try:
            value.encode()
        except UnicodeEncodeError as cause:
            raise ValidationError(f"the {name} of turn {n} is not valid UTF-8: remove lone surrogates") from cause
    return turn


def _parse_mapping(record: Mapping[str, object], n: int) -> Turn:
    text, speaker = _first_value(record, "text", "content"), _first_value(record, "speaker", "role")
    if text is None:
        keys = ", ".join(map(str, record))
        raise ValidationError(f"turn {n} has neither text nor content, only the keys {keys}: give one of the two")
    return Turn(text=text, speaker="" if speaker is None else speaker, time=record.get("time"))  # type: ignore[arg-type]  # parse_turn checks them


def _first_value(record: Mapping[str, object], one: str, other: str) -> object:
    value = record.get(one)
    return record.get(other) if value is None else value
