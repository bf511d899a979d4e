"""A LlamaIndex retriever and a memory block over conversations as graphs of turns."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.callbacks import CallbackManager
from llama_index.core.memory.memory import BaseMemoryBlock
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import ConfigDict, Field, PrivateAttr

from llama_index_meve._async_bridge import run_in_thread
from llama_index_meve._message_content import last_question, role_of, text_of
from llama_index_meve._nodes import OPTION_MAP, context_to_nodes
from meve._fork_safety import ForkSafeLock
from meve._warn_once import warn_once
from meve.conversation import Conversation, Ranking, SlicePolicy
from meve.errors import ConfigurationError, EmptyCorpusError, ValidationError
from meve.integrations._option_names import translate_options


class MeVeConversationRetriever(BaseRetriever):
    """Retrieves turns of a conversation that a question at one of them may reach.

    Args:
        conversation: a `meve.conversation.Conversation`.
        anchor: the id of the turn after which questions are asked; None for the latest one.
        policy: which turns may be reached; None for the conversation's own.
        callback_manager: LlamaIndex's.
        options: `top_k`, and any value of `meve.RetrieverConfig`, by name.

    Raises:
        ConfigurationError: no conversation, an unknown option, or a value out of range.
    """

    def __init__(
        self,
        conversation: Conversation,
        *,
        anchor: str | None = None,
        policy: SlicePolicy | None = None,
        callback_manager: CallbackManager | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(conversation, Conversation):
            raise ConfigurationError(
                f"conversation must be a meve.conversation.Conversation, got {conversation!r:.60}: "
                "Conversation.from_messages makes one of chat messages"
            )
        self.conversation, self.anchor, self.policy = conversation, anchor, policy
        self.options = translate_options(OPTION_MAP, options)
        conversation.config.override(**self.options)  # raises for invalid options
        super().__init__(callback_manager=callback_manager)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if not query_bundle.query_str.strip():
            return []
        try:
            context = self.conversation.retrieve(
                query_bundle.query_str, self.anchor, policy=self.policy, **self.options
            )
        except EmptyCorpusError:
            return []
        return context_to_nodes(context)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await run_in_thread(self._retrieve, query_bundle)


class MeVeConversationBlock(BaseMemoryBlock[str]):
    """Keeps the messages that leave a `Memory`'s short-term memory as a graph, and returns what a question may reach.

    A message's `additional_kwargs` may hold `id`, `time` and `phase`, and a `parent` (the id of a message), at which
    the message begins a branch. One whose parent the block doesn't hold begins a line of its own. A message that comes
    again with the same id and text is kept once. Each session has its own conversation, in memory only. System messages
    are left out.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    name: str = "conversation"
    description: str | None = "What was said earlier on this line of the conversation."
    max_tokens: int = Field(default=1_024, ge=1)
    """The most tokens that the block returns."""
    max_sessions: int = Field(default=1_000, ge=1)
    """The most sessions; the least recently used one is dropped first."""
    policy: SlicePolicy = Field(default_factory=SlicePolicy)
    """Which messages may be reached; by default those on the line of the latest one."""
    ranking: Ranking | None = None
    embedder: Any = Field(default=None, exclude=True)
    verifier: Any = Field(default=None, exclude=True)
    tokens: Any = Field(default=None, exclude=True)

    _sessions: OrderedDict[str, Conversation] = PrivateAttr(default_factory=OrderedDict)
    _lock: ForkSafeLock = PrivateAttr(default_factory=ForkSafeLock)

    def conversation(self, session_id: str = "") -> Conversation:
        """Return a session's conversation; an empty one, which isn't kept, for an unknown or dropped session."""
        with self._lock:
            if session_id in self._sessions:
                self._sessions.move_to_end(session_id)
                return self._sessions[session_id]
        return self._make()

    def forget(self, session_id: str = "") -> None:
        """Drop a session's conversation. A `Memory` that is reset doesn't reset its blocks."""
        with self._lock:
            self._sessions.pop(session_id, None)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        question = last_question(messages or [])
        conversation = self.conversation(block_kwargs.get("session_id") or "")
        if not question or not len(conversation):
            return ""
        anchor = _find_anchor(conversation, messages or [])
        if anchor is None:
            return ""
        context = await run_in_thread(lambda: conversation.retrieve(question, anchor, max_tokens=self.max_tokens))
        return context.text

    async def _aput(self, messages: list[ChatMessage]) -> None:
        for message in messages:
            if not isinstance(message, ChatMessage):
                raise ValidationError(f"messages must be LlamaIndex ChatMessage objects, got {message!r:.80}")
            if role_of(message) != "system":
                self._add(message)

    def _add(self, message: ChatMessage) -> None:
        extra = message.additional_kwargs
        record: dict[str, Any] = {"text": text_of(message), "role": role_of(message)}
        record |= {key: extra[key] for key in ("id", "parent", "time", "phase") if key in extra}
        session = extra.get("session_id") or ""
        with self._lock:
            conversation = self._sessions.pop(session, None) or self._make()
            self._sessions[session] = conversation
            while len(self._sessions) > self.max_sessions:
                self._sessions.popitem(last=False)
            if "parent" in record:
                record["parent"] = _known_parents(conversation, record["parent"])
            if _settle_id(conversation, record):
                conversation.extend([record])

    def _make(self) -> Conversation:
        return Conversation(
            embedder=self.embedder, verifier=self.verifier, tokens=self.tokens, policy=self.policy, ranking=self.ranking
        )


def _find_anchor(conversation: Conversation, messages: Sequence[ChatMessage]) -> str | None:
    """Return the turn to which the last of the messages in short-term memory leads back; None if it begins anew.

    A message with several parents leads to the first one that is known.
    """
    at = conversation.latest
    leads: dict[str, str | None] = {name: name for name in conversation.graph.positions}
    for message in messages:
        name = str(message.additional_kwargs.get("id", ""))
        if name not in conversation.graph.positions:
            if "parent" in message.additional_kwargs:
                parents = _as_list(message.additional_kwargs["parent"])
                at = next((leads[parent] for parent in parents if parent in leads), None)
            leads[name] = at
        else:
            at = name
    return at


def _settle_id(conversation: Conversation, record: dict[str, Any]) -> bool:
    """Give a message another id if its own is taken; return False for a message that the conversation holds."""
    given, known = record.get("id"), conversation.graph.positions
    is_named = given is not None and given != ""
    name = str(given) if is_named else f"turn-{len(conversation)}"
    if name not in known:
        return True
    if is_named:
        first = conversation.graph.turns[known[name]]
        if (first.text, first.speaker) == (record["text"], record["role"]):
            return False
        warn_once(
            "ids of a conversation block", "two messages have the id %.80r and different texts: the block keeps both, "
            "but replies to this id follow the first; give each message an id of its own", name,
        )  # fmt: skip
    while name in known:
        name += "~"
    record["id"] = name
    return True


def _known_parents(conversation: Conversation, parent: object) -> list[str]:
    """Return the parents that the conversation holds; a message without one begins anew and sees no other line."""
    parents = _as_list(parent)
    known = [each for each in parents if each in conversation.graph.positions]
    if len(known) < len(parents):
        warn_once(
            "parents of a conversation block", "a message names the parent %.80r, which the block doesn't hold, such "
            "as one from before a restart: without another parent it begins a line of its own",
            next(each for each in parents if each not in known),
        )  # fmt: skip
    return known


def _as_list(parent: object) -> list[str]:
    values = parent if isinstance(parent, list | tuple) else [parent]
    return [str(each) for each in values if each is not None and each != ""]
