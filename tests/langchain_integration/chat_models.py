"""Fake chat models whose answer is a function of the messages, and which record what they read."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

FACT = "I have a dog called Rex."
QUESTION = "What is my dog called?"
LINE = re.compile(r"^\[\d+\] (.*?)(?: \((?:\w+, )?[\d-]+\).*)?$", re.MULTILINE)


@dataclass
class Context:
    """The runtime context of an agent."""

    user_id: object = None


def recalled_texts(messages: list[BaseMessage]) -> list[str]:
    """Return the memories in the system messages of a prompt."""
    return [line for m in messages if m.type == "system" for line in LINE.findall(str(m.text))]


def answer_from_memory(messages: list[BaseMessage]) -> AIMessage:
    """Answer with the memories in the prompt."""
    return AIMessage(" ".join(recalled_texts(messages)) or "Noted.")


class ScriptedChatModel(BaseChatModel):
    """A chat model that answers by a function, in one piece or streamed by word."""

    answer: Callable[[list[BaseMessage]], AIMessage] = answer_from_memory
    seen: list[Any] = []  # noqa: RUF012 (pydantic copies it)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        self.seen.append(list(messages))
        return ChatResult(generations=[ChatGeneration(message=self.answer(messages))])

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        self.seen.append(list(messages))
        message = self.answer(messages)
        for n, word in enumerate(str(message.text).split(" ")):
            piece = AIMessageChunk(f" {word}" if n else word, id=f"run-{id(message)}")
            yield ChatGenerationChunk(message=piece)
        if message.tool_calls:
            calls = [
                {"name": c["name"], "args": json.dumps(c["args"]), "id": c["id"], "index": n}
                for n, c in enumerate(message.tool_calls)
            ]
            yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=calls))


def audit_actions(memory, user):
    """Return the actions of a user's audit events, in order."""
    return [event.action for event in memory.audit.events(user_id=user)]
