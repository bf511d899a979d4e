"""Time calls, and the stalls of an event loop; shared by the benchmarks of this folder."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any

BEAT = 0.001
"""Seconds that the watching task sleeps at a time."""


def timed(call: Callable[[], object]) -> float:
    """Return the milliseconds of a call."""
    start = time.perf_counter()
    call()
    return 1_000 * (time.perf_counter() - start)


def time_in_turn(
    calls: Mapping[str, Callable[[], object]],
    awaited: Mapping[str, Callable[[], Coroutine[Any, Any, object]]],
    rounds: int,
) -> dict[str, list[float]]:
    """Return the milliseconds of calls and of awaited calls, each made once a round."""
    loop = asyncio.new_event_loop()
    times: dict[str, list[float]] = {name: [] for name in [*calls, *awaited]}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(timed(call))
        for name, coroutine in awaited.items():
            times[name].append(timed(lambda call=coroutine: loop.run_until_complete(call())))
    loop.close()
    return times


@asynccontextmanager
async def watch_loop() -> AsyncIterator[list[float]]:
    """Yield a list to which the extra waits of a sleeping task are added, in milliseconds."""
    waits = [0.0]

    async def sleep() -> None:
        while True:
            start = time.perf_counter()
            await asyncio.sleep(BEAT)
            waits.append(1_000 * (time.perf_counter() - start - BEAT))

    task = asyncio.create_task(sleep())
    await asyncio.sleep(BEAT)
    waits[:] = [0.0]
    yield waits
    await asyncio.sleep(5 * BEAT)
    task.cancel()
