"""MeVeChatStore: one user's messages in governed memory, as a LlamaIndex chat store."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Self, TypeVar

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
from pydantic import ConfigDict, Field

from llama_index_meve._archive_order import Placed, order_of
from llama_index_meve._async_bridge import run_in_thread
from llama_index_meve._message_json import message_to_json, messages_from_records
from meve.integrations._option_names import explain_unknown_options
from meve.memory import GovernedMemory
from meve.memory._wrapper_support import check_memory
from meve.memory.messages.message import Message
from meve.memory.records import UserId, user_key

T = TypeVar("T")


class MeVeChatStore(AsyncDBChatStore):
    """Stores the messages of one user's sessions in a governed memory.

    A key is a session. Messages expire as the policy says for turns of a conversation. Deleted messages are erased
    from the file. The audit log records every change, without content. `memory.search` doesn't recall messages. Other
    users' messages can't be reached. Calls that overlap write in the order in which they were made.

    Args:
        memory: the governed memory; the caller closes it.
        user_id: the owner of the messages.
        ttl: how long messages live; None for the policy's value.

    Raises:
        ConfigurationError: no GovernedMemory.
        ValidationError: an invalid user.

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
    """A `meve.memory.GovernedMemory`. It isn't serialized."""
    user_id: UserId
    """The owner of the messages."""
    ttl: timedelta | None = None
    """The lifetime of messages; None for the policy's value."""

    @explain_unknown_options
    def __init__(self, memory: GovernedMemory, *, user_id: UserId, ttl: timedelta | None = None) -> None:
        user_key(user_id)  # raises for an invalid user
        fields: dict[str, Any] = {"memory": check_memory(memory), "user_id": user_id, "ttl": ttl}
        super().__init__(**fields)

    @classmethod
    def class_name(cls) -> str:
        """Return the class name for serialization."""
        return "MeVeChatStore"

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return this store: it is immutable, and copies would share the memory."""
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:  # noqa: ARG002
        """Return this store; with an update, a new, validated store."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self)(**{**fields, **update}) if update else self

    async def get_messages(
        self,
        key: str,
        status: MessageStatus | None = MessageStatus.ACTIVE,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[ChatMessage]:
        """Return copies of a session's messages, oldest first.

        Args:
            key: the session.
            status: only messages of this status; None for any.
            limit: the most messages; None for all.
            offset: how many of the oldest are skipped.

        Raises:
            MeveError: as `memory.messages.page`.
        """
        page = partial(self._page, key, status, limit=limit, offset=offset or 0)
        if limit is None and not offset and status is MessageStatus.ACTIVE:
            return await order_of(self.memory).read((self.user_id, key), page)
        return _messages(await run_in_thread(page))

    async def get_last_messages(
        self, key: str, n: int, status: MessageStatus | None = MessageStatus.ACTIVE
    ) -> list[ChatMessage]:
        """Return the last n messages of a session, oldest first, without reading the others.

        Raises:
            MeveError: as `memory.messages.page`.
        """
        return _messages(await run_in_thread(self._page, key, status, limit=n, newest=True))

    async def count_messages(self, key: str, status: MessageStatus | None = MessageStatus.ACTIVE) -> int:
        """Count a session's messages of a status; None for any.

        Raises:
            MeveError: as `memory.messages.count`.
        """
        return await run_in_thread(self.memory.messages.count, key, user_id=self.user_id, archived=_is_archived(status))

    async def add_message(self, key: str, message: ChatMessage, status: MessageStatus = MessageStatus.ACTIVE) -> None:
        """Append a message to a session, durably.

        Raises:
            MeveError: as `memory.messages.add`.
        """
        await self.add_messages(key, [message], status)

    async def add_messages(
        self, key: str, messages: Sequence[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Append messages to a session next to each other, all or none.

        Raises:
            MeveError: as `memory.messages.add`.
        """
        await self._change(self._write, self.memory.messages.add, key, messages, status)

    async def set_messages(
        self, key: str, messages: Sequence[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Replace all of a session's messages, of any status, at once.

        Raises:
            MeveError: as `memory.messages.replace`.
        """
        await self._change(self._write, self.memory.messages.replace, key, messages, status)

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Erase the message at a position in `get_messages(key)`, from 0, and return it; None for an invalid position.

        Records derived from the message are erased too.

        Raises:
            HoldError: the message is on hold.
        """
        if idx < 0:
            return None
        return next(iter(_messages(await self._change(self._take, key, limit=1, offset=idx))), None)

    async def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        """Erase a session's messages of a status (None for any), and the records derived from them.

        Raises:
            HoldError: a message is on hold; nothing is erased.
        """
        await self._change(self._take, key, archived=_is_archived(status))

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Erase the n oldest active messages and return them.

        Raises:
            HoldError: a message is on hold; nothing is erased.
        """
        return _messages(await self._change(self._take, key, limit=n))

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Archive the n oldest active messages and return them. Concurrent callers never get the same message.

        If this task has read the active messages and written none since, these n are the oldest of those that it read,
        and those that others have archived meanwhile aren't replaced by newer ones.

        Raises:
            HoldError: a message is on hold; nothing is archived.
        """
        take = partial(self._take, key, limit=n, archive=True)
        return await order_of(self.memory).archive(
            self.memory, (self.user_id, key), n, lambda before: take(before=before)
        )

    async def get_keys(self) -> list[str]:
        """Return the user's sessions that have messages, sorted."""
        return await run_in_thread(self.memory.messages.sessions, user_id=self.user_id)

    async def _change(self, change: Callable[..., T], *args: Any, **options: Any) -> T:
        """Run a change after those that were begun before, and carry it out even if the caller is cancelled."""
        order_of(self.memory).forget()
        return await self.memory.run_async(change, *args, **options)

    def _page(self, key: str, status: MessageStatus | None, **options: Any) -> list[Placed]:
        return _placed(self.memory.messages.page(key, user_id=self.user_id, archived=_is_archived(status), **options))

    def _take(self, key: str, **options: Any) -> list[Placed]:
        return _placed(self.memory.messages.pop(key, user_id=self.user_id, **options)[0])

    def _write(self, write: Any, key: str, messages: Sequence[ChatMessage], status: MessageStatus) -> None:
        values = [message_to_json(each) for each in messages]
        write(key, values, user_id=self.user_id, archived=bool(_is_archived(status)), ttl=self.ttl)


def _is_archived(status: MessageStatus | None) -> bool | None:
    return None if status is None else MessageStatus(status) is MessageStatus.ARCHIVED


def _placed(records: Sequence[Message]) -> list[Placed]:
    return list(zip((each.place for each in records), messages_from_records(records), strict=True))


def _messages(placed: Sequence[Placed]) -> list[ChatMessage]:
    return [message for _, message in placed]
