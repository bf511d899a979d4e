"""Keep overlapping callers from archiving messages that they haven't counted.

LlamaIndex's `Memory` reads a session's active messages, decides how many of the oldest to archive, and names only their
number. If another call archives in between, the same number would cover newer messages.
"""

import asyncio
from collections.abc import Callable
from typing import TypeAlias
from weakref import WeakKeyDictionary

from llama_index.core.base.llms.types import ChatMessage

from llama_index_meve._async_bridge import run_in_thread
from meve.memory import GovernedMemory
from meve.memory.records import UserId

Session: TypeAlias = tuple[UserId, str]
"""A user and one of their sessions."""
Placed: TypeAlias = tuple[int, ChatMessage]
"""A message and its place in its session."""

_ORDERS: WeakKeyDictionary[GovernedMemory, "ArchiveOrder"] = WeakKeyDictionary()


def order_of(memory: GovernedMemory) -> "ArchiveOrder":
    """Return the order of a memory, which all its chat stores share."""
    return _ORDERS.setdefault(memory, ArchiveOrder())


class ArchiveOrder:
    """Remembers which messages each task has read last, and which are being archived."""

    def __init__(self) -> None:
        self._finished = object()
        """Changes whenever archiving ends."""
        self._running: dict[object, tuple[Session, int]] = {}
        """The sessions that are being archived, each with the place before which."""
        self._read: WeakKeyDictionary[asyncio.Task[object], tuple[Session, list[int]]] = WeakKeyDictionary()

    async def read(self, session: Session, page: Callable[[], list[Placed]]) -> list[ChatMessage]:
        """Return the active messages of a session, without those that are being archived.

        Args:
            session: whose they are.
            page: reads them.
        """
        finished = None
        while finished is not self._finished:  # otherwise some were archived while they were read
            finished = self._finished
            placed = await run_in_thread(page)
        cut = max((before for of, before in list(self._running.values()) if of == session), default=0)
        placed = [each for each in placed if each[0] >= cut]
        if (task := asyncio.current_task()) is not None:
            self._read[task] = session, [place for place, _ in placed]
        return [message for _, message in placed]

    def forget(self) -> None:
        """Forget what the current task has read, since it writes."""
        if (task := asyncio.current_task()) is not None:
            self._read.pop(task, None)

    async def archive(
        self, memory: GovernedMemory, session: Session, n: int, archive: Callable[[int | None], list[Placed]]
    ) -> list[ChatMessage]:
        """Archive the n oldest messages: of those that the current task has read, or of all if it has read none.

        Args:
            memory: the memory that holds them.
            session: whose they are.
            n: the number of messages.
            archive: archives the messages before a place; None for all.
        """
        task, before, running = asyncio.current_task(), None, object()
        of, places = (None if task is None else self._read.get(task)) or (None, [])
        if task is not None and of == session and n > 0:
            before = max(places[:n], default=0) + 1
            self._read[task] = session, places[n:]
            self._running[running] = session, before

        def run() -> list[Placed]:
            try:
                return archive(before)
            finally:
                self._finished = object()
                self._running.pop(running, None)

        return [message for _, message in await memory.run_async(run)]
