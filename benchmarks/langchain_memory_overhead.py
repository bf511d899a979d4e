"""Overhead of the LangChain integrations of memory over direct calls, and how long they block an event loop.

    python benchmarks/langchain_memory_overhead.py

Integration and direct call answer the same question in turn, over 200 memories; medians of 300, in milliseconds. Then
50 agents run on one loop, one started every 4 ms, each with a statement to remember and a question to recall. The stall
is the longest extra wait of a task that sleeps for 1 ms, beside the same agents without memory; several times, in turn.
Objects loaded before are frozen for the garbage collector, as a server would, so that its pauses don't count.
"""

import asyncio
import gc
import statistics
import tempfile
import warnings
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from timing import time_in_turn, watch_loop

from langchain_meve import MeVeMemoryMiddleware, create_memory_tools
from langchain_meve.classic import MeVeMemory
from meve.memory import GovernedMemory
from meve.memory._recall.formatting import format_recall

CALLS, AGENTS, ROUNDS, APART = 300, 50, 8, 0.004
QUESTION = "Where does my friend number 7 live?"


class Model(BaseChatModel):
    """A model that always gives the same answer at once."""

    @property
    def _llm_type(self) -> str:
        return "constant"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:  # noqa: ARG002
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Noted."))])


def main() -> None:
    """Time the integrations, then the loop."""
    warnings.simplefilter("ignore")  # the older base classes say that they are old
    with tempfile.TemporaryDirectory() as folder, GovernedMemory.open(Path(folder) / "memory.db") as memory:
        for n in range(200):
            memory.add(f"My friend number {n} lives in street {n + 100}.", user_id="ann", source="doc")
        time_overhead(memory)
        time_stalls(memory)


def time_overhead(memory: GovernedMemory) -> None:
    """Time each integration beside the core calls that it makes."""
    middleware = MeVeMemoryMiddleware(memory, user_id="ann")
    recall = {each.name: each for each in create_memory_tools(memory, "ann")}["recall"]
    chain = MeVeMemory(memory=memory, user_id="ann", session_id="s")
    model, answer = Model(), AIMessage("Noted.")
    numbers = iter(range(10**9))

    def request() -> ModelRequest[Any]:
        return ModelRequest(model=model, messages=[HumanMessage(QUESTION, id=str(next(numbers)))], state={})

    async def later(_: object) -> Any:
        return answer

    ways: dict[str, Callable[[], object]] = {
        "meve: search, told": lambda: format_recall(memory, memory.search(QUESTION, user_id="ann", without=[QUESTION])),
        "meve: search": lambda: memory.search(QUESTION, user_id="ann"),
        "wrap_model_call": lambda: middleware.wrap_model_call(request(), lambda _: answer),
        "recall (tool)": lambda: recall.invoke({"query": QUESTION}),
        "load_memory_variables": lambda: chain.load_memory_variables({"input": QUESTION}),
    }
    awaited: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
        "awrap_model_call": lambda: middleware.awrap_model_call(request(), later),
        "recall (tool, async)": lambda: recall.ainvoke({"query": QUESTION}),
        "aload_memory_variables": lambda: chain.aload_memory_variables({"input": QUESTION}),
    }
    times = time_in_turn(ways, awaited, CALLS)
    base = statistics.median(times["meve: search, told"])
    for name, values in times.items():
        print(f"{name:24} {statistics.median(values):7.3f} ms, {statistics.median(values) - base:+.3f}")


def time_stalls(memory: GovernedMemory) -> None:
    """Print the longest wait of a loop with agents on it, with and without memory."""
    agents = {
        "without memory": create_agent(Model(), []),
        "with": create_agent(Model(), [], middleware=[MeVeMemoryMiddleware(memory)]),
    }
    for agent in agents.values():
        asyncio.run(longest_wait(agent, "warm"))
    gc.collect()
    gc.freeze()
    waits: dict[str, list[float]] = {name: [] for name in agents}
    for n in range(ROUNDS):
        for name, agent in agents.items():
            waits[name].append(asyncio.run(longest_wait(agent, str(n))))
    for name, values in waits.items():
        each = ", ".join(f"{value:.0f}" for value in sorted(values))
        print(f"{AGENTS} agents {name}: a loop waits {statistics.median(values):.0f} ms at most ({each})")


async def longest_wait(agent: Any, about: str) -> float:
    """Return the longest extra wait of a task, in milliseconds, while agents answer."""

    async def talk(n: int) -> None:
        await asyncio.sleep(APART * n)
        message = f"My number is {n} for {about}. What is my number for {about}?"
        config = {"configurable": {"user_id": f"user {n}", "thread_id": f"{about} {n}"}}
        await agent.ainvoke({"messages": [("user", message)]}, config)

    async with watch_loop() as waits:
        await asyncio.gather(*(talk(n) for n in range(AGENTS)))
    return max(waits)


if __name__ == "__main__":
    main()
