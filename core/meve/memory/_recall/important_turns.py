"""Turns of conversations among memories: only those around one that names something, the rest being chit-chat."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from meve.conversation.importance import names_something, windows
from meve.memory.policy import Source as Origin
from meve.memory.records import MemoryRecord
from meve.ports import EntityDetector, Source
from meve.types import Candidate, Query

CHAT: frozenset[Origin] = frozenset({"chat_user", "chat_assistant"})
"""Sources whose records are turns of a conversation."""
REMEMBERED = 65_536
"""Texts of which it is remembered whether they name something."""

Names = Callable[[str], bool]


def naming(detector: EntityDetector) -> Names:
    """Whether a text names something; asked of the detector once for each text, of which no word is kept."""
    known: dict[tuple[int, int], bool] = {}

    def names(text: str) -> bool:
        mark = (hash(text), len(text))  # what is erased must not stay here
        found = known.get(mark)
        if found is None:
            if len(known) >= REMEMBERED:
                known.clear()
            found = known[mark] = names_something(detector.detect([text])[0])
        return found

    return names


def chit_chat(records: Iterable[MemoryRecord], names: Names, reach: int) -> frozenset[str]:
    """Ids of turns that lie more than `reach` turns from any of their conversation that names something.

    Args:
        records: in any order; those that are no turns are passed over.
        names: whether a text names something.
        reach: how many turns before and after one that does stay with it.
    """
    talks: dict[str | None, list[MemoryRecord]] = defaultdict(list)
    for record in records:
        if record.source in CHAT:
            talks[record.session_id].append(record)
    outside: set[str] = set()
    for turns in talks.values():
        turns.sort(key=lambda record: (record.created_at, record.id))
        outside |= {record.id for record in turns}
        for first, last in windows([names(record.text) for record in turns], reach):
            outside -= {record.id for record in turns[first : last + 1]}
    return frozenset(outside)


@dataclass(frozen=True, slots=True)
class ImportantTurns:
    """Phase 1 over memories without chit-chat."""

    inner: Source
    outside: frozenset[str]
    """Ids that stay out."""

    @property
    def name(self) -> str:
        """The inner one's."""
        return self.inner.name

    def search(self, query: Query, k: int) -> Sequence[Candidate]:
        """At most k of those that the inner one brings, without chit-chat; in its order."""
        found = self.inner.search(query, k + len(self.outside))
        kept: dict[str, list[Candidate]] = defaultdict(list)
        for candidate in found:
            if candidate.id not in self.outside:
                kept[candidate.origin].append(candidate)
        stays = {id(candidate) for mine in kept.values() for candidate in mine[:k]}
        return [candidate for candidate in found if id(candidate) in stays]
