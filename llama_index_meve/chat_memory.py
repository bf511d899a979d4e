"""MeVeMemory: governed memory as LlamaIndex chat memory for agents, workflows and chat engines."""

import json
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Annotated, Any, Literal, Self
from uuid import uuid4

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory.memory import InsertMethod
from llama_index.core.memory.types import BaseMemory
from llama_index.core.schema import QueryBundle
from pydantic import ConfigDict, Field, PrivateAttr

from llama_index_meve._field_errors import translate_field_errors
from llama_index_meve._history_truncation import HistoryWindow
from llama_index_meve._message_content import check_turn_rules, has_open_question, question_text, role_of, text_of
from llama_index_meve._message_counter import MESSAGE_OVERHEAD, MessageCounter
from llama_index_meve._message_identity import MessageIdentity
from llama_index_meve._serialization import memory_from_dict, memory_to_dict, register_memory
from llama_index_meve._session_history import SessionHistory
from llama_index_meve._turn_recall import DEFAULT_RECALL_TOKENS, OpenQuestions, extract_query, recall_for
from llama_index_meve._turn_writer import PendingTurn, pending_turns, write_turns
from meve.errors import ConfigurationError
from meve.integrations._option_names import explain_unknown_options
from meve.memory import GovernedMemory, Recall
from meve.memory._recall.formatting import HEADER, format_recall
from meve.memory._wrapper_support import OnError, check_on_error, check_search, tolerate_failures
from meve.memory.records import UserId, check_text, user_key
from meve.memory.turns import TurnRules
from meve.ports import TokenCounter

TOKEN_LIMIT = 30_000
_MARKER_TOKENS = 64
"""Tokens of the text that marks a recall as data."""


class MeVeMemory(BaseMemory):
    """Chat memory of one user's session: `memory=` of agents, workflows and chat engines.

    `get` returns the end of the conversation, and what the user's earlier conversations say about the question, marked
    as data. `put` stores a message word for word and remembers what the user states in it. An answer changes the scores
    of what was recalled for it. The memory's policy governs expiry, isolation and erasure.

    Args:
        memory: the governed memory; the caller closes it.
        user_id: the user, a string or an int.
        session_id: the conversation; a new one if None.
        token_limit: the most tokens that `get` returns, at least 1; never exceeded. Instructions come first, then the
            last turn, then the recall, then older turns; a single message that is too long is cut.
        tokens: counts tokens; None for LlamaIndex's own tokenizer.
        media_tokens: tokens of a media block by kind: `image`, `audio`, `video`, `document`.
        search: options of `GovernedMemory.search` for each recall: `limit`, `max_tokens`, `tags`, …
        remember: which turns are remembered, and as what; None for none.
        on_error: if recalling or remembering fails: `warn` (with a `MemoryLostWarning`) and go on, or `raise`. Failing
            to store a message always raises.
        insert_method: where the recall stands: in the `system` message, or before the `user`'s last message, for agents
            that replace system messages and models without them.

    Raises:
        ConfigurationError: no GovernedMemory, or an invalid option.
        ValidationError: an invalid user or session.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder, GovernedMemory.open(Path(folder, "memory.db")) as memory:
    ...     monday = MeVeMemory(memory, user_id="alice", session_id="monday")
    ...     monday.put(ChatMessage("I grow tomatoes on a balcony in Oslo."))
    ...     friday = MeVeMemory(memory, user_id="alice", session_id="friday")
    ...     "balcony in Oslo" in friday.get("What can I grow on my balcony?")[0].content
    True
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", frozen=True)

    memory: GovernedMemory = Field(exclude=True, repr=False)
    """A `meve.memory.GovernedMemory`."""
    user_id: UserId
    session_id: str
    token_limit: Annotated[int, Field(ge=1, strict=True)] = TOKEN_LIMIT
    media_tokens: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    search: dict[str, Any] = Field(default_factory=dict)
    remember: TurnRules = Field(exclude=True, repr=False)
    on_error: OnError = "warn"
    tokens: str | None = None
    """The tokenizer's name, if it was given by name."""
    insert_method: InsertMethod = InsertMethod.SYSTEM

    _history: SessionHistory = PrivateAttr()
    _tokens: TokenCounter | str | None = PrivateAttr()
    _counter: MessageCounter = PrivateAttr()
    _questions: OpenQuestions = PrivateAttr(default_factory=OpenQuestions)
    _identity: MessageIdentity = PrivateAttr(default_factory=MessageIdentity)
    _pending: list[PendingTurn] = PrivateAttr(default_factory=list)
    """Stored messages whose facts could not be written yet."""
    _write_lock: Any = PrivateAttr(default_factory=Lock)

    @explain_unknown_options
    def __init__(
        self,
        memory: GovernedMemory,
        *,
        user_id: UserId,
        session_id: str | None = None,
        token_limit: int = TOKEN_LIMIT,
        tokens: TokenCounter | str | None = None,
        media_tokens: Mapping[str, int] | None = None,
        search: Mapping[str, Any] | None = None,
        remember: TurnRules | None = TurnRules(),  # noqa: B008 (frozen)
        on_error: OnError = "warn",
        insert_method: InsertMethod | Literal["system", "user"] = InsertMethod.SYSTEM,
    ) -> None:
        register_memory(memory)
        user_key(user_id)  # raises for an invalid user
        session = uuid4().hex if session_id is None else check_text(session_id, "session_id")
        fields: dict[str, Any] = {
            "memory": memory,
            "user_id": user_id,
            "session_id": session,
            "token_limit": token_limit,
            "media_tokens": dict(media_tokens or {}),
            "search": check_search(memory, search),
            "remember": check_turn_rules(remember),
            "on_error": check_on_error(on_error),
            "tokens": tokens if isinstance(tokens, str) else None,
            "insert_method": insert_method,
        }
        with translate_field_errors():
            super().__init__(**fields)
        self._history = SessionHistory(memory, user_id, session)
        self._tokens = tokens
        self._counter = MessageCounter(tokens, media_tokens)

    @classmethod
    def from_defaults(
        cls,
        memory: GovernedMemory | None = None,
        user_id: UserId | None = None,
        chat_history: Sequence[ChatMessage] | None = None,
        llm: Any = None,  # noqa: ARG003
        **options: Any,
    ) -> Self:
        """Create a chat memory, with the given messages as its history.

        Args:
            memory: as for the class.
            user_id: as for the class.
            chat_history: replaces the session's messages; None to leave them.
            llm: ignored.
            options: as for the class.

        Raises:
            ConfigurationError: no memory, or no user.
        """
        if memory is None or user_id is None:
            raise ConfigurationError(
                "memory and user_id are required: give them, or give the engine memory=MeVeMemory(memory, user_id=…) "
                "instead of memory_cls="
            )
        chat_memory = cls(memory, user_id=user_id, **options)
        if chat_history:
            chat_memory.set(list(chat_history))
        return chat_memory

    @classmethod
    def class_name(cls) -> str:
        """Return the class name for serialization."""
        return "MeVeMemory"

    @property
    def recall(self) -> Recall | None:
        """The last recall of the current turn, with its trace; None before the first."""
        last = self._questions.last
        return last.recall if last else None

    def tokenizer_fn(self, text: str) -> list[int]:
        """Return a list as long as the text has tokens; chat engines count their own prompt with it."""
        return [0] * self._counter.count_text(text)

    def get(self, input: str | ChatMessage | QueryBundle | None = None, **kwargs: Any) -> list[ChatMessage]:
        """Return the end of the conversation and the recall for a question, within the token limit.

        Args:
            input: the question; None for the user's last message.
            kwargs: `initial_token_count` is subtracted from the limit; others are ignored.

        Returns:
            Perhaps a system message, then turns from a user message on, tool results behind their calls. Messages are
            copies. The user's last message is the same object on every call until the user speaks again, since agents
            write their state into it.

        Raises:
            QueryError: the question has another type.
            ConfigurationError: `initial_token_count` takes the whole limit, or nothing of the user's last message fits.
            StorageError: the memory can't be read.
        """
        taken = int(kwargs.get("initial_token_count") or 0)
        if taken >= self.token_limit:
            raise ConfigurationError(
                f"initial_token_count must be below token_limit, got {taken} of {self.token_limit}: no message fits; "
                "raise token_limit, or shorten the prompt"
            )
        limit = self.token_limit - taken
        reserve = min((self.search.get("max_tokens") or DEFAULT_RECALL_TOKENS) + _MARKER_TOKENS, limit // 4)
        window = self._history.window(self._counter, limit, reserve, self._identity)
        if window.is_overlong:
            raise ConfigurationError(
                f"token_limit must leave room for a part of the user's last message, got {self.token_limit} with "
                f"{taken} taken: raise it, or shorten the prompt and the session's instructions"
            )
        text = self._recall_text(question_text(input), window, limit)
        return window.with_memory(text, self.insert_method)

    async def aget(self, input: str | ChatMessage | QueryBundle | None = None, **kwargs: Any) -> list[ChatMessage]:
        """Run `get` off the event loop."""
        return await self.memory.run_async(self.get, input, **kwargs)

    def get_all(self, **kwargs: Any) -> list[ChatMessage]:  # noqa: ARG002
        """Return every unexpired message of the session, word for word, without recalls."""
        return self._history.messages()

    async def aget_all(self, **kwargs: Any) -> list[ChatMessage]:
        """Run `get_all` off the event loop."""
        return await self.memory.run_async(self.get_all, **kwargs)

    def put(self, message: ChatMessage) -> None:
        """Store a message durably, remember a user's statements, and judge the recall by an answer.

        If remembering fails, the message is stored all the same, and tried again with the next one.

        Raises:
            PassageError: the message can't be stored.
            StorageError: the memory can't be written.
            ModelError: the embedder failed, and `on_error` is `raise`.
        """
        self.put_messages([message])

    async def aput(self, message: ChatMessage) -> None:
        """Run `put` off the event loop."""
        await self.memory.run_async(self.put, message)

    def put_messages(self, messages: Sequence[ChatMessage]) -> None:
        """Store messages next to each other, all or none.

        Messages that begin with an assistant's are an agent's notes: user messages among them aren't remembered.
        """
        if new := list(messages):
            stored = self._history.add(new)
            if any(role_of(message) == "user" for message in new):
                self._identity.forget()
            self._write(pending_turns(stored, agent_notes=role_of(new[0]) == "assistant"))

    async def aput_messages(self, messages: Sequence[ChatMessage]) -> None:
        """Run `put_messages` off the event loop."""
        await self.memory.run_async(self.put_messages, messages)

    def set(self, messages: Sequence[ChatMessage]) -> None:
        """Replace the session's messages, and remember what the new ones state. Facts from old ones stay.

        Raises:
            HoldError: a message to be removed is on hold; nothing is changed.
        """
        self._questions.forget()
        self._identity.forget()
        self._write(pending_turns(self._history.set(list(messages))))
        self._questions.forget()

    async def aset(self, messages: Sequence[ChatMessage]) -> None:
        """Run `set` off the event loop."""
        await self.memory.run_async(self.set, messages)

    def reset(self) -> None:
        """Erase the session: its messages and the facts from them. Other sessions stay.

        To start over and keep the facts, begin another session.

        Raises:
            HoldError: a record of the session is on hold; nothing is erased.
        """
        with self._write_lock:
            self._history.erase()
            self._questions.forget()
            self._identity.forget()
            self._pending.clear()

    async def areset(self) -> None:
        """Run `reset` off the event loop."""
        await self.memory.run_async(self.reset)

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:  # noqa: ARG002
        """Return a JSON-ready reference: file, policy, user, session and options, without content.

        Raises:
            ConfigurationError: JSON can't represent an option, such as a function in `remember`.
        """
        return memory_to_dict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any], **kwargs: Any) -> Self:
        """Create the chat memory of a reference, over the open memory of its file, or over the file opened anew.

        Raises:
            ConfigurationError, StorageError, AuditError: as `GovernedMemory.open`. If the memory needs components of
                its own, open it and create a `MeVeMemory` with it first.
        """
        return cls(**memory_from_dict({**data, **kwargs}, cls.model_fields))

    def to_string(self) -> str:
        """Return `to_dict` as JSON text.

        Raises:
            ConfigurationError: as `to_dict`.
        """
        return json.dumps(self.to_dict())

    @classmethod
    def from_string(cls, json_str: str, **kwargs: Any) -> Self:
        """Create the chat memory of a reference from `to_string`; raises as `from_dict`."""
        try:
            data = json.loads(json_str)
        except (TypeError, ValueError) as cause:
            raise ConfigurationError(f"json_str must be what to_string() returned, got {json_str!r:.80}") from cause
        return cls.from_dict(data, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a reference."""
        return type(self).from_dict, (self.to_dict(),)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return this object: copies would share the session anyway."""
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:  # noqa: ARG002
        """Return this object; with an update, a new, validated chat memory."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self)(**{**fields, "tokens": self._tokens, **update}) if update else self

    def _recall_text(self, question: str | None, window: HistoryWindow, limit: int) -> str:
        """Return the recall for a question, by default the open one, as text that fits beside the window."""
        text = window.question if question is None else question
        left = limit - window.tokens - (0 if window.has_place_for_memory(self.insert_method) else MESSAGE_OVERHEAD)
        if question is None and text and has_open_question(window.turns):
            self._questions.add(text, self.memory.clock.now())
        elif question is None and (known := self._questions.find_recall(text)) is not None:
            repeated = format_recall(self.memory, known.recall)
            return repeated if self._counter.count_text(repeated) <= left else ""
        if not extract_query(text) or left < 2 * self._counter.count_text(HEADER):
            return ""
        with tolerate_failures(self.on_error, "recalling from memory"):
            recall = recall_for(
                self.memory, text, self._counter, user_id=self.user_id, max_tokens=left,
                without=[shown for m in window.turns if (shown := text_of(m)).strip()], search=self.search,
            )  # fmt: skip
            self._questions.add_recall(recall)
            return recall.text
        return ""

    def _write(self, new: Sequence[PendingTurn]) -> None:
        """Write new turns to memory, after those that failed before."""
        with self._write_lock, tolerate_failures(self.on_error, "remembering what was said"):
            pending = [*self._pending, *new]
            self._pending[:], error = write_turns(self._history, pending, self._questions, self.remember)
            if error is not None:
                raise error
