"""Governed memory as a LlamaIndex chat store: one user's messages, under LlamaIndex's own Memory or by itself."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Self

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
from pydantic import ConfigDict, Field

from llama_index_meve._async_bridge import off_loop
from llama_index_meve._messages import as_message, as_value
from meve.memory import GovernedMemory
from meve.memory._integration import check_memory
from meve.memory.messages.messages import Messages
from meve.memory.messages.messages import Message
from meve.memory.records import UserId, user_key


class MeVeChatStore(AsyncDBChatStore):
    """Keeps the messages of one user's sessions in a governed memory.

    A key is a session. Messages live as long as the memory's policy lets turns of a conversation live, to the second;
    what is deleted is gone from the file; the memory's log tells of each, without its content. `memory.search` doesn't
    recall messages. Other users' are out of reach: the owner is bound here, for good.

    Args:
        memory: where; it stays yours to close.
        user_id: whose messages.
        ttl: how long they live, instead of as the policy says.

    Raises:
        ConfigurationError: no memory.
        ValidationError: a user that can't be.

    >>> import asyncio, tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder, GovernedMemory.open(Path(folder, "memory.db")) as memory:
    ...     store = MeVeChatStore(memory, user_id="alice")
    ...     asyncio.run(store.add_message("monday", ChatMessage("Good morning!")))
    ...     [message.content for message in asyncio.run(store.get_messages("monday"))]
    ['Good morning!']
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", frozen=True)

    memory: GovernedMemory = Field(exclude=True, repr=False)
    """A `meve.memory.GovernedMemory`. It isn't serialised."""
    user_id: UserId
    """Whose messages these are."""
    ttl: timedelta | None = None
    """How long messages live; None for as long as the policy says."""

    def __init__(self, memory: GovernedMemory, *, user_id: UserId, ttl: timedelta | None = None) -> None:
        user_key(user_id)  # who can't be is refused here
        fields: dict[str, Any] = {"memory": check_memory(memory), "user_id": user_id, "ttl": ttl}
        super().__init__(**fields)

    @classmethod
    def class_name(cls) -> str:
        """The class's name."""
        return "MeVeChatStore"

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Itself: nothing of it changes, and the memory is one."""
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:  # noqa: ARG002
        """Itself; with an update another one, checked as a new one is."""
        given = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self)(**{**given, **update}) if update else self

    async def get_messages(
        self,
        key: str,
        status: MessageStatus | None = MessageStatus.ACTIVE,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[ChatMessage]:
        """A session's messages in the order in which they were added; fresh copies each time.

        Args:
            key: the session.
            status: only those of this status; None for any.
            limit: how many at most; None for all.
            offset: how many of the first are left out.

        Raises:
            MeveError: as `memory.messages.page`.
        """
        return await off_loop(self._page, key, status, limit=limit, offset=offset or 0)

    async def get_last_messages(
        self, key: str, n: int, status: MessageStatus | None = MessageStatus.ACTIVE
    ) -> list[ChatMessage]:
        """The n messages of a session that were added last, oldest first; only these are read.

        Raises:
            MeveError: as `memory.messages.page`.
        """
        return await off_loop(self._page, key, status, limit=n, newest=True)

    async def count_messages(self, key: str, status: MessageStatus | None = MessageStatus.ACTIVE) -> int:
        """How many messages of a status a session has; of any, for None.

        Raises:
            MeveError: as `memory.messages.count`.
        """
        return await off_loop(self._kept.count, key, user_id=self.user_id, archived=_archived(status))

    async def add_message(self, key: str, message: ChatMessage, status: MessageStatus = MessageStatus.ACTIVE) -> None:
        """Add a message at a session's end; when this returns, it survives a power cut.

        Raises:
            MeveError: as `memory.messages.add`.
        """
        await self.add_messages(key, [message], status)

    async def add_messages(
        self, key: str, messages: Sequence[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Add messages at a session's end, next to each other: all of them, or none.

        Raises:
            MeveError: as `memory.messages.add`.
        """
        await off_loop(self._write, self._kept.add, key, messages, status)

    async def set_messages(
        self, key: str, messages: Sequence[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Let these be a session's messages, and erase all that it had, of whatever status, at once.

        Raises:
            MeveError: as `memory.messages.replace`.
        """
        await off_loop(self._write, self._kept.replace, key, messages, status)

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Erase the message that stands at a position in `get_messages(key)`, 0 for the first, and return it.

        None where there is no such position. What was made of it goes too.

        Raises:
            HoldError: it is on hold.
        """
        if idx < 0:
            return None
        return next(iter(await off_loop(self._take, key, limit=1, offset=idx)), None)

    async def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        """Erase a session's messages of a status, or all of them, and what was made of them.

        Raises:
            HoldError: one is on hold; nothing is erased.
        """
        await off_loop(self._take, key, archived=_archived(status))

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Erase the n active messages that were added first, and return them.

        Raises:
            HoldError: one is on hold; nothing is erased.
        """
        return await off_loop(self._take, key, limit=n)

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Archive the n active messages that were added first, and return them. Each is given to one caller only.

        Raises:
            HoldError: one is on hold; nothing is archived.
        """
        return await off_loop(self._take, key, limit=n, archive=True)

    async def get_keys(self) -> list[str]:
        """The user's sessions that have a message, sorted."""
        return await off_loop(self._kept.sessions, user_id=self.user_id)

    @property
    def _kept(self) -> Messages:
        return self.memory.messages

    def _page(self, key: str, status: MessageStatus | None, **asked: Any) -> list[ChatMessage]:
        return _told(self._kept.page(key, user_id=self.user_id, archived=_archived(status), **asked))

    def _take(self, key: str, **asked: Any) -> list[ChatMessage]:
        return _told(self._kept.pop(key, user_id=self.user_id, **asked)[0])

    def _write(self, write: Any, key: str, messages: Sequence[ChatMessage], status: MessageStatus) -> None:
        values = [as_value(each) for each in messages]
        write(key, values, user_id=self.user_id, archived=bool(_archived(status)), ttl=self.ttl)


def _archived(status: MessageStatus | None) -> bool | None:
    return None if status is None else MessageStatus(status) is MessageStatus.ARCHIVED


def _told(found: Sequence[Message]) -> list[ChatMessage]:
    return [as_message(each.value) for each in found]
