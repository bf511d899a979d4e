"""A conversation's messages, word for word, in a governed memory."""

import hashlib
import json
from collections.abc import Sequence
from datetime import timedelta

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict

from meve.memory import GovernedMemory
from meve.memory._integration import check_memory
from meve.memory.records import UserId, checked_text, user_key


class MeVeChatMessageHistory(BaseChatMessageHistory):
    """The messages of one of a user's conversations; they last, expire, and are erased for good.

    No recall hands them out. Works in `RunnableWithMessageHistory`.

    Args:
        memory: keeps them.
        user_id: whose conversation.
        session_id: which of theirs.
        ttl: how long a message is kept; None for as long as the policy keeps turns, 7 days by default.

    Raises:
        ConfigurationError: no memory.
        ValidationError: a user or session that can't be.
    """

    def __init__(
        self, memory: GovernedMemory, user_id: UserId, session_id: str, *, ttl: timedelta | None = None
    ) -> None:
        self.memory = check_memory(memory)
        user_key(user_id)
        self.user_id = user_id
        self.session_id = checked_text(session_id, "session_id")
        self._ttl = ttl

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # theirs is an attribute, and says it may be this
        """The messages, oldest first; new objects at each call."""
        found = self.memory.messages.page(self.session_id, user_id=self.user_id)
        return messages_from_dict([message.value for message in found])

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Keep messages, in this order, all or none. One of an id that is there already is kept once.

        Raises:
            PassageError: a message that JSON can't hold.
        """
        ids = [None if message.id is None else f"chat-{_hashed(self.session_id, message.id)}" for message in messages]
        self.memory.messages.add(
            self.session_id, [message_to_dict(message) for message in messages], user_id=self.user_id, ids=ids,
            ttl=self._ttl, reason="a conversation's message",
        )  # fmt: skip

    def clear(self) -> None:
        """Erase the conversation: its messages, what was remembered of it, and what was made from that."""
        self.memory.forget_session(self.session_id, user_id=self.user_id, reason="the conversation was cleared")

    async def aget_messages(self) -> list[BaseMessage]:
        """The messages, read off the event loop."""
        return await self.memory.run_async(lambda: self.messages)

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Keep messages, off the event loop."""
        await self.memory.run_async(self.add_messages, messages)

    async def aclear(self) -> None:
        """Erase the conversation, off the event loop."""
        await self.memory.run_async(self.clear)


def _hashed(session_id: str, message_id: str) -> str:
    return hashlib.sha256(json.dumps([session_id, message_id]).encode()).hexdigest()[:32]
