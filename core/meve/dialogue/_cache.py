"""A cache of dialogues, for callers that pass the whole history each time."""

from collections.abc import Iterable
from typing import Unpack

from meve._fork_safety import ForkSafeLock
from meve.conversation.turn import Turn, TurnRecord, parse_turn
from meve.dialogue._components import DialogueOptions
from meve.dialogue.dialogue import Dialogue
from meve.errors import ConfigurationError


class DialogueCache:
    """Keeps the dialogues used last and extends them, so that no turn is read twice. Safe to share between threads.

    Args:
        max_dialogues: how many are kept, at least 1; the least recently used one is dropped first.
        options: the components, see `DialogueOptions`; loaded once for all dialogues.

    Raises:
        ConfigurationError: `max_dialogues` is below 1.
    """

    def __init__(self, max_dialogues: int = 16, **options: Unpack[DialogueOptions]) -> None:
        if isinstance(max_dialogues, bool) or not isinstance(max_dialogues, int) or max_dialogues < 1:
            raise ConfigurationError(f"max_dialogues must be a whole number of at least 1, got {max_dialogues!r}")
        self._max_dialogues = max_dialogues
        self._empty = Dialogue(**options)
        self._dialogues: list[Dialogue] = []
        """The most recently used one first."""
        self._lock = ForkSafeLock(guards="the dialogues")

    def get(self, turns: Iterable[TurnRecord]) -> Dialogue:
        """Return the dialogue of exactly these turns, built on the longest cached one that they continue.

        Callers with equal histories share a dialogue: pass a longer history instead of adding turns to it.

        Raises:
            ValidationError: a turn in an unknown format.
        """
        history = [parse_turn(record, n) for n, record in enumerate(turns)]
        with self._lock:
            dialogue = self._longest_prefix(history)
            self._dialogues = [each for each in self._dialogues if each is not dialogue]
            if dialogue is None or len(dialogue) < len(history):  # another caller may hold it and must not see more
                dialogue = (dialogue or self._empty).fork()
                dialogue.extend(history[len(dialogue) :])
            self._dialogues = [dialogue, *self._dialogues][: self._max_dialogues]
            return dialogue

    def _longest_prefix(self, history: list[Turn]) -> Dialogue | None:
        prefixes = [d for d in self._dialogues if 0 < len(d) <= len(history) and list(d.turns) == history[: len(d)]]
        return max(prefixes, key=len, default=None)
