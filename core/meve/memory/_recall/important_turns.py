"""Restricts a recall to important turns of conversations: those near a turn that names something."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from cachetools import LRUCache, cached

from meve._fork_safety import ForkSafeLock
from meve.conversation.importance import find_windows, is_anchor
from meve.memory.policy import RecordSource
from meve.memory.records import MemoryRecord
from meve.ports import EntityDetector, Source
from meve.types import Candidate, Query

_TURN_SOURCES: frozenset[RecordSource] = frozenset({"chat_user", "chat_assistant"})
_MAX_CACHED = 65_536
"""Texts for which the result of the anchor test is cached."""

AnchorTest = Callable[[str], bool]
"""Decides whether a text names something."""


def cached_anchor_test(detector: EntityDetector) -> AnchorTest:
    """Return a test whether a text names something. It asks the detector once per text, and stores no text."""

    # the key is no text: it may be erased
    @cached(LRUCache(_MAX_CACHED), key=lambda text: (hash(text), len(text)), lock=ForkSafeLock())
    def names_something(text: str) -> bool:
        return is_anchor(detector.detect([text])[0])

    return names_something


def find_unimportant_turns(records: Iterable[MemoryRecord], test: AnchorTest, reach: int) -> frozenset[str]:
    """Return the ids of turns that are more than `reach` turns away from any anchor of their session.

    Args:
        records: in the order of writing; records that aren't turns are ignored.
        test: decides whether a text names something.
        reach: turns before and after an anchor that count as important, at least 0.
    """
    sessions: dict[str | None, list[MemoryRecord]] = defaultdict(list)
    for record in records:
        if record.source in _TURN_SOURCES:
            sessions[record.session_id].append(record)
    unimportant: set[str] = set()
    for turns in sessions.values():
        turns.sort(key=lambda record: record.created_at)  # turns of one moment stay in the order of writing
        unimportant |= {record.id for record in turns}
        for first, last in find_windows([test(record.text) for record in turns], reach):
            unimportant -= {record.id for record in turns[first : last + 1]}
    return frozenset(unimportant)


@dataclass(frozen=True, slots=True)
class ImportantTurns:
    """A source that leaves out the unimportant turns of another source."""

    inner: Source
    excluded: frozenset[str]
    """Ids of the unimportant turns."""

    @property
    def name(self) -> str:
        """Name of the other source."""
        return self.inner.name

    @property
    def word_counter(self) -> Callable[[Query], Callable[[str], int] | None] | None:
        """The method `word_counter` of the other source, if it has one."""
        return getattr(self.inner, "word_counter", None)

    def search(self, query: Query, k: int) -> Sequence[Candidate]:
        """Return at most k candidates of each origin, in the order of the other source."""
        candidates = self.inner.search(query, k + len(self.excluded))
        by_origin: dict[str, list[Candidate]] = defaultdict(list)
        for candidate in candidates:
            if candidate.id not in self.excluded:
                by_origin[candidate.origin].append(candidate)
        kept = {id(candidate) for group in by_origin.values() for candidate in group[:k]}
        return [candidate for candidate in candidates if id(candidate) in kept]
