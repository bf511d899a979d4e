"""Connections: HTTP/1.1 by h11, with a time limit for headers, which uvicorn doesn't have."""

import asyncio
import socket
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0
"""The longest time in which the headers of a request may arrive."""


class TimedProtocol(H11Protocol):
    """Closes a connection whose next request doesn't arrive whole, headers included, in time."""

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Begin to wait for the first request."""
        super().connection_made(transport)
        # asyncio sets this only for sockets that name their protocol. Without it, answers wait for acknowledgements.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._limit = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of the headers, until a request begins."""
        super().data_received(data)
        if self._is_waiting():
            self._limit = self._limit or self.loop.call_later(HEADER_SECONDS, self._give_up)
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the time limit."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _is_waiting(self) -> bool:
        cycle: Any = self.cycle  # None before the first request
        return cycle is None or cycle.response_complete

    def _stop_waiting(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None

    def _give_up(self) -> None:
        self._limit = None
        if self._is_waiting():
            self.transport.abort()
