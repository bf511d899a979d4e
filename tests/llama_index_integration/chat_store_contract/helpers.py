"""Helpers that build and read messages in chat store tests."""

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.storage.chat_store.base_db import MessageStatus


def user_messages(*texts):
    return [ChatMessage(str(text)) for text in texts]


def texts_of(messages):
    return [message.content for message in messages]


async def stored_texts(store, key, status=MessageStatus.ACTIVE):
    return texts_of(await store.get_messages(key, status=status))
