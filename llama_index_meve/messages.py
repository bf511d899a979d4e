"""Chat messages as plain values, and back."""

import json
from collections.abc import Mapping
from typing import Any

from llama_index.core.base.llms.types import ChatMessage

from meve.errors import PassageError, foreign

_KWARGS = "additional_kwargs"


def as_value(message: ChatMessage) -> dict[str, Any]:
    """A message as JSON can hold it: every block, and what else the message says.

    Raises:
        PassageError: no message, or one that JSON can't hold.
    """
    if not isinstance(message, ChatMessage):
        raise PassageError(f"a message is {message!r:.80}: give a ChatMessage")
    with foreign(PassageError, "writing a message as JSON"):
        made: dict[str, Any] = message.model_dump(mode="json")
        json.dumps(message.model_dump(), allow_nan=False, default=lambda _: None)  # or what is no number became null
    return made


def as_message(value: Mapping[str, Any]) -> ChatMessage:
    """The message that a value was made of; a fresh one each time."""
    message = ChatMessage.model_validate({name: each for name, each in value.items() if name != _KWARGS})
    message.additional_kwargs = dict(value.get(_KWARGS, {}))  # by itself: LlamaIndex makes blocks of images in it anew
    return message
