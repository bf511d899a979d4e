"""Turns of a dialogue, out of whatever records they come in."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import TypeAlias

from meve.components._sentences import sentences
from meve.errors import ValidationError
from meve.types import Passage

PIECE = 400
"""Characters from which on a turn is cut into pieces, which are judged each by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What somebody said."""

    text: str
    speaker: str = ""
    """Empty where it isn't known."""
    time: datetime | date | str | None = None
    """When; shown as it is, a datetime as its day. Turns stand in the order given, whatever their times."""

    @property
    def label(self) -> str:
        """What stands before it: the speaker and the time, as far as they are known.

        >>> Turn(text="…", speaker="Ana", time=date(2024, 2, 15)).label
        'Ana (2024-02-15): '
        """
        day = self.time.isoformat()[:10] if isinstance(self.time, date) else str(self.time or "")
        said = f"{self.speaker} ({day})" if self.speaker and day else self.speaker or day
        return f"{said}: " if said else ""


Record: TypeAlias = Turn | Mapping[str, object] | tuple[str, str] | str
"""A turn; a mapping with `text` or `content`, and perhaps `speaker` or `role`, and `time`; (speaker, text); a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said(Passage):
    """A turn, or a piece of a long one, that may enter a prompt. Its speaker is its title."""

    turn: int
    """Its place in the dialogue, from 0."""
    row: int = -1
    """Its place among all pieces of the dialogue, once it is read."""
    label: str = ""
    begins: bool = True
    """Whether the turn begins with it."""
    ends: bool = True

    @property
    def shown(self) -> str:
        """Speaker, time and text. Further lines are indented: no turn can pass for another one, or for a heading."""
        text = self.text if self.begins else f"… {self.text}"
        text = text if self.ends else f"{text} …"
        return self.label + "\n  ".join(text.splitlines())


def as_turn(record: Record, n: int) -> Turn:
    """A record as a turn.

    Args:
        record: what was given.
        n: its place, for messages.

    Raises:
        ValidationError: something else, no text, or a text that can't be written as UTF-8.
    """
    if isinstance(record, Turn):
        found = record
    elif isinstance(record, str):
        found = Turn(text=record)
    elif isinstance(record, Mapping):
        found = _mapped(record, n)
    elif isinstance(record, tuple | list) and len(record) == 2:
        found = Turn(speaker=record[0], text=record[1])
    else:
        raise ValidationError(f"turn {n} is {record!r:.80}: give a mapping with text, (speaker, text), or a text")
    if not isinstance(found.time, date | str | None):
        raise ValidationError(f"the time of turn {n} is {found.time!r:.80}: give a datetime, a date, a text or None")
    for name, value in (("text", found.text), ("speaker", found.speaker), ("time", str(found.time))):
        if not isinstance(value, str):
            raise ValidationError(f"the {name} of turn {n} is {value!r:.80}: give text")
        try:
            value.encode()
        except UnicodeEncodeError as cause:
            raise ValidationError(f"the {name} of turn {n} is no valid text: it can't be written as UTF-8") from cause
    return found


def _mapped(record: Mapping[str, object], n: int) -> Turn:
    text, speaker = _either(record, "text", "content"), _either(record, "speaker", "role")
    if text is None:
        keys = ", ".join(map(str, record))
        raise ValidationError(f"turn {n} holds neither text nor content, its keys are {keys}: give one of the two")
    return Turn(text=text, speaker="" if speaker is None else speaker, time=record.get("time"))  # type: ignore[arg-type]  # checked afterwards


def _either(record: Mapping[str, object], one: str, other: str) -> object:
    """The value of a key, or of the other where there is none."""
    value = record.get(one)
    return record.get(other) if value is None else value


def pieces(turn: Turn, n: int) -> list[Said]:
    """A turn as what may enter a prompt: itself, or pieces of it where it is long; none of a blank one.

    Args:
        turn: what was said.
        n: its place in the dialogue.
    """
    texts = [turn.text.strip()] if len(turn.text) <= PIECE else list(_cut(turn.text))
    texts = [text for text in texts if text]
    last = len(texts) - 1
    return [
        Said(
            id=f"{n}" if not last else f"{n}.{k}", text=text, title=" ".join(turn.speaker.split()), turn=n,
            label=" ".join(turn.label.split()) + " " if turn.label else "", begins=not k, ends=k == last,
        )
        for k, text in enumerate(texts)
    ]  # fmt: skip


def _cut(text: str) -> Iterable[str]:
    """Sentences together, as many as go into a piece; what has no end is cut where there is space, or anywhere."""
    made = ""
    for line in text.splitlines():
        for at in range(0, len(line), 50 * PIECE):  # a splitter's time may grow faster than its text
            for sentence in sentences(line[at : at + 50 * PIECE]):
                if len(made) + len(sentence) < PIECE:
                    made = f"{made} {sentence}".strip()
                    continue
                yield made
                *whole, made = _short(sentence)
                yield from whole
    yield made


def _short(sentence: str) -> list[str]:
    made = []
    while len(sentence) > PIECE:
        at = sentence.rfind(" ", PIECE // 2, PIECE)
        at = PIECE if at < 0 else at
        made.append(sentence[:at].strip())
        sentence = sentence[at:].strip()
    return [*made, sentence]
