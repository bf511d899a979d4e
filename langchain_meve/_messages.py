"""Read LangChain messages: roles, turns, final answers and texts."""

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


def message_role(message: BaseMessage) -> str:
    """Return `user`, `assistant`, `tool` or `system`, or the role that a `ChatMessage` states; also for chunks."""
    if isinstance(message, ChatMessage):
        return message.role
    return next((role for kind, role in _ROLES if isinstance(message, kind)), message.type)


def last_turn(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages of the last turn: the user's, tool calls and results, and the answer if there is one."""
    end = len(messages)
    while end and is_final_answer(messages[end - 1]):
        end -= 1
    begin = end
    while begin and not is_final_answer(messages[begin - 1]):
        begin -= 1
    return list(messages[begin:])


def is_final_answer(message: BaseMessage) -> bool:
    """Return whether a model wrote the message and it calls no tools."""
    return isinstance(message, AIMessage) and not message.tool_calls


def messages_to_turns(messages: Sequence[BaseMessage]) -> list[Turn]:
    """Convert messages to turns, in order, without the summaries that other middleware inserts."""
    return [
        Turn(id=message_id(m), speaker=message_role(m), text=str(m.text))
        for m in messages
        if not m.additional_kwargs.get("lc_source")
    ]


def message_id(message: BaseMessage) -> str:
    """Return the message's id, or a hash of its type and text if it has none."""
    return message.id or hashlib.sha256(f"{message.type}:{message.text}".encode(errors="replace")).hexdigest()[:32]


def last_answer(messages: Sequence[BaseMessage]) -> str:
    """Return the text of the last final answer; empty if there is none."""
    return next((str(m.text) for m in reversed(messages) if is_final_answer(m) and str(m.text).strip()), "")


def visible_texts(messages: Sequence[BaseMessage]) -> tuple[str, ...]:
    """Return the user and assistant texts, which the model reads in any case."""
    return tuple(str(m.text) for m in messages if message_role(m) in ("user", "assistant") and str(m.text).strip())


def chain_text(value: object) -> str:
    """Return the text of a chain's input or output: a string, a message or a list of messages; empty for None."""
    if isinstance(value, BaseMessage):
        return str(value.text)
    if isinstance(value, list | tuple) and all(isinstance(each, BaseMessage) for each in value):
        return "\n".join(str(each.text) for each in value)
    return "" if value is None else str(value)


def append_to_system_message(system: SystemMessage | None, text: str) -> SystemMessage | None:
    """Return the system message with `text` appended, as a new object unless `text` is empty."""
    if not text:
        return system
    if system is None:
        return SystemMessage(text)
    content = system.content
    extended = f"{content}\n\n{text}" if isinstance(content, str) else [*content, {"type": "text", "text": text}]
    return system.model_copy(update={"content": extended})
