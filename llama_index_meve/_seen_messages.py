"""Tell which messages of a session a memory block sees for the first time, though LlamaIndex gives them no ids."""

from collections import Counter
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

from cachetools import LRUCache

_MAX_SEEN = 16_384
"""The most messages that are kept; of others, the memory knows what it has recorded."""
_MAX_SESSIONS = 256
"""The most sessions whose last window is kept."""


class NewMessage(NamedTuple):
    """A message that was not seen before."""

    place: int
    """Its index in the list."""
    name: str
    """Its digest, with a number if the user says the same again."""


class SeenMessages:
    """Compares what a block is given with what it was given last: what follows that is new. Thread-safe.

    A block gets the end of a conversation each time, so the same text again is another message only if it comes later.
    """

    def __init__(self) -> None:
        self._names: set[tuple[str | None, str]] = set()
        self._windows: LRUCache[str | None, list[str]] = LRUCache(_MAX_SESSIONS)
        self._lock = Lock()

    def find_new(self, session: str | None, digests: Sequence[str]) -> list[NewMessage]:
        """Return the messages that are new. Of equal ones in a row, which are one question given twice, the first.

        Args:
            session: whose messages.
            digests: those of the messages, in order.
        """
        places = _drop_repeats(digests)
        window = [digests[place] for place in places]
        with self._lock:
            known = _count_known(self._windows.get(session, []), window)
            counts, new = Counter(window[:known]), []
            for place, digest in zip(places[known:], window[known:], strict=True):
                counts[digest] += 1
                while known and (session, _name(digest, counts[digest])) in self._names:
                    counts[digest] += 1
                name = _name(digest, counts[digest])
                if (session, name) not in self._names:
                    new.append(NewMessage(place, name))
        return new

    def note(self, session: str | None, digests: Sequence[str], new: Sequence[NewMessage]) -> None:
        """Keep in mind that these messages were seen; `new` are those that `find_new` returned for them."""
        window = [digests[place] for place in _drop_repeats(digests)]
        with self._lock:
            if len(self._names) > _MAX_SEEN:
                self._names.clear()
                self._windows.clear()
            self._names |= {(session, each.name) for each in new}
            if new or session not in self._windows:  # otherwise it may be the beginning of the last window
                self._windows[session] = window


def _drop_repeats(digests: Sequence[str]) -> list[int]:
    """Return the places of messages that differ from the one before."""
    return [n for n, digest in enumerate(digests) if not n or digest != digests[n - 1]]


def _count_known(last: Sequence[str], window: Sequence[str]) -> int:
    """Return how many messages a window shares with the last one, from which older ones may have gone."""
    for n in range(len(last)):
        shared = min(len(last) - n, len(window))
        if last[n : n + shared] == window[:shared]:
            return shared
    return 0


def _name(digest: str, times: int) -> str:
    return digest if times == 1 else f"{digest}-{times}"
