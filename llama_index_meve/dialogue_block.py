"""MeVeDialogueBlock: a memory block that recalls the turns of a long dialogue that are relevant to a question."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory.memory import BaseMemoryBlock
from pydantic import ConfigDict, Field, PrivateAttr, model_validator

from llama_index_meve._async_bridge import run_in_thread
from llama_index_meve._message_content import last_question, role_of, text_of
from meve.dialogue import Dialogue, DialogueSessions, SmallContextOptions, Turn, build_small_context
from meve.errors import ValidationError


def dialogue_from_messages(messages: Sequence[ChatMessage], **parts: Any) -> Dialogue:
    """Return chat messages as a dialogue, with their roles as speakers and without system messages.

    Args:
        messages: in order.
        parts: of `Dialogue.from_turns`: embedder, entities, tokens.

    Raises:
        ValidationError: an item is no ChatMessage.

    >>> dialogue_from_messages([ChatMessage(role="user", content="I live in Oslo.")]).turns[0].label
    'user: '
    """
    return Dialogue.from_turns(_turns(messages), **parts)


class MeVeDialogueBlock(BaseMemoryBlock[str]):
    """Keeps the turns that leave a `Memory`'s short-term memory, and returns those that the last question needs.

    Each session has its own dialogue, in memory only. Nothing is computed before a question comes.
    """

    model_config = ConfigDict(extra="forbid")

    name: str = "dialogue"
    description: str | None = "What was said earlier and bears on the question."
    max_tokens: int = Field(default=1_024, ge=1)
    """The most tokens that the block returns."""
    window: int | None = 10
    """As for `meve.dialogue.build_small_context`, like the next three."""
    threshold: float | None = 0.3
    words: bool = True
    candidates: int = 256
    max_turns: int = Field(default=100_000, ge=1)
    """The most turns of all sessions together; the least recently used session is dropped first."""
    embedder: Any = Field(default=None, exclude=True)
    entities: Any = Field(default=None, exclude=True)
    tokens: Any = Field(default=None, exclude=True)

    _sessions: DialogueSessions = PrivateAttr()

    @model_validator(mode="after")
    def _open_sessions(self) -> "MeVeDialogueBlock":
        SmallContextOptions(**self._context_options())
        self._sessions = DialogueSessions(
            self.max_turns, embedder=self.embedder, entities=self.entities, tokens=self.tokens
        )
        return self

    def dialogue(self, session_id: str = "") -> Dialogue:
        """Return a session's dialogue; an empty one for an unknown or dropped session."""
        return self._sessions.get(session_id)

    def forget(self, session_id: str = "") -> None:
        """Drop a session's dialogue. A `Memory` that is reset doesn't reset its blocks."""
        self._sessions.forget(session_id)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        question = last_question(messages or [])
        dialogue = self.dialogue(block_kwargs.get("session_id") or "")
        if not question or not len(dialogue):
            return ""
        return await run_in_thread(self._facts, dialogue, question)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        for message in messages:
            self._sessions.extend(message.additional_kwargs.get("session_id") or "", _turns([message]))

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Remove the first turns until the text is shorter by so many tokens; None if nothing is left."""
        count = self._sessions.components.tokens.count
        lines, limit = content.splitlines(), count(content) - tokens_to_truncate
        while lines and (lines[0].startswith("  ") or count("\n".join(lines)) > limit):
            lines.pop(0)
        return "\n".join(lines) or None

    def _facts(self, dialogue: Dialogue, question: str) -> str:
        limit = self.max_tokens + dialogue.components.tokens.count(question)  # the prompt has the question elsewhere
        return build_small_context(dialogue, question, limit, recent=0, **self._context_options()).facts

    def _context_options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("window", "threshold", "words", "candidates")}


def _turns(messages: Sequence[ChatMessage]) -> list[Turn]:
    invalid = next((m for m in messages if not isinstance(m, ChatMessage)), None)
    if invalid is not None:
        raise ValidationError(f"messages must be LlamaIndex ChatMessage objects, got {invalid!r:.80}")
    return [Turn(text=text_of(m), speaker=role_of(m)) for m in messages if role_of(m) != "system"]
