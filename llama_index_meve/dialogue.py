"""LlamaIndex's chat messages as a dialogue, and a memory block that brings back what a question needs of it."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory.memory import BaseMemoryBlock
from pydantic import ConfigDict, Field, PrivateAttr, model_validator

from llama_index_meve._async_bridge import off_loop
from llama_index_meve._turns import question, role_of, spoken
from meve.dialogue import Dialogue, DialogueSessions, Turn, build_small_context
from meve.dialogue import SmallContextOptions
from meve.errors import ValidationError


def dialogue_of(messages: Sequence[ChatMessage], **parts: Any) -> Dialogue:
    """A dialogue of chat messages: their text, spoken by their role; not system messages.

    Args:
        messages: in their order.
        parts: of `Dialogue.from_turns`: embedder, entities, tokens.

    Raises:
        ValidationError: something that is no chat message.

    >>> dialogue_of([ChatMessage(role="user", content="I live in Oslo.")]).turns[0].label
    'user: '
    """
    return Dialogue.from_turns(_turns(messages), **parts)


class MeVeDialogueBlock(BaseMemoryBlock[str]):
    """Keeps what falls out of a `Memory`'s short term, and brings back the turns that the last question needs.

    Each session has a dialogue of its own, kept in the process and not beyond it. Nothing is computed before a question
    comes.
    """

    model_config = ConfigDict(extra="forbid")

    name: str = "dialogue"
    description: str | None = "What was said earlier and bears on the question."
    max_tokens: int = Field(default=1_024, ge=1)
    """The most tokens that it brings back, by its own counter."""
    window: int | None = 10
    """As for `meve.dialogue.build_small_context`, and so are the others."""
    threshold: float | None = 0.3
    words: bool = True
    candidates: int = 256
    max_turns: int = Field(default=100_000, ge=1)
    """How many turns are kept in all sessions together, as for `meve.dialogue.DialogueSessions`: the session that was told or
    asked longest ago goes first."""
    embedder: Any = Field(default=None, exclude=True)
    entities: Any = Field(default=None, exclude=True)
    tokens: Any = Field(default=None, exclude=True)

    _sessions: DialogueSessions = PrivateAttr()

    @model_validator(mode="after")
    def _checked(self) -> "MeVeDialogueBlock":
        SmallContextOptions(**self._options())
        self._sessions = DialogueSessions(self.max_turns, embedder=self.embedder, entities=self.entities, tokens=self.tokens)
        return self

    def dialogue(self, session_id: str = "") -> Dialogue:
        """A session's, to look at; an empty one if nothing was put into it yet, or it had to go."""
        return self._sessions.get(session_id)

    def forget(self, session_id: str = "") -> None:
        """Let go of all that was said in a session: a `Memory` that is reset doesn't tell its blocks."""
        self._sessions.forget(session_id)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        """The turns that the last question of the user needs, in the order in which they were said; empty for none."""
        asked = question(messages or [])
        dialogue = self.dialogue(block_kwargs.get("session_id") or "")
        if not asked or not len(dialogue):
            return ""
        return await off_loop(self._facts, dialogue, asked)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Keep them; each in the session that it says."""
        for message, turns in zip(messages, map(_turns, ([m] for m in messages)), strict=True):
            self._sessions.extend(message.additional_kwargs.get("session_id") or "", turns)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Without its first turns, as many as it takes; None if nothing is left."""
        count = self._sessions.components.tokens.count
        lines, most = content.splitlines(), count(content) - tokens_to_truncate
        while lines and (lines[0].startswith("  ") or count("\n".join(lines)) > most):
            lines.pop(0)
        return "\n".join(lines) or None

    def _facts(self, dialogue: Dialogue, question: str) -> str:
        room = self.max_tokens + dialogue.components.tokens.count(question)  # the question stands elsewhere
        context = build_small_context(dialogue, question, room, recent=0, **self._options())
        return context.facts

    def _options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("window", "threshold", "words", "candidates")}


def _turns(messages: Sequence[ChatMessage]) -> list[Turn]:
    wrong = next((m for m in messages if not isinstance(m, ChatMessage)), None)
    if wrong is not None:
        raise ValidationError(f"among the messages is {wrong!r:.80}: give LlamaIndex's chat messages")
    return [Turn(text=spoken(m), speaker=role_of(m)) for m in messages if role_of(m) != "system"]
