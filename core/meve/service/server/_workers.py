"""Threads for blocking work, and answers to errors."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from meve.service._web.answers import ErrorAnswers

T = TypeVar("T")

ERRORS = ErrorAnswers(  # the log tells types only: messages quote what was asked and stored
    server="server",
    data="index or memory",
    log=logging.getLogger("meve.serve"),
    describe=lambda error: type(error).__name__,
)


class Workers:
    """Runs blocking work in a few threads. Work whose caller is cancelled is carried out."""

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads, "meve-serve")

    async def run(self, work: Callable[[], T]) -> T:
        """Return what the work returns."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Wait for the work that runs, and drop what waits for a thread."""
        self._threads.shutdown(cancel_futures=True)
