"""Chat messages as plain values, and back."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from pydantic import ValidationError

from meve.errors import PassageError, StorageError, foreign

_KWARGS = "additional_kwargs"
_PARTS = ("blocks", "content", "cited_content")
"""Where messages and blocks hold blocks."""


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
    """The message that a value was made of; a fresh one each time, also if files that it names are gone.

    Raises:
        StorageError: one that this version of LlamaIndex doesn't know.
    """
    kwargs = value.get(_KWARGS)
    plain = {name: each for name, each in value.items() if name != _KWARGS} if kwargs else value
    try:
        message = ChatMessage.model_validate(plain)
    except ValidationError:
        with foreign(StorageError, "reading a message that another version of LlamaIndex may have written"):
            message = ChatMessage.model_validate(_without_files(plain))
            _name_files(message, plain)
    if kwargs:
        message.additional_kwargs = dict(kwargs)  # by itself: LlamaIndex makes blocks of images in it anew
    return message


def _without_files(value: Mapping[str, Any]) -> dict[str, Any]:
    made = {name: each for name, each in value.items() if name != "path"}
    for name, inner in _inner(value):
        made[name] = [_without_files(each) for each in inner] if isinstance(inner, list) else _without_files(inner)
    return made


def _name_files(part: Any, value: Mapping[str, Any]) -> None:
    if value.get("path") is not None:
        part.path = Path(value["path"])
    for name, inner in _inner(value):
        found = getattr(part, name)
        pairs = zip(found, inner, strict=True) if isinstance(inner, list) else [(found, inner)]
        for each, plain in pairs:
            _name_files(each, plain)


def _inner(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((name, value[name]) for name in _PARTS if isinstance(value.get(name), list | dict))
