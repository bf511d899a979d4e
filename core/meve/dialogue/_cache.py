"""Dialogues that go on: whoever hands over a whole history each time has none of it read twice."""

import threading
from collections.abc import Iterable

from meve.dialogue._components import Entities
from meve.dialogue.dialogue import Dialogue
from meve.dialogue.turns import Record, Turn, as_turn
from meve.errors import ConfigurationError
from meve.pipeline.engine import Tokens
from meve.ports import Embedder


class Kept:
    """Remembers dialogues by their turns. Threads may share one.

    Args:
        most: how many dialogues; the one that was asked for longest ago goes first.
        embedder: as for `Dialogue.from_turns`, and so are the others.
        entities: what finds entities.
        tokens: what counts.

    Raises:
        ConfigurationError: `most` is below 1.
    """

    def __init__(
        self,
        most: int = 16,
        *,
        embedder: Embedder | str | None = None,
        entities: Entities | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise ConfigurationError(f"most is {most!r}: give a whole number of at least 1")
        self._most = most
        self._first = Dialogue(embedder=embedder, entities=entities, tokens=tokens)
        self._held: list[Dialogue] = []
        self._guard = threading.Lock()

    def of(self, turns: Iterable[Record]) -> Dialogue:
        """The dialogue of these turns and no others; what is known of one that they go on from is not read again.

        Whoever has the same history is handed the same dialogue: ask with a longer history instead of adding turns.

        Raises:
            ValidationError: a turn that can't be read.
        """
        wanted = [as_turn(record, n) for n, record in enumerate(turns)]
        with self._guard:
            found = self._longest(wanted)
            self._held = [dialogue for dialogue in self._held if dialogue is not found]
            if found is None or len(found) < len(wanted):  # somebody may hold it: what comes next isn't for him
                found = (found or self._first).fork()
                found.extend(wanted[len(found) :])
            self._held = [found, *self._held][: self._most]
            return found

    def _longest(self, wanted: list[Turn]) -> Dialogue | None:
        """Of those that these turns go on from, the one with most of them; None for none."""
        begun = [d for d in self._held if 0 < len(d) <= len(wanted) and list(d.turns) == wanted[: len(d)]]
        return max(begun, key=len, default=None)
