"""The whole governed memory as LlamaIndex chat memory: what was said, what is known, and what answers used of it."""

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Annotated, Any, Literal, Self
from uuid import uuid4

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory.memory import InsertMethod
from llama_index.core.memory.types import BaseMemory
from llama_index.core.schema import QueryBundle
from pydantic import ConfigDict, Field, PrivateAttr

from llama_index_meve._field_errors import told_plainly
from llama_index_meve._history_window import Window
from llama_index_meve._message_identity import Handed
from llama_index_meve._serialization import at_hand, described, reconnected
from llama_index_meve._session_history import History
from llama_index_meve._token_limit import OVERHEAD, MessageCounter
from llama_index_meve._tokenizer import global_tokens
from llama_index_meve._turn_recall import FACTS, Turn, asked_for, recalled
from llama_index_meve._turn_writer import Heard, hear, heard
from llama_index_meve._turns import asked, role_of, rules_for, spoken, under_way
from meve.components.tokenizers import resolve_tokens
from meve.errors import ConfigurationError
from meve.memory import GovernedMemory, Recall
from meve.memory._integration import OnError, check_on_error, check_search, tolerate_failures
from meve.memory._recall.formatting import HEADER, format_recall
from meve.memory.turns import TurnRules
from meve.memory.records import UserId, checked_text, user_key
from meve.ports import TokenCounter

TOKEN_LIMIT = 30_000
_TOLD = 64
"""Tokens that mark it off as data."""


class MeVeMemory(BaseMemory):
    """Chat memory of one user's session: `memory=` of agents, workflows and chat engines.

    `get` returns the end of the conversation, and before it what the user's earlier conversations left behind on the
    question, marked as data. `put` keeps a message word for word, remembers what the user states in it, and holds an
    answer against what was recalled for it. All of it expires, is isolated and can be erased as the memory's policy
    says.

    Args:
        memory: where; it stays yours to close.
        user_id: whose conversation; a string or an int.
        session_id: which of theirs; a new one if None.
        token_limit: the most tokens that `get` returns, at least 1; never exceeded. First come the instructions, then
            the last turn, then what is remembered, then older turns; what alone is too long is cut.
        tokens: counts them; None for LlamaIndex's own tokenizer.
        media_tokens: tokens of a block that is no text, by kind: `image`, `audio`, `video`, `document`.
        search: options of `GovernedMemory.search` for each recall: `limit`, `max_tokens`, `tags`, …
        remember: which turns are remembered, and as what; None for none.
        on_error: where nothing can be recalled or remembered: `warn` (a `MemoryLostWarning`, and the conversation goes
            on) or `raise`. What can't be kept word for word raises in any case.
        insert_method: where what is remembered stands: in the `system` message, or, for agents that put theirs in its
            place and models that know none, before what the `user` said last.

    Raises:
        ConfigurationError: no memory, or an option that can't be.
        ValidationError: no user, or a user or session that can't be.

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
    """The tokenizer's name, if it was named."""
    insert_method: InsertMethod = InsertMethod.SYSTEM

    _tokens: TokenCounter | str | None = PrivateAttr()
    _counter: MessageCounter = PrivateAttr()
    _turn: Turn = PrivateAttr(default_factory=Turn)
    _handed: Handed = PrivateAttr(default_factory=Handed)
    _unheard: list[Heard] = PrivateAttr(default_factory=list)
    """Messages that are kept, and of which nothing could be remembered yet."""
    _hearing: Any = PrivateAttr(default_factory=Lock)

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
        at_hand(memory)
        user_key(user_id)  # who can't be is refused here
        session = uuid4().hex if session_id is None else checked_text(session_id, "session_id")
        fields: dict[str, Any] = {
            "memory": memory,
            "user_id": user_id,
            "session_id": session,
            "token_limit": token_limit,
            "media_tokens": dict(media_tokens or {}),
            "search": check_search(memory, search),
            "remember": rules_for(remember),
            "on_error": check_on_error(on_error),
            "tokens": tokens if isinstance(tokens, str) else None,
            "insert_method": insert_method,
        }
        with told_plainly():
            super().__init__(**fields)
        self._tokens = tokens
        self._counter = MessageCounter(global_tokens() if tokens is None else resolve_tokens(tokens), media_tokens)

    @classmethod
    def from_defaults(
        cls,
        memory: GovernedMemory | None = None,
        user_id: UserId | None = None,
        chat_history: Sequence[ChatMessage] | None = None,
        llm: Any = None,  # noqa: ARG003
        **options: Any,
    ) -> Self:
        """A chat memory that begins with some messages.

        Args:
            memory: as for the class.
            user_id: as for the class.
            chat_history: becomes the session's history; None to leave it as it is.
            llm: isn't asked.
            options: of the class.

        Raises:
            ConfigurationError: no memory, or no user.
        """
        if memory is None or user_id is None:
            raise ConfigurationError(
                "whose memory is meant? Give memory= and user_id=, or give the engine memory=MeVeMemory(memory, "
                "user_id=…) in place of memory_cls="
            )
        made = cls(memory, user_id=user_id, **options)
        if chat_history:
            made.set(list(chat_history))
        return made

    @classmethod
    def class_name(cls) -> str:
        """The class's name."""
        return "MeVeMemory"

    @property
    def recall(self) -> Recall | None:
        """What was recalled last for the turn that is under way or was answered last, with its account."""
        found = self._turn.last
        return found.recall if found else None

    def get(self, input: str | ChatMessage | QueryBundle | None = None, **kwargs: Any) -> list[ChatMessage]:
        """The conversation's last messages, and what is remembered for a question, within the token limit.

        Args:
            input: the question; what the user said last, if None.
            kwargs: `initial_token_count` is taken off the limit; the rest is passed over.

        Returns:
            Fresh messages: perhaps one of role `system`, then turns, the first message a user's, and what tools return
            behind its calls. What is remembered stands as `insert_method` says. What the user said last is one object
            until somebody speaks as a user again, for agents that write their state into it; nothing of that is kept.

        Raises:
            QueryError: a question that is none.
            StorageError: the memory can't be read.
        """
        room = max(0, self.token_limit - int(kwargs.get("initial_token_count") or 0))
        reserve = min((self.search.get("max_tokens") or FACTS) + _TOLD, room // 4)
        window = self._history.window(self._counter, room, reserve, self._handed)
        text = self._told(asked(input), window, room)
        return window.with_memory(text, self.insert_method)

    async def aget(self, input: str | ChatMessage | QueryBundle | None = None, **kwargs: Any) -> list[ChatMessage]:
        """The same, off the event loop."""
        return await self.memory.run_async(self.get, input, **kwargs)

    def get_all(self, **kwargs: Any) -> list[ChatMessage]:  # noqa: ARG002
        """Every message of the session that isn't over, word for word, and nothing of what is remembered."""
        return self._history.all()

    async def aget_all(self, **kwargs: Any) -> list[ChatMessage]:
        """The same, off the event loop."""
        return await self.memory.run_async(self.get_all, **kwargs)

    def put(self, message: ChatMessage) -> None:
        """Keep a message. A user's statements are remembered, an answer is held against what was recalled for it.

        When this returns, it survives a power cut. Where nothing could be remembered of it, it is kept all the same,
        and heard with the next one.

        Raises:
            PassageError: a message that can't be stored.
            StorageError: the memory can't be written.
            ModelError: the embedder failed, and `on_error` is `raise`.
        """
        self.put_messages([message])

    async def aput(self, message: ChatMessage) -> None:
        """The same, off the event loop."""
        await self.memory.run_async(self.put, message)

    def put_messages(self, messages: Sequence[ChatMessage]) -> None:
        """Keep messages, all or none, next to each other.

        Those that begin with an assistant's are an agent's own notes: what it writes in the user's name isn't
        remembered as the user's.
        """
        if said := list(messages):
            kept = self._history.add(said)
            if any(role_of(message) == "user" for message in said):
                self._handed.forget()
            self._hear(heard(kept, own=role_of(said[0]) == "assistant"))

    async def aput_messages(self, messages: Sequence[ChatMessage]) -> None:
        """The same, off the event loop."""
        await self.memory.run_async(self.put_messages, messages)

    def set(self, messages: Sequence[ChatMessage]) -> None:
        """Let these be the session's messages. What was remembered of others stays; what is new among them is heard.

        Raises:
            HoldError: a message that would go is on hold; nothing is changed.
        """
        self._turn.forget()
        self._handed.forget()
        self._hear(heard(self._history.set(list(messages))))
        self._turn.forget()

    async def aset(self, messages: Sequence[ChatMessage]) -> None:
        """The same, off the event loop."""
        await self.memory.run_async(self.set, messages)

    def reset(self) -> None:
        """Erase the session: its messages, and what was remembered of them. Other sessions stay as they are.

        To begin anew and keep what was learned, begin another session.

        Raises:
            HoldError: a message, or what was remembered of one, is on hold; nothing is erased.
        """
        with self._hearing:
            self._history.erase()
            self._turn.forget()
            self._handed.forget()
            self._unheard.clear()

    async def areset(self) -> None:
        """The same, off the event loop."""
        await self.memory.run_async(self.reset)

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:  # noqa: ARG002
        """A reference, JSON-ready: the memory's file and policy, whose session, the options; no content.

        Raises:
            ConfigurationError: rules for turns with a function of your own, or other options that JSON can't hold.
        """
        return described(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any], **kwargs: Any) -> Self:
        """What a reference is of: over the memory that is open in this process, or else over its file, opened anew.

        Raises:
            ConfigurationError, StorageError, AuditError: as `GovernedMemory.open`; then open it with its parts first,
                and keep it at hand.
        """
        return cls(**reconnected({**data, **kwargs}))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as a reference."""
        return type(self).from_dict, (self.to_dict(),)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Itself: the session is one."""
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:  # noqa: ARG002
        """Itself; with an update another one, checked as a new one is."""
        given = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self)(**{**given, "tokens": self._tokens, **update}) if update else self

    @property
    def _history(self) -> History:
        return History(self.memory, self.user_id, self.session_id)

    def _told(self, given: str | None, window: Window, room: int) -> str:
        """What is remembered, as text."""
        text = window.question if given is None else given
        left = room - window.tokens - (0 if window.fits(self.insert_method) else OVERHEAD)
        if given is None and text and under_way(window.turns):
            self._turn.asks(text, self.memory.clock.now())
        elif given is None and (known := self._turn.told(text)) is not None:
            again = format_recall(self.memory, known.recall)
            return again if self._counter.text(again) <= left else ""
        if not asked_for(text) or left < 2 * self._counter.text(HEADER):
            return ""
        with tolerate_failures(self.on_error, "recalling from memory"):
            found = recalled(
                self.memory, text, self._counter, user_id=self.user_id, room=left,
                without=[shown for m in window.turns if (shown := spoken(m)).strip()], search=self.search,
            )  # fmt: skip
            self._turn.keep(found)
            return found.text
        return ""

    def _hear(self, new: Sequence[Heard]) -> None:
        """What messages leave behind, in their order; and those of which it failed before."""
        with self._hearing, tolerate_failures(self.on_error, "remembering what was said"):
            waiting = [*self._unheard, *new]
            self._unheard[:], failed = hear(self._history, waiting, self._turn, self.remember)
            if failed is not None:
                raise failed
