"""Dialogues that go on: whoever hands over a whole history each time has none of it read twice."""

import threading
from collections.abc import Iterable, Sequence

from meve.dialogue.dialogue import Dialogue
from meve.dialogue.turns import Record, as_turn
from meve.engine import Tokens
from meve.errors import ConfigurationError
from meve.ports import Embedder, EntityDetector


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
        entities: EntityDetector | str | Sequence[EntityDetector | str] | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise ConfigurationError(f"most is {most!r}: give a whole number of at least 1")
        self._most = most
        self._first = Dialogue(embedder=embedder, entities=entities, tokens=tokens)
        self._held: list[Dialogue] = []
        self._guard = threading.Lock()

    def of(self, turns: Iterable[Record]) -> Dialogue:
        """The dialogue of these turns: one that is known and goes on with them, or a new one.

        Raises:
            ValidationError: a turn that can't be read.
        """
        wanted = tuple(as_turn(record, n) for n, record in enumerate(turns))
        with self._guard:
            for place, dialogue in enumerate(self._held):
                known = dialogue.turns
                if known and known == wanted[: len(known)]:
                    dialogue = self._held.pop(place)
                    break
            else:
                embedder, entities, tokens = self._first.parts  # loaded once for all
                dialogue, known = Dialogue(embedder=embedder, entities=entities, tokens=tokens), ()
            dialogue.extend(wanted[len(known) :])
            self._held = [dialogue, *self._held][: self._most]
            return dialogue
