"""Chat message history that is stored in a governed memory."""

import hashlib
import json
from collections.abc import Sequence
from datetime import timedelta

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict

from meve.integrations._option_names import explain_unknown_options
from meve.memory import GovernedMemory
from meve.memory._wrapper_support import check_memory
from meve.memory.records import UserId, check_text, user_key


class MeVeChatMessageHistory(BaseChatMessageHistory):
    """The messages of one conversation, with expiry and erasure; for `RunnableWithMessageHistory`.

    Searches of the memory never return these messages.

    Args:
        memory: the governed memory that stores them.
        user_id: the conversation's user.
        session_id: the conversation.
        ttl: how long a message is kept; None for the policy's time for turns, 7 days by default.

    Raises:
        ConfigurationError: `memory` is no `GovernedMemory`.
        ValidationError: an invalid user or session.
    """

    @explain_unknown_options
    def __init__(
        self, memory: GovernedMemory, user_id: UserId, session_id: str, *, ttl: timedelta | None = None
    ) -> None:
        self.memory = check_memory(memory)
        user_key(user_id)
        self.user_id = user_id
        self.session_id = check_text(session_id, "session_id")
        self._ttl = ttl

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # theirs is an attribute, and says it may be this
        """The messages, oldest first; new objects at each call."""
        messages = self.memory.messages.page(self.session_id, user_id=self.user_id)
        return messages_from_dict([message.value for message in messages])

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages in this order, all or none; a message whose id is stored already is skipped.

        Raises:
            PassageError: a message that JSON can't hold.
        """
        ids = [None if message.id is None else f"chat-{_hash(self.session_id, message.id)}" for message in messages]
        self.memory.messages.add(
            self.session_id, [message_to_dict(message) for message in messages], user_id=self.user_id, ids=ids,
            ttl=self._ttl, reason="a conversation's message",
        )  # fmt: skip

    def clear(self) -> None:
        """Erase the conversation: its messages, the facts recorded from it, and what was derived from those."""
        self.memory.forget_session(self.session_id, user_id=self.user_id, reason="the conversation was cleared")

    async def aget_messages(self) -> list[BaseMessage]:
        """Read `messages` off the event loop."""
        return await self.memory.run_async(lambda: self.messages)

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Run `add_messages` off the event loop."""
        await self.memory.run_async(self.add_messages, messages)

    async def aclear(self) -> None:
        """Run `clear` off the event loop."""
        await self.memory.run_async(self.clear)


def _hash(session_id: str, message_id: str) -> str:
    return hashlib.sha256(json.dumps([session_id, message_id]).encode()).hexdigest()[:32]
