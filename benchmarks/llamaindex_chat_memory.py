"""Latency of chat memory at 1,000 messages beside LlamaIndex's own, and how long it blocks the event loop.

    python benchmarks/llamaindex_chat_memory.py [--rounds 30] [--messages 1000]

Each round asks every memory in turn for the messages before the model, with the same messages, token limit and
tokenizer; medians, in milliseconds. `ChatMemoryBuffer` is the default of agents, and `Memory` over a file that of chat
engines. The limits are the default of the first, that of the second and of MeVe, and one large enough for everything.
MeVe's also recalls what was said in earlier conversations, for a new question each time, and logs the recall.

Overhead: the time of a call without that of the governed memory. Stalls: the longest extra wait of a task that sleeps a
millisecond at a time while 50 messages are put at once; without messages, that of the machine.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, cast

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory import ChatMemoryBuffer, Memory
from timing import watch_loop

from llama_index_meve import MeVeChatStore, MeVeMemory
from llama_index_meve._message_json import message_to_json
from meve.memory import GovernedMemory

LIMITS, WRITERS, CALLS = (3_000, 30_000, 60_000), 50, 200
PAGE = 20
WORDS = ("tomatoes", "balcony", "water", "leaves", "soil", "sun", "north", "cold", "basil", "seeds", "pot", "rain")


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30, help="how often each memory is asked; 30 by default")
    parser.add_argument("--messages", type=int, default=1_000, help="how many it holds; 1,000 by default")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, GovernedMemory.open(Path(folder) / "memory.db") as memory:
        asyncio.run(run_all(memory, folder, arguments.messages, arguments.rounds))


async def run_all(memory: GovernedMemory, folder: str, size: int, rounds: int) -> None:
    """Run all measurements on one event loop."""
    talk = make_messages(size)
    print(
        f"{size:,} messages, {rounds} rounds\n\n"
        "| limit | memory | median ms | of ChatMemoryBuffer |\n|---:|---|---:|---:|"
    )
    for limit in LIMITS:
        await time_reads(memory, folder, talk, limit, rounds)
    await time_overhead(memory, talk)
    await time_stalls(memory, folder, rounds)


def make_messages(size: int) -> list[ChatMessage]:
    """Return a conversation of a user's messages and answers."""
    roles = (MessageRole.USER, MessageRole.ASSISTANT)
    return [
        ChatMessage(role=roles[n % 2], content=f"Turn {n}: " + " ".join(WORDS[(n * k) % len(WORDS)] for k in range(30)))
        for n in range(size)
    ]


async def time_reads(memory: GovernedMemory, folder: str, talk: Sequence[ChatMessage], limit: int, rounds: int) -> None:
    """Print the latency of reading each memory."""
    buffer = ChatMemoryBuffer.from_defaults(token_limit=limit)
    buffer.set(list(talk))
    uri = f"sqlite+aiosqlite:///{folder}/stock-{limit}.db"
    stock = Memory.from_defaults(session_id="s", token_limit=limit, async_database_uri=uri)
    await stock.aset(list(talk))
    user = f"user {limit}"
    await MeVeMemory(memory, user_id=user, session_id="earlier").aset(talk[:100])
    ours = MeVeMemory(memory, user_id=user, session_id="s", token_limit=limit)
    memory.messages.add("s", [message_to_json(message) for message in talk], user_id=user)
    numbers = count()

    async def of_buffer() -> object:
        return buffer.get()

    async def of_ours() -> object:
        return await ours.aget(f"How much water do tomatoes want in week {next(numbers)}?")

    ways = {"ChatMemoryBuffer.get": of_buffer, "Memory.aget": stock.aget, "MeVeMemory.aget": of_ours}
    medians = await median_times(ways, rounds)
    for name, value in medians.items():
        print(f"| {limit:,} | {name} | {value:.1f} | {value / medians['ChatMemoryBuffer.get']:.3f} |", flush=True)
    await close_database(stock)


async def time_overhead(memory: GovernedMemory, talk: Sequence[ChatMessage]) -> None:
    """Print the overhead of calls beyond the governed memory."""
    store = MeVeChatStore(memory, user_id="over")
    chat, short = (MeVeMemory(memory, user_id="over", session_id=name) for name in ("chat", "short"))
    await short.aput_messages(talk[:PAGE])
    inside, numbers = MemoryTimer(memory), count()
    ways: dict[str, Callable[[], Awaitable[Any]]] = {
        "MeVeChatStore.add_message": lambda: store.add_message("s", talk[0]),
        f"MeVeChatStore.get_last_messages({PAGE})": lambda: store.get_last_messages("s", PAGE),
        "MeVeMemory.aput": lambda: chat.aput(talk[0]),
        f"MeVeMemory.aget, {PAGE} messages": lambda: short.aget(f"How much water in week {next(numbers)}?"),
        f"MeVeMemory.aget, {CALLS} messages": lambda: chat.aget(f"How much water in week {next(numbers)}?"),
    }
    print("\n| call | median ms | of it beside the memory |\n|---|---:|---:|")
    for name, way in ways.items():
        whole, own = [], []
        for _ in range(CALLS):
            inside.spent, began = 0.0, time.perf_counter()
            await way()
            whole.append(1_000 * (time.perf_counter() - began))
            own.append(whole[-1] - 1_000 * inside.spent)
        print(f"| {name} | {statistics.median(whole):.2f} | {statistics.median(own):.2f} |", flush=True)
    inside.restore()


class MemoryTimer:
    """A wrapper that adds up the time spent in a governed memory's calls, one at a time."""

    CALLS = ("search", "reflect", "add")

    def __init__(self, memory: GovernedMemory) -> None:
        self.spent = 0.0
        self._memory: Any = memory
        self._messages = memory.messages
        self._depth = 0
        for name in self.CALLS:
            setattr(self._memory, name, self._timed(getattr(memory, name)))
        self._memory.messages = self

    def restore(self) -> None:
        """Restore the memory."""
        for name in self.CALLS:
            delattr(self._memory, name)
        self._memory.messages = self._messages

    def __getattr__(self, name: str) -> Any:
        return self._timed(getattr(self._messages, name))

    def _timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            self._depth += 1
            try:
                return call(*args, **kwargs)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.spent += time.perf_counter() - began

        return timed


async def time_stalls(memory: GovernedMemory, folder: str, rounds: int) -> None:
    """Print the longest stall of the loop while many messages are put at once."""
    store = MeVeChatStore(memory, user_id="stalls")
    over = Memory.from_defaults(session_id="over", chat_store=store)
    ours = MeVeMemory(memory, user_id="stalls", session_id="ours")
    stock = Memory.from_defaults(session_id="s", async_database_uri=f"sqlite+aiosqlite:///{folder}/stalls.db")
    puts: dict[str, Callable[[ChatMessage], Awaitable[Any]]] = {
        "nothing": lambda _: asyncio.sleep(0.1),
        "MeVeChatStore.add_message": lambda message: store.add_message("s", message),
        "MeVeMemory.aput": ours.aput,
        "Memory.aput over MeVeChatStore": over.aput,
        "Memory.aput": stock.aput,
    }
    for put in puts.values():
        await put(ChatMessage("Good morning!"))
    longest: dict[str, list[float]] = {name: [] for name in puts}
    for _ in range(max(3, rounds // 3)):
        for name, put in puts.items():
            longest[name].append(await longest_stall(put))
    print(f"\n| {WRITERS} at once | longest stall ms, median of rounds | worst |\n|---|---:|---:|")
    for name, values in longest.items():
        print(f"| {name} | {statistics.median(values):.0f} | {max(values):.0f} |", flush=True)
    await close_database(stock)


async def longest_stall(put: Callable[[ChatMessage], Awaitable[Any]]) -> float:
    """Return the longest extra wait of a sleeping task, in milliseconds, while all messages are put."""
    async with watch_loop() as waits:
        await asyncio.gather(*(put(ChatMessage(f"I have {n} pots on my balcony.")) for n in range(WRITERS)))
    return max(waits)


async def median_times(ways: dict[str, Callable[[], Awaitable[Any]]], rounds: int) -> dict[str, float]:
    """Return median milliseconds; a first call of each isn't counted."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        await way()
    for _ in range(rounds):
        for name, way in ways.items():
            began = time.perf_counter()
            await way()
            times[name].append(1_000 * (time.perf_counter() - began))
    return {name: statistics.median(values) for name, values in times.items()}


async def close_database(stock: Memory) -> None:
    """Close a stock memory's database."""
    engine = cast("Any", stock.sql_store)._async_engine
    if engine is not None:
        await engine.dispose()


if __name__ == "__main__":
    main()
