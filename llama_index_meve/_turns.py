"""LlamaIndex's messages as turns of a conversation: who speaks, what is said in words, which tools are called."""

import hashlib
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock, ToolCallBlock
from llama_index.core.schema import QueryBundle

from meve.errors import QueryError
from meve.memory._integration import check_rules
from meve.conversation import Turn
from meve.memory.turns import TurnRules
from meve.pipeline.config import check_names

PINNED = (MessageRole.SYSTEM, MessageRole.DEVELOPER)
"""Roles of instructions."""
RESULTS = (MessageRole.TOOL, MessageRole.FUNCTION)
"""Roles of what tools return."""
EMPTY_RESPONSE = "Empty Response"
"""What engines answer where nothing was retrieved, without asking a model."""
_ROLES = {
    MessageRole.CHATBOT: "assistant",
    MessageRole.MODEL: "assistant",
    MessageRole.FUNCTION: "tool",
    MessageRole.DEVELOPER: "system",
}


def spoken(message: ChatMessage) -> str:
    """What a message says in words; empty for nothing."""
    return "\n".join(block.text for block in message.blocks if isinstance(block, TextBlock) and block.text)


def asked(question: str | ChatMessage | QueryBundle | None) -> str | None:
    """What a question says in words, however it is put; None for no question.

    Raises:
        QueryError: something else.
    """
    if isinstance(question, ChatMessage):
        return spoken(question)
    if isinstance(question, QueryBundle):
        return question.query_str
    if question is not None and not isinstance(question, str):
        raise QueryError(f"the question is {question!r:.80}: give text, a ChatMessage or a QueryBundle")
    return question


def role_of(message: ChatMessage) -> str:
    """`user`, `assistant`, `tool` or `system`."""
    return _spoken_by(message.role)


def rules_for(remember: TurnRules | None) -> TurnRules:
    """Which turns are remembered; None for none.

    Raises:
        ConfigurationError: something else, or a role that no message has.
    """
    rules = check_rules(remember)
    check_names(rules.sources, list(dict.fromkeys(map(_spoken_by, MessageRole))), "remember")
    return rules


def calls(message: ChatMessage) -> list[str]:
    """The ids of the calls of tools in a message; an empty one for a call without."""
    found = [block.tool_call_id or "" for block in message.blocks if isinstance(block, ToolCallBlock)]
    return found or [_id_of(call) for call in message.additional_kwargs.get("tool_calls") or ()]


def answered_call(message: ChatMessage) -> str:
    """The id of the call that a tool's message answers; empty where it doesn't say."""
    return str(message.additional_kwargs.get("tool_call_id") or "")


def is_answer(message: ChatMessage) -> bool:
    """Whether a model answers with it: in words, calling no tools."""
    return ends(message) and spoken(message).strip() not in {"", EMPTY_RESPONSE}


def ends(message: ChatMessage) -> bool:
    """Whether a model has done with a question by it, be it with an answer or without."""
    return role_of(message) == "assistant" and not calls(message)


def question(messages: Sequence[ChatMessage]) -> str:
    """What the user said last, in words; empty for nothing."""
    found = (text for m in reversed(messages) if role_of(m) == "user" and (text := spoken(m)).strip())
    return next(found, "")


def under_way(messages: Sequence[ChatMessage]) -> bool:
    """Whether what the user said last in words isn't answered yet."""
    for message in reversed(messages):
        if ends(message):
            return False
        if role_of(message) == "user" and spoken(message).strip():
            return True
    return False


def digest(message: ChatMessage) -> str:
    """The same for messages that say the same in the same role, and only for them."""
    return hashlib.sha256(f"{role_of(message)}:{spoken(message)}".encode(errors="replace")).hexdigest()[:32]


def said(messages: Sequence[ChatMessage], ids: Sequence[str]) -> list[Turn]:
    """Messages as turns, each with its id."""
    return [Turn(id=name, speaker=role_of(m), text=spoken(m)) for m, name in zip(messages, ids, strict=True)]


def _spoken_by(role: MessageRole) -> str:
    return _ROLES.get(role, role.value)


def _id_of(call: Any) -> str:
    """The id of a call in the form of some provider's client."""
    found = call.get("id") if isinstance(call, dict) else getattr(call, "id", None)
    return str(found or "")
