"""Convert chat messages to JSON-ready values and back."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from pydantic import ValidationError

from meve.errors import PassageError, StorageError, wrap_errors
from meve.memory.messages.message import Message

_KWARGS = "additional_kwargs"
_BLOCK_FIELDS = ("blocks", "content", "cited_content")
"""Fields of messages and blocks that contain blocks."""


def message_to_json(message: ChatMessage) -> dict[str, Any]:
    """Return a message with all its blocks as a JSON-ready value.

    Raises:
        PassageError: the value is no ChatMessage, or JSON can't represent it.
    """
    if not isinstance(message, ChatMessage):
        raise PassageError(f"messages must be ChatMessage objects, got {message!r:.80}")
    with wrap_errors(PassageError, "writing a message as JSON"):
        value: dict[str, Any] = message.model_dump(mode="json")
        json.dumps(message.model_dump(), allow_nan=False, default=lambda _: None)  # pydantic writes NaN as null
    return value


def message_from_json(value: Mapping[str, Any]) -> ChatMessage:
    """Return a new message made from its value, also if files that it names are gone.

    Raises:
        StorageError: this version of LlamaIndex can't read the value.
    """
    kwargs = value.get(_KWARGS)
    fields = {name: each for name, each in value.items() if name != _KWARGS} if kwargs else value
    try:
        message = ChatMessage.model_validate(fields)
    except ValidationError:
        with wrap_errors(StorageError, "reading a message that another version of LlamaIndex may have written"):
            message = ChatMessage.model_validate(_drop_file_paths(fields))
            _restore_file_paths(message, fields)
    if kwargs:
        message.additional_kwargs = dict(kwargs)  # set afterwards: the validator would add its images as blocks again
    return message


def messages_from_records(records: Iterable[Message]) -> list[ChatMessage]:
    """Return the chat messages of stored records; see `message_from_json`."""
    return [message_from_json(each.value) for each in records]


def _drop_file_paths(value: Mapping[str, Any]) -> dict[str, Any]:
    result = {name: each for name, each in value.items() if name != "path"}
    for name, inner in _nested_blocks(value):
        result[name] = (
            [_drop_file_paths(each) for each in inner] if isinstance(inner, list) else _drop_file_paths(inner)
        )
    return result


def _restore_file_paths(block: Any, value: Mapping[str, Any]) -> None:
    if value.get("path") is not None:
        block.path = Path(value["path"])
    for name, inner in _nested_blocks(value):
        blocks = getattr(block, name)
        pairs = zip(blocks, inner, strict=True) if isinstance(inner, list) else [(blocks, inner)]
        for nested, nested_value in pairs:
            _restore_file_paths(nested, nested_value)


def _nested_blocks(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((name, value[name]) for name in _BLOCK_FIELDS if isinstance(value.get(name), list | dict))
