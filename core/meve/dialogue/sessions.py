"""Dialogues of many sessions, side by side under one bound."""

import threading
from collections.abc import Iterable

from meve.dialogue._components import Entities, Loaded
from meve.dialogue.dialogue import Dialogue
from meve.dialogue.turns import Record, Turn
from meve.errors import ConfigurationError
from meve.pipeline.engine import Tokens
from meve.ports import Embedder


class Sessions:
    """A dialogue for each session; what one says, no other is told. Threads may share them.

    Args:
        most_turns: how many turns are kept in all; beyond, whole sessions go, the one that was told or asked longest
            ago first, and of the only one left its older half.
        embedder: as for `Dialogue.from_turns`, loaded once for all, and so are the others.
        entities: what finds entities.
        tokens: what counts.

    Raises:
        ConfigurationError: `most_turns` is below 1.
    """

    def __init__(
        self,
        most_turns: int = 100_000,
        *,
        embedder: Embedder | str | None = None,
        entities: Entities | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        if isinstance(most_turns, bool) or not isinstance(most_turns, int) or most_turns < 1:
            raise ConfigurationError(f"most_turns is {most_turns!r}: give a whole number of at least 1")
        self._most = most_turns
        self._first = Dialogue(embedder=embedder, entities=entities, tokens=tokens)
        self._held: dict[str, Dialogue] = {}
        """The one that was told or asked longest ago first."""
        self._guard = threading.Lock()

    def __len__(self) -> int:
        """How many sessions are kept."""
        return len(self._held)

    @property
    def parts(self) -> Loaded:
        """As `Dialogue.parts`, for all of them."""
        return self._first.parts

    def of(self, session: str) -> Dialogue:
        """A session's dialogue; an empty one, which isn't kept, if nothing was said in it or it is gone."""
        with self._guard:
            found = self._held.pop(session, None)
            if found is None:
                return self._first.fork()
            self._held[session] = found
            return found

    def extend(self, session: str, turns: Iterable[Record]) -> None:
        """Add turns to a session.

        Raises:
            ValidationError: one can't be read; none was added.
        """
        with self._guard:
            dialogue = self._held.get(session) or self._first.fork()
            dialogue.extend(turns)
            self._held.pop(session, None)
            if len(dialogue):
                self._held[session] = dialogue
            self._shrink()

    def forget(self, session: str) -> None:
        """Let go of all that was said in a session; nothing happens if it isn't known."""
        with self._guard:
            self._held.pop(session, None)

    def _shrink(self) -> None:
        count = sum(map(len, self._held.values()))
        while count > self._most and len(self._held) > 1:
            count -= len(self._held.pop(next(iter(self._held))))
        if count > self._most:
            ((session, dialogue),) = self._held.items()
            self._held[session] = self._first.fork()
            self._held[session].extend(_later(dialogue.turns, self._most))


def _later(turns: tuple[Turn, ...], most: int) -> tuple[Turn, ...]:
    return turns[-max(1, most // 2) :]
