"""Dialogues of many sessions side by side, limited by their total number of turns."""

from collections.abc import Iterable
from typing import Unpack

from meve._fork_safety import ForkSafeLock
from meve.conversation.turn import TurnRecord
from meve.dialogue._components import DialogueOptions, LoadedComponents
from meve.dialogue.dialogue import Dialogue
from meve.errors import ConfigurationError


class DialogueSessions:
    """Keeps a separate dialogue for each session. Safe to share between threads.

    Args:
        max_turns: number of turns that are kept in all sessions together, at least 1. Beyond it the least recently used
            sessions are dropped, and of a single session its older half.
        options: the components, see `DialogueOptions`; loaded once for all sessions.

    Raises:
        ConfigurationError: `max_turns` is below 1.
    """

    def __init__(self, max_turns: int = 100_000, **options: Unpack[DialogueOptions]) -> None:
        if isinstance(max_turns, bool) or not isinstance(max_turns, int) or max_turns < 1:
            raise ConfigurationError(f"max_turns must be a whole number of at least 1, got {max_turns!r}")
        self._max_turns = max_turns
        self._empty = Dialogue(**options)
        self._dialogues: dict[str, Dialogue] = {}
        """By session, the least recently used one first."""
        self._lock = ForkSafeLock(guards="the dialogues")

    def __len__(self) -> int:
        return len(self._dialogues)

    @property
    def components(self) -> LoadedComponents:
        """The components of all dialogues, as `Dialogue.components`."""
        return self._empty.components

    def get(self, session: str) -> Dialogue:
        """Return a session's dialogue; an empty one, which isn't kept, for an unknown or dropped session."""
        with self._lock:
            dialogue = self._dialogues.pop(session, None)
            if dialogue is None:
                return self._empty.fork()
            self._dialogues[session] = dialogue
            return dialogue

    def extend(self, session: str, turns: Iterable[TurnRecord]) -> None:
        """Add turns to a session.

        Raises:
            ValidationError: a turn in an unknown format; nothing is added.
        """
        with self._lock:
            dialogue = self._dialogues.get(session) or self._empty.fork()
            dialogue.extend(turns)
            self._dialogues.pop(session, None)
            if len(dialogue):
                self._dialogues[session] = dialogue
            self._shrink()

    def forget(self, session: str) -> None:
        """Drop a session's dialogue; unknown sessions are ignored."""
        with self._lock:
            self._dialogues.pop(session, None)

    def _shrink(self) -> None:
        count = sum(map(len, self._dialogues.values()))
        while count > self._max_turns and len(self._dialogues) > 1:
            count -= len(self._dialogues.pop(next(iter(self._dialogues))))
        if count > self._max_turns:
            ((session, dialogue),) = self._dialogues.items()
            self._dialogues[session] = self._empty.fork()
            self._dialogues[session].extend(dialogue.turns[-max(1, self._max_turns // 2) :])
