"""What the LangChain skins of a memory cost over calling it directly, and how long they keep an event loop waiting.

    python benchmarks/langchain_memory_overhead.py

The same question to both in turn, over 200 memories; medians of 300, in milliseconds. Then 50 agents on one loop, one
begun every 4 ms, each with a statement to remember and a question to recall for: the longest that a task which sleeps
for 1 ms had to wait beyond, beside the same agents without memory; each several times, in turn. What was loaded before
is kept from the garbage collector, as a server would, or its own stops would be counted.
"""

import asyncio
import gc
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from wrapper_overhead import timed

from langchain_meve import MeVeMemoryMiddleware, create_memory_tools
from langchain_meve.classic import MeVeMemory
from meve.memory import GovernedMemory
from meve.memory._recall.formatting import format_recall

CALLS, AGENTS, ROUNDS, APART = 300, 50, 8, 0.004
QUESTION = "Where does my friend number 7 live?"


class Model(BaseChatModel):
    """Answers at once, and always the same."""

    @property
    def _llm_type(self) -> str:
        return "constant"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:  # noqa: ARG002
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Noted."))])


def main() -> None:
    """Time the skins, then the loop."""
    warnings.simplefilter("ignore")  # the older base classes say that they are old
    with tempfile.TemporaryDirectory() as folder, GovernedMemory.open(Path(folder) / "memory.db") as memory:
        for n in range(200):
            memory.add(f"My friend number {n} lives in street {n + 100}.", user_id="ann", source="doc")
        overhead(memory)
        stalls(memory)


def overhead(memory: GovernedMemory) -> None:
    """Each skin beside the calls of the core that it makes."""
    middleware = MeVeMemoryMiddleware(memory, user_id="ann")
    recall = {each.name: each for each in create_memory_tools(memory, "ann")}["recall"]
    chain = MeVeMemory(memory=memory, user_id="ann", session_id="s")
    model, answered = Model(), AIMessage("Noted.")
    numbers = iter(range(10**9))

    def request() -> ModelRequest[Any]:
        return ModelRequest(model=model, messages=[HumanMessage(QUESTION, id=str(next(numbers)))], state={})

    async def later(_: object) -> Any:
        return answered

    ways: dict[str, Callable[[], object]] = {
        "meve: search, told": lambda: format_recall(memory, memory.search(QUESTION, user_id="ann", without=[QUESTION])),
        "meve: search": lambda: memory.search(QUESTION, user_id="ann"),
        "wrap_model_call": lambda: middleware.wrap_model_call(request(), lambda _: answered),
        "recall (tool)": lambda: recall.invoke({"query": QUESTION}),
        "load_memory_variables": lambda: chain.load_memory_variables({"input": QUESTION}),
    }
    awaited: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
        "awrap_model_call": lambda: middleware.awrap_model_call(request(), later),
        "recall (tool, async)": lambda: recall.ainvoke({"query": QUESTION}),
        "aload_memory_variables": lambda: chain.aload_memory_variables({"input": QUESTION}),
    }
    times: dict[str, list[float]] = {name: [] for name in [*ways, *awaited]}
    loop = asyncio.new_event_loop()
    for _ in range(CALLS):
        for name, way in ways.items():
            times[name].append(timed(way))
        for name, made in awaited.items():
            times[name].append(timed(lambda made=made: loop.run_until_complete(made())))
    loop.close()
    base = statistics.median(times["meve: search, told"])
    for name, values in times.items():
        print(f"{name:24} {statistics.median(values):7.3f} ms, {statistics.median(values) - base:+.3f}")


def stalls(memory: GovernedMemory) -> None:
    """The longest wait of a loop with agents on it, with and without memory."""
    agents = {
        "without memory": create_agent(Model(), []),
        "with": create_agent(Model(), [], middleware=[MeVeMemoryMiddleware(memory)]),
    }
    for agent in agents.values():
        asyncio.run(longest(agent, "warm"))
    gc.collect()
    gc.freeze()
    found: dict[str, list[float]] = {name: [] for name in agents}
    for n in range(ROUNDS):
        for name, agent in agents.items():
            found[name].append(asyncio.run(longest(agent, str(n))))
    for name, values in found.items():
        each = ", ".join(f"{value:.0f}" for value in sorted(values))
        print(f"{AGENTS} agents {name}: a loop waits {statistics.median(values):.0f} ms at most ({each})")


async def longest(agent: Any, about: str) -> float:
    """Milliseconds that a task had to wait beyond what it wanted to, at most, while agents answer."""
    worst, done = 0.0, asyncio.Event()

    async def probe() -> None:
        nonlocal worst
        while not done.is_set():
            begun = time.perf_counter()
            await asyncio.sleep(0.001)
            worst = max(worst, time.perf_counter() - begun - 0.001)

    async def talk(n: int) -> None:
        await asyncio.sleep(APART * n)
        said = f"My number is {n} for {about}. What is my number for {about}?"
        config = {"configurable": {"user_id": f"user {n}", "thread_id": f"{about} {n}"}}
        await agent.ainvoke({"messages": [("user", said)]}, config)

    beside = asyncio.create_task(probe())
    await asyncio.gather(*(talk(n) for n in range(AGENTS)))
    done.set()
    await beside
    return worst * 1_000


if __name__ == "__main__":
    main()
