"""Governed memory as a block of LlamaIndex's own Memory."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory.memory import BaseMemoryBlock
from pydantic import ConfigDict, Field, PrivateAttr

from llama_index_meve._field_errors import told_plainly
from llama_index_meve._serialization import at_hand
from llama_index_meve._token_limit import MessageCounter
from llama_index_meve._tokenizer import global_tokens
from llama_index_meve._turn_recall import Told, asked_for, recalled
from llama_index_meve._turns import digest, is_answer, question, role_of, rules_for, said, spoken
from meve.components.tokenizers import resolve_tokens
from meve.memory import GovernedMemory, Recall
from meve.memory._integration import HELD, OnError, check_on_error, check_search, tolerate_failures
from meve.memory._recall.formatting import CLOSING, HEADER, OPENING
from meve.memory.turns import TurnRules, record_turns
from meve.memory.records import UserId, user_key
from meve.ports import TokenCounter

_SESSION = "session_id"
Question: TypeAlias = tuple[str, int]
"""What was asked, and how often by then."""
_HEARD = 16_384
"""Turns that are known to have been heard; beyond, the memory is asked whether it knows one."""


class MeVeMemoryBlock(BaseMemoryBlock[str]):
    """What one user's earlier conversations left behind on the question, for `Memory(memory_blocks=[…])`.

    Whatever session asks, it is this user's memory. What the user states is remembered as soon as the block sees it,
    and not only when the short-term memory overflows; an answer is held against what was recalled for it when the next
    question comes.

    Args:
        memory: where; it stays yours to close.
        user_id: whose; a string or an int.
        name: of the block.
        priority: 0 never to be shortened, or else the higher the number, the sooner `Memory` shortens it.
        max_tokens: the most that it takes, at least 1.
        search: options of `GovernedMemory.search` for each recall: `limit`, `tags`, …
        remember: which turns are remembered, and as what; None for none.
        tokens: counts; None for LlamaIndex's own tokenizer.
        on_error: where nothing can be recalled or remembered: `warn` (a `MemoryLostWarning`, and the conversation goes
            on) or `raise`.

    Raises:
        ConfigurationError: no memory, or an option that can't be.
        ValidationError: no user, or one that can't be.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    name: str = "meve"
    memory: GovernedMemory = Field(exclude=True, repr=False)
    """A `meve.memory.GovernedMemory`. It isn't serialised."""
    user_id: UserId = Field(frozen=True)
    max_tokens: int = Field(default=768, ge=1, strict=True)
    search: dict[str, Any] = Field(default_factory=dict)
    remember: TurnRules = Field(exclude=True, repr=False)
    on_error: OnError = "warn"

    _counter: MessageCounter = PrivateAttr()
    _told: OrderedDict[str | None, tuple[Question, Told | None]] = PrivateAttr(default_factory=OrderedDict)
    """In each session the question that waits for an answer, and what was told for it; None if it isn't alone."""
    _heard: set[tuple[str | None, str]] = PrivateAttr(default_factory=set)

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
        tokens: TokenCounter | str | None = None,
        on_error: OnError = "warn",
        accept_short_term_memory: bool = True,
    ) -> None:
        at_hand(memory)
        user_key(user_id)  # who can't be is refused here
        fields: dict[str, Any] = {
            "memory": memory,
            "user_id": user_id,
            "name": name,
            "description": description,
            "priority": priority,
            "max_tokens": max_tokens,
            "search": check_search(memory, search),
            "remember": rules_for(remember),
            "on_error": check_on_error(on_error),
            "accept_short_term_memory": accept_short_term_memory,
        }
        with told_plainly():
            super().__init__(**fields)
        self._counter = MessageCounter(global_tokens() if tokens is None else resolve_tokens(tokens))

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """As many of the facts, the likest first, as are left when it is so much shorter; None where none is."""
        return await self.memory.run_async(self._shortened, content, tokens_to_truncate)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        return await self.memory.run_async(self._recalled, messages or [], block_kwargs.get(_SESSION))

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await self.memory.run_async(self._flushed, messages)

    def _recalled(self, messages: Sequence[ChatMessage], session: str | None) -> str:
        self._hear(messages, session)
        text = question(messages)
        if not asked_for(text):
            return ""
        shown = [words for m in messages if (words := spoken(m)).strip()]
        with tolerate_failures(self.on_error, "recalling from memory"):
            found = recalled(
                self.memory, text, self._counter, user_id=self.user_id, room=self.max_tokens, without=shown,
                search=self.search,
            )  # fmt: skip
            asked = _asked(messages, text)
            if not _answer(messages, asked):
                self._wait(session, asked, found)
            return found.text
        return ""

    def _wait(self, session: str | None, asked: Question, found: Told) -> None:
        """A question waits for its answer; where another does, it isn't known to which an answer will be."""
        before = self._told.pop(session, (asked, found))
        self._told[session] = (asked, found if before[0] == asked and before[1] is not None else None)
        while len(self._told) > HELD:
            self._told.popitem(last=False)

    def _flushed(self, messages: Sequence[ChatMessage]) -> None:
        by_session: dict[str | None, list[ChatMessage]] = {}
        for message in messages:
            by_session.setdefault(message.additional_kwargs.get(_SESSION), []).append(message)
        for session, mine in by_session.items():
            self._hear(mine, session)

    def _hear(self, messages: Sequence[ChatMessage], session: str | None) -> None:
        """Remember what is new, and hold the answer to the last question against what was recalled for it."""
        with tolerate_failures(self.on_error, "remembering what was said"):
            recall, answer = self._answered(messages, session)
            new = [m for m in messages if (session, digest(m)) not in self._heard]
            turns = said(new, [digest(m) for m in new])
            record_turns(
                self.memory, turns, user_id=self.user_id, session_id=session, recall=recall, answer=answer,
                rules=self.remember,
            )  # fmt: skip
            self._heard |= {(session, turn.id) for turn in turns}
        if len(self._heard) > _HEARD:
            self._heard.clear()

    def _answered(self, messages: Sequence[ChatMessage], session: str | None) -> tuple[Recall | None, str]:
        """What was recalled for the last question, and what was answered to it, the first time that it is seen."""
        pending = self._told.get(session)
        answer = _answer(messages, pending[0]) if pending else ""
        if not pending or not answer:
            return None, ""
        self._told.pop(session, None)
        return (pending[1].recall, answer) if pending[1] is not None else (None, "")

    def _shortened(self, content: str, by: int) -> str | None:
        room = self._counter.text(content) - by
        lines = content.removeprefix(f"{HEADER}\n{OPENING}\n").removesuffix(f"\n{CLOSING}").splitlines()
        while lines and self._counter.text(made := "\n".join([HEADER, OPENING, *lines, CLOSING])) > room:
            lines.pop()
        return made if lines else None


def _asked(messages: Sequence[ChatMessage], text: str) -> Question:
    return text, sum(role_of(m) == "user" and spoken(m) == text for m in messages)


def _answer(messages: Sequence[ChatMessage], asked: Question) -> str:
    """What was answered to a question; empty for nothing yet."""
    times, under_way = 0, False
    for message in messages:
        if role_of(message) == "user":
            times += spoken(message) == asked[0]
            under_way = (spoken(message), times) == asked
        elif under_way and is_answer(message):
            return spoken(message)
    return ""
