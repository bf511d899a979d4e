"""Chat models that answer by a function of what they read, and keep what they read."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

LINE = re.compile(r"^\[\d+\] (.*) \(\w+, [\d-]+\)", re.MULTILINE)


def recalled(messages: list[BaseMessage]) -> list[str]:
    """The memories that stand in a prompt."""
    return [line for m in messages if m.type == "system" for line in LINE.findall(str(m.text))]


def by_memory(messages: list[BaseMessage]) -> AIMessage:
    """Says what it is reminded of."""
    return AIMessage(" ".join(recalled(messages)) or "Noted.")


class Scripted(BaseChatModel):
    """Answers by a function, in one piece or word by word."""

    answer: Callable[[list[BaseMessage]], AIMessage] = by_memory
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
        made = self.answer(messages)
        for n, word in enumerate(str(made.text).split(" ")):
            piece = AIMessageChunk(f" {word}" if n else word, id=f"run-{id(made)}")
            yield ChatGenerationChunk(message=piece)
        if made.tool_calls:
            calls = [
                {"name": c["name"], "args": json.dumps(c["args"]), "id": c["id"], "index": n}
                for n, c in enumerate(made.tool_calls)
            ]
            yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=calls))


def actions(memory, user):
    """What the log tells of a user's records, in order."""
    return [event.action for event in memory.audit.events(user_id=user)]
