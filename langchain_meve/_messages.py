"""LangChain's messages as turns of a conversation: which are new, what they say, what was answered."""

import hashlib
from collections.abc import Sequence

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from meve.conversation import Turn

_ROLES: Sequence[tuple[type[BaseMessage], str]] = (
    (HumanMessage, "user"), (AIMessage, "assistant"), (SystemMessage, "system"), (ToolMessage, "tool"),
    (FunctionMessage, "tool"),
)  # fmt: skip


def role_of(message: BaseMessage) -> str:
    """`user`, `assistant`, `tool` or `system`; of a message that says its role itself, that one. Chunks have it too."""
    if isinstance(message, ChatMessage):
        return message.role
    return next((role for kind, role in _ROLES if isinstance(message, kind)), message.type)


def last_turn(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """What came after the answer before the last one: a user's messages, calls of tools, the answer."""
    end = len(messages)
    while end and is_answer(messages[end - 1]):
        end -= 1
    begin = end
    while begin and not is_answer(messages[begin - 1]):
        begin -= 1
    return list(messages[begin:])


def is_answer(message: BaseMessage) -> bool:
    """Whether it is a model's, and not one that calls tools."""
    return isinstance(message, AIMessage) and not message.tool_calls


def said(messages: Sequence[BaseMessage]) -> list[Turn]:
    """Messages as turns, in their order; not those that other middleware made of older ones."""
    return [
        Turn(id=message_id(m), speaker=role_of(m), text=str(m.text))
        for m in messages
        if not m.additional_kwargs.get("lc_source")
    ]


def message_id(message: BaseMessage) -> str:
    """Its id; of one without, one of what it says."""
    return message.id or hashlib.sha256(f"{message.type}:{message.text}".encode(errors="replace")).hexdigest()[:32]


def answer(messages: Sequence[BaseMessage]) -> str:
    """What the last answer says; empty for nothing."""
    return next((str(m.text) for m in reversed(messages) if is_answer(m) and str(m.text).strip()), "")


def window(messages: Sequence[BaseMessage]) -> tuple[str, ...]:
    """What a model reads anyway: texts of users' and models' messages."""
    return tuple(str(m.text) for m in messages if role_of(m) in ("user", "assistant") and str(m.text).strip())


def text_of(value: object) -> str:
    """What a chain's input or output says: a text, a message, or several; empty for None."""
    if isinstance(value, BaseMessage):
        return str(value.text)
    if isinstance(value, list | tuple) and all(isinstance(each, BaseMessage) for each in value):
        return "\n".join(str(each.text) for each in value)
    return "" if value is None else str(value)


def with_memory(system: SystemMessage | None, text: str) -> SystemMessage | None:
    """A system message that ends with what is remembered; another object, if there is anything to add."""
    if not text:
        return system
    if system is None:
        return SystemMessage(text)
    content = system.content
    longer = f"{content}\n\n{text}" if isinstance(content, str) else [*content, {"type": "text", "text": text}]
    return system.model_copy(update={"content": longer})
