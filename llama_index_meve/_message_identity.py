"""Return the same object for the user's last message on every read, because agents write state into it."""

from collections.abc import Sequence
from threading import Lock

from llama_index.core.base.llms.types import ChatMessage

from llama_index_meve._message_content import last_user_index


class MessageIdentity:
    """The object returned for the user's last message, reused until the user speaks again. Thread-safe.

    Agents write their state into this message once a run, and expect it there when they read again after a tool call.
    The store never sees these changes.
    """

    def __init__(self) -> None:
        self._stored: ChatMessage | None = None
        self._returned: ChatMessage | None = None
        self._lock = Lock()

    def restore(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        """Replace the copy of the user's last message by the object that was returned before."""
        result = list(messages)
        last = last_user_index(result)
        if last is None:
            self.forget()  # it was erased, or has expired
            return result
        with self._lock:
            if self._returned is None or result[last] != self._stored:
                self._stored, self._returned = result[last].model_copy(deep=True), result[last]
            result[last] = self._returned
        return result

    def forget(self) -> None:
        """Return a new object on the next read."""
        with self._lock:
            self._stored = self._returned = None
