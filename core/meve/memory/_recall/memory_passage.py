"""A memory as a passage of a prompt."""

from dataclasses import dataclass, field
from datetime import datetime

from meve._quoting import mark_forgeries
from meve.memory.records import MemoryRecord
from meve.types import Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPassage(Passage):
    """A memory that may enter a prompt, shown with its date, and with its source unless the user told it."""

    record: MemoryRecord
    row: int = 0
    """The store's number of the record, which rises with each new one."""
    outline: str = ""
    """See `StoredRecord`."""
    _shown: dict[bool, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By whether passages are numbered, the text as it was packed before."""

    @property
    def prompt_text(self) -> str:
        """Text, source and date of the memory; lines that imitate a prompt are marked."""
        return format_memory(
            mark_forgeries(self.text, numbers=True, tags=True), self.record.source, self.record.created_at
        )

    def packed_text(self, *, numbered: bool) -> str:
        """See `Passage`. It is kept, since an index keeps the passage for later searches."""
        shown = self._shown.get(numbered)
        if shown is None:
            shown = self._shown[numbered] = mark_forgeries(self.prompt_text, numbers=numbered)
        return shown


def format_memory(text: str, source: str, created_at: datetime) -> str:
    """Return a memory as it is shown in a context, with its source unless the user told it.

    >>> from datetime import UTC
    >>> format_memory("Tomatoes need sun.", "doc", datetime(2026, 5, 1, tzinfo=UTC))
    'Tomatoes need sun. (doc, 2026-05-01)'
    """
    named = "" if source == "chat_user" else f"{source}, "
    return f"{text} ({named}{created_at.date().isoformat()})"
