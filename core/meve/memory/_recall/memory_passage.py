"""A memory as a passage of a prompt."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, tzinfo
from typing import Any, Self

from meve._quoting import mark_forgeries
from meve.errors import ModelError, wrap_errors
from meve.memory.records import MemoryRecord, StoredRecord
from meve.ports import TokenCounter
from meve.types import Passage

_MOST_FRAMES = 10_000
"""The most counts of sources and dates that are kept."""
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
"""Those of `calendar` depend on the locale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPassage(Passage):
    """A memory that may enter a prompt, shown below or behind its day, and its source unless the user told it."""

    record: MemoryRecord
    row: int = 0
    """The store's number of the record, which rises with each new one."""
    outline: str = ""
    """See `StoredRecord`, as of the next ones."""
    tokens: int = 0
    model: str = ""
    zone: tzinfo = UTC
    """The time zone of the day."""
    as_candidate: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The fields of a candidate of this memory, but for those of one search; empty before the first search."""
    _shown: dict[bool, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By whether passages are numbered, the text as it was packed before."""

    @classmethod
    def of(cls, stored: StoredRecord) -> Self:
        """Return a record as a passage."""
        record = stored.record
        return cls(
            id=record.id,
            text=record.text,
            metadata=record.metadata,
            record=record,
            row=stored.row,
            outline=stored.outline,
            tokens=stored.tokens,
            model=stored.model,
        )

    @property
    def prompt_text(self) -> str:
        """The memory's text; lines that imitate a prompt are marked."""
        return mark_forgeries(self.text, numbers=True, tags=True, days=True)

    @property
    def heading(self) -> str:
        """The day on which the memory was added, as `2026-05-01:`, with its source unless the user told it."""
        return f"{self.day.date()}{self._source}:"

    def lead_after(self, before: Passage | None) -> str:
        """Return the day, as `1 May 2026: `, with the source as above. The year stands where that above is another."""
        day = self.day
        same_year = isinstance(before, MemoryPassage) and before.day.year == day.year
        return f"{day.day} {_MONTHS[day.month - 1]}{'' if same_year else f' {day.year}'}{self._source}: "

    @property
    def validity(self) -> str:
        """When a memory held, as ` (until 2026-05-01)`; empty for one that holds since the day when it was added."""
        begin, end = self.record.valid_from, self.record.valid_to
        since = None if begin is None else in_zone(begin, self.zone).date()
        told = [] if since in (None, self.day.date()) else [f"from {since}"]
        told += [] if end is None else [f"until {in_zone(end, self.zone).date()}"]
        return f" ({' '.join(told)})" if told else ""

    @property
    def day(self) -> datetime:
        """When the memory was added, in the time zone; in UTC at the ends of the calendar."""
        return in_zone(self.record.created_at, self.zone)

    @property
    def _source(self) -> str:
        return "" if self.record.source == "chat_user" else f", {self.record.source}"

    def packed_text(self, *, numbered: bool) -> str:
        """See `Passage`. It is kept, since an index keeps the passage for later searches."""
        shown = self._shown.get(numbered)
        if shown is None:
            shown = self.prompt_text
            if shown != self.text:  # else there is nothing to mark
                shown = mark_forgeries(shown, numbers=numbered)
            self._shown[numbered] = shown
        return shown


def in_zone(moment: datetime, zone: tzinfo) -> datetime:
    """Return a moment in a time zone; as it is at the ends of the calendar."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment


def format_memory(text: str, source: str, created_at: datetime) -> str:
    """Return the text of a memory whose tokens are stored: with its date, and its source unless the user told it.

    >>> from datetime import UTC
    >>> format_memory("Tomatoes need sun.", "doc", datetime(2026, 5, 1, tzinfo=UTC))
    'Tomatoes need sun. (doc, 2026-05-01)'
    """
    named = "" if source == "chat_user" else f"{source}, "
    return f"{text} ({named}{created_at.date().isoformat()})"


class FrameTokens:
    """Counts the tokens of sources and dates that stored counts include, each once.

    Args:
        tokens: the counter of the stored counts.
    """

    def __init__(self, tokens: TokenCounter) -> None:
        self._tokens = tokens
        self._known: dict[tuple[str, date], int] = {}

    def count(self, record: MemoryRecord) -> int:
        """Return the tokens of a record's source and date.

        Raises:
            ModelError: the counter failed.
        """
        key = record.source, record.created_at.date()
        count = self._known.get(key)
        if count is None:
            with wrap_errors(ModelError, f"counting tokens with {self._tokens.name!r}"):
                count = self._tokens.count(format_memory("", record.source, record.created_at))
            if len(self._known) >= _MOST_FRAMES:
                self._known = {}  # other threads may still read the former one
            self._known[key] = count
        return count
