"""What is handed out of a conversation, beside what is kept of it."""

from collections.abc import Sequence
from threading import Lock

from llama_index.core.base.llms.types import ChatMessage

from llama_index_meve._turns import role_of


class Handed:
    """What the user said last: one object for all who ask, until something else is said. Safe to share between threads.

    Agents write their state into the message that they are handed, once a run, and count on finding it there when they
    ask again after a tool's call. Nothing of that is kept.
    """

    def __init__(self) -> None:
        self._kept: ChatMessage | None = None
        """As it is kept."""
        self._handed: ChatMessage | None = None
        self._guard = Lock()

    def among(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        """These messages, with the object that was handed out before in the place of its fresh copy."""
        made = list(messages)
        last = next((n for n in reversed(range(len(made))) if role_of(made[n]) == "user"), None)
        if last is None:
            self.forget()  # it was erased, or is over
            return made
        with self._guard:
            if self._handed is None or made[last] != self._kept:
                self._kept, self._handed = made[last].model_copy(deep=True), made[last]
            made[last] = self._handed
        return made

    def forget(self) -> None:
        """Something is said: whatever comes next is handed out anew."""
        with self._guard:
            self._kept = self._handed = None
