"""Read chat messages: their role, text and tool calls, and which question is open."""

import hashlib
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock, ToolCallBlock
from llama_index.core.schema import QueryBundle

from meve.conversation import Turn
from meve.errors import QueryError
from meve.memory._wrapper_support import check_rules
from meve.memory.turns import TurnRules
from meve.pipeline.config import check_option_names

INSTRUCTION_ROLES = (MessageRole.SYSTEM, MessageRole.DEVELOPER)
TOOL_RESULT_ROLES = (MessageRole.TOOL, MessageRole.FUNCTION)
EMPTY_RESPONSE = "Empty Response"
"""LlamaIndex's answer when nothing was retrieved, given without asking a model."""
_ROLES = {
    MessageRole.CHATBOT: "assistant",
    MessageRole.MODEL: "assistant",
    MessageRole.FUNCTION: "tool",
    MessageRole.DEVELOPER: "system",
}


def text_of(message: ChatMessage) -> str:
    return "\n".join(block.text for block in message.blocks if isinstance(block, TextBlock) and block.text)


def question_text(question: str | ChatMessage | QueryBundle | None) -> str | None:
    """Return the text of a question given in any form; None for None.

    Raises:
        QueryError: another type.
    """
    if isinstance(question, ChatMessage):
        return text_of(question)
    if isinstance(question, QueryBundle):
        return question.query_str
    if question is not None and not isinstance(question, str):
        raise QueryError(f"the question must be text, a ChatMessage or a QueryBundle, got {question!r:.80}")
    return question


def role_of(message: ChatMessage) -> str:
    return _role_name(message.role)


def check_turn_rules(remember: TurnRules | None) -> TurnRules:
    """Return the rules for which turns are remembered; for None, rules that remember none.

    Raises:
        ConfigurationError: another type, or a role that no message has.
    """
    rules = check_rules(remember)
    check_option_names(rules.sources, list(dict.fromkeys(map(_role_name, MessageRole))), "remember")
    return rules


def tool_call_ids(message: ChatMessage) -> list[str]:
    """Return the ids of a message's tool calls; "" for a call without an id."""
    ids = [block.tool_call_id or "" for block in message.blocks if isinstance(block, ToolCallBlock)]
    return ids or [_provider_call_id(call) for call in message.additional_kwargs.get("tool_calls") or ()]


def answered_call_id(message: ChatMessage) -> str:
    """Return the id of the tool call that a tool message answers; empty if it names none."""
    return str(message.additional_kwargs.get("tool_call_id") or "")


def is_answer(message: ChatMessage) -> bool:
    """Return whether the model answers in text, without tool calls."""
    return ends_turn(message) and text_of(message).strip() not in {"", EMPTY_RESPONSE}


def ends_turn(message: ChatMessage) -> bool:
    """Return whether the model is done with a question, with or without an answer."""
    return role_of(message) == "assistant" and not tool_call_ids(message)


def last_question(messages: Sequence[ChatMessage]) -> str:
    """Return the user's last text; empty if there is none."""
    texts = (text for m in reversed(messages) if role_of(m) == "user" and (text := text_of(m)).strip())
    return next(texts, "")


def has_open_question(messages: Sequence[ChatMessage]) -> bool:
    """Return whether the user's last text is unanswered."""
    for message in reversed(messages):
        if ends_turn(message):
            return False
        if role_of(message) == "user" and text_of(message).strip():
            return True
    return False


def last_user_index(messages: Sequence[ChatMessage]) -> int | None:
    return next((n for n in reversed(range(len(messages))) if role_of(messages[n]) == "user"), None)


def message_digest(message: ChatMessage) -> str:
    return hashlib.sha256(f"{role_of(message)}:{text_of(message)}".encode(errors="replace")).hexdigest()[:32]


def to_turns(messages: Sequence[ChatMessage], ids: Sequence[str]) -> list[Turn]:
    return [Turn(id=id_, speaker=role_of(m), text=text_of(m)) for m, id_ in zip(messages, ids, strict=True)]


def _role_name(role: MessageRole) -> str:
    return _ROLES.get(role, role.value)


def _provider_call_id(call: Any) -> str:
    """Return the id of a tool call in a provider client's own format."""
    id_ = call.get("id") if isinstance(call, dict) else getattr(call, "id", None)
    return str(id_ or "")
