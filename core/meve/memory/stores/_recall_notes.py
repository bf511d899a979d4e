"""When memories were recalled, until it is written to their records, for many recalls at once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from meve._fork_safety import ForkSafeLock
from meve.memory.records import StoredRecord

MOST = 512
"""The number of memories from which on a recall writes the notes."""
LONGEST = timedelta(hours=1)
"""How long notes may wait while there are further recalls."""


@dataclass(frozen=True, slots=True)
class RecallNote:
    """Some memories of a user, and when they were recalled last."""

    user: str
    """The user's key."""
    record_ids: Sequence[str]
    at: datetime


class RecallNotes:
    """The notes of one process. Thread-safe; a forked child has them too, and may write them a second time."""

    def __init__(self) -> None:
        self._latest: dict[str, dict[str, datetime]] = {}
        """By the user's key and the memory's id."""
        self._first: datetime | None = None
        self._is_due = False
        """Whether notes have waited for `LONGEST`."""
        self._lock = ForkSafeLock()

    def add(self, *notes: RecallNote) -> None:
        """Keep notes; of several of one memory, the latest."""
        with self._lock:
            for note in notes:
                self._first = note.at if self._first is None else min(self._first, note.at)
                self._is_due = self._is_due or note.at - self._first >= LONGEST
                latest = self._latest.setdefault(note.user, {})
                latest.update((each, max(note.at, latest.get(each, note.at))) for each in note.record_ids)

    def take(self, *, least: int = 1) -> list[RecallNote]:
        """Return all notes, and keep none; nothing if fewer memories than `least` are noted and none waited long."""
        with self._lock:
            if sum(map(len, self._latest.values())) < least and not self._is_due:
                return []
            taken, self._latest, self._first, self._is_due = self._latest, {}, None, False
        grouped: dict[tuple[str, datetime], list[str]] = {}
        for user, latest in taken.items():
            for record_id, at in latest.items():
                grouped.setdefault((user, at), []).append(record_id)
        return [RecallNote(user, ids, at) for (user, at), ids in grouped.items()]

    def of(self, user: str) -> Mapping[str, datetime]:
        """Return by id when memories of a user were recalled, as far as it is noted."""
        with self._lock:
            return dict(self._latest.get(user, {}))

    def show(self, user: str, records: Iterable[StoredRecord]) -> list[StoredRecord]:
        """Return records of a user as they will be once the notes are written."""
        latest = self.of(user)
        return [_touched(stored, latest.get(stored.record.id)) for stored in records] if latest else list(records)


def _touched(stored: StoredRecord, at: datetime | None) -> StoredRecord:
    record = stored.record
    if at is None or record.archived or (record.touched_at is not None and record.touched_at >= at):
        return stored
    return replace(stored, record=replace(record, touched_at=at))
