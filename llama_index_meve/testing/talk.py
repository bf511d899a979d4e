"""Short words for what the rules say often."""

from collections.abc import Sequence

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus


def talk(*texts: object) -> list[ChatMessage]:
    """Messages of a user's."""
    return [ChatMessage(str(text)) for text in texts]


def contents(messages: Sequence[ChatMessage]) -> list[str | None]:
    """What they say."""
    return [message.content for message in messages]


async def said(
    store: AsyncDBChatStore, key: str, status: MessageStatus | None = MessageStatus.ACTIVE
) -> list[str | None]:
    """What a session's messages say."""
    return contents(await store.get_messages(key, status=status))
