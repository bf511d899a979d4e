"""MeVeMemoryBlock: governed memory as a block of LlamaIndex's own Memory."""

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, TypeAlias

from cachetools import FIFOCache
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory.memory import BaseMemoryBlock
from pydantic import ConfigDict, Field, PrivateAttr

from llama_index_meve._field_errors import translate_field_errors
from llama_index_meve._message_content import (
    check_turn_rules,
    is_answer,
    last_question,
    message_digest,
    role_of,
    text_of,
    to_turns,
)
from llama_index_meve._message_counter import MessageCounter
from llama_index_meve._seen_messages import SeenMessages
from llama_index_meve._serialization import register_memory
from llama_index_meve._turn_recall import QuestionRecall, extract_query, recall_for
from meve.integrations._option_names import explain_unknown_options
from meve.memory import GovernedMemory, Recall
from meve.memory._recall.formatting import HEADER
from meve.memory._wrapper_support import MAX_PENDING_RECALLS, OnError, check_on_error, check_search, tolerate_failures
from meve.memory.records import UserId, user_key
from meve.memory.turns import TurnRules, record_turns
from meve.ports import TokenCounter
from meve.routing import RouterConfig
from meve.routing._wrapper_support import make_search

_SESSION = "session_id"

AskedQuestion: TypeAlias = tuple[str, int]
"""A question's text, and how often it had been asked by then."""


class MeVeMemoryBlock(BaseMemoryBlock[str]):
    """Recalls what one user's earlier conversations say about the question, for `Memory(memory_blocks=[…])`.

    All sessions share the user's memory. Statements are remembered as soon as the block sees them, not only when the
    short-term memory overflows. An answer is judged when the next question comes.

    Args:
        memory: the governed memory; the caller closes it.
        user_id: the user, a string or an int.
        name: the block's name.
        priority: 0 to never shorten the block; otherwise `Memory` shortens higher numbers sooner.
        max_tokens: the most tokens of the block, at least 1.
        search: options of `GovernedMemory.search` for each recall: `limit`, `tags`, …
        remember: which turns are remembered, and as what; None for none.
        routing: how the memory is read by what each question needs (docs/routing.md); None for a plain search.
        tokens: counts tokens; None for LlamaIndex's own tokenizer.
        on_error: if recalling or remembering fails: `warn` (with a `MemoryLostWarning`) and go on, or `raise`.

    Raises:
        ConfigurationError: no GovernedMemory, or an invalid option.
        ValidationError: an invalid user.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    name: str = "meve"
    memory: GovernedMemory = Field(exclude=True, repr=False)
    """A `meve.memory.GovernedMemory`. It isn't serialized."""
    user_id: UserId = Field(frozen=True)
    max_tokens: int = Field(default=768, ge=1, strict=True)
    search: dict[str, Any] = Field(default_factory=dict)
    remember: TurnRules = Field(exclude=True, repr=False)
    routing: RouterConfig | None = None
    on_error: OnError = "warn"

    _counter: MessageCounter = PrivateAttr()
    _pending: FIFOCache[str | None, tuple[AskedQuestion, QuestionRecall | None]] = PrivateAttr(
        default_factory=lambda: FIFOCache(MAX_PENDING_RECALLS)
    )
    """By session: the unanswered question and its recall; None if several questions are unanswered."""
    _lock: Any = PrivateAttr(default_factory=Lock)
    _seen: SeenMessages = PrivateAttr(default_factory=SeenMessages)

    @explain_unknown_options
    def __init__(
        self,
        memory: GovernedMemory,
        *,
        user_id: UserId,
        name: str = "meve",
        description: str | None = None,
        priority: int = 1,
        max_tokens: int = 768,
        search: Mapping[str, Any] | None = None,
        remember: TurnRules | None = TurnRules(),  # noqa: B008 (frozen)
        routing: RouterConfig | None = None,
        tokens: TokenCounter | str | None = None,
        on_error: OnError = "warn",
        accept_short_term_memory: bool = True,
    ) -> None:
        register_memory(memory)
        make_search(memory, search, routing)  # checks them
        user_key(user_id)  # raises for an invalid user
        fields: dict[str, Any] = {
            "memory": memory,
            "user_id": user_id,
            "name": name,
            "description": description,
            "priority": priority,
            "max_tokens": max_tokens,
            "search": check_search(memory, search),
            "routing": routing,
            "remember": check_turn_rules(remember),
            "on_error": check_on_error(on_error),
            "accept_short_term_memory": accept_short_term_memory,
        }
        with translate_field_errors():
            super().__init__(**fields)
        self._counter = MessageCounter(tokens)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Remove the least relevant facts until the text is shorter by so many tokens; None if none is left."""
        return await self.memory.run_async(self._truncate, content, tokens_to_truncate)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        return await self.memory.run_async(self._recall_text, messages or [], block_kwargs.get(_SESSION))

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await self.memory.run_async(self._write_by_session, messages)

    def _recall_text(self, messages: Sequence[ChatMessage], session: str | None) -> str:
        self._write(messages, session)
        text = last_question(messages)
        if not extract_query(text):
            return ""
        shown = [content for m in messages if (content := text_of(m)).strip()]
        with tolerate_failures(self.on_error, "recalling from memory"):
            recall = recall_for(
                self.memory, text, self._counter, user_id=self.user_id, max_tokens=self.max_tokens, without=shown,
                search=self.search, routing=self.routing,
            )  # fmt: skip
            question = text, sum(role_of(m) == "user" and text_of(m) == text for m in messages)
            if not _answer_to(question, messages):
                self._add_pending(session, question, recall)
            return recall.text
        return ""

    def _add_pending(self, session: str | None, question: AskedQuestion, recall: QuestionRecall) -> None:
        """Wait for a question's answer. If another question waits, answers can't be matched to questions."""
        with self._lock:
            waiting, waiting_recall = self._pending.get(session, (question, recall))
            is_alone = waiting == question and waiting_recall is not None
            self._pending[session] = (question, recall if is_alone else None)

    def _write_by_session(self, messages: Sequence[ChatMessage]) -> None:
        by_session: dict[str | None, list[ChatMessage]] = {}
        for message in messages:
            by_session.setdefault(message.additional_kwargs.get(_SESSION), []).append(message)
        for session, group in by_session.items():
            self._write(group, session)

    def _write(self, messages: Sequence[ChatMessage], session: str | None) -> None:
        """Remember new messages, and judge the recall for the last question by its answer."""
        with tolerate_failures(self.on_error, "remembering what was said"):
            recall, answer = self._take_answered(messages, session)
            digests = [message_digest(m) for m in messages]
            new = self._seen.find_new(session, digests)
            turns = to_turns([messages[each.place] for each in new], [each.name for each in new])
            known = messages[: new[0].place] if new else []
            record_turns(
                self.memory, turns, user_id=self.user_id, session_id=session, recall=recall, answer=answer,
                rules=self.remember, before=to_turns(known, digests[: len(known)]),
            )  # fmt: skip
            self._seen.note(session, digests, new)

    def _take_answered(self, messages: Sequence[ChatMessage], session: str | None) -> tuple[Recall | None, str]:
        """Return the recall for the last question and its answer, the first time that the answer is seen."""
        with self._lock:
            pending = self._pending.get(session)
            answer = _answer_to(pending[0], messages) if pending else ""
            if not pending or not answer:
                return None, ""
            del self._pending[session]
        return (pending[1].recall, answer) if pending[1] is not None else (None, "")

    def _truncate(self, content: str, by: int) -> str | None:
        limit = self._counter.count_text(content) - by
        wishes, _, block = content.partition(f"{HEADER}\n")
        opening, *lines = block.split("\n")
        closing = lines.pop() if lines else ""
        text = content
        while lines and self._counter.count_text(text) > limit:
            lines.pop()
            text = wishes + "\n".join([HEADER, opening, *lines, closing])
        text = text if lines else wishes.strip()
        return text if text and self._counter.count_text(text) <= limit else None


def _answer_to(question: AskedQuestion, messages: Sequence[ChatMessage]) -> str:
    """Return the answer to a question; empty if there is none yet."""
    times, is_open = 0, False
    for message in messages:
        if role_of(message) == "user":
            times += text_of(message) == question[0]
            is_open = (text_of(message), times) == question
        elif is_open and is_answer(message):
            return text_of(message)
    return ""
