"""LangGraph's stores and MeVe's: which rules of the contract each keeps, and how a search affects the event loop.

    python benchmarks/langgraph_stores.py rules
    python benchmarks/langgraph_stores.py speed

`rules` runs tests/langchain_integration/test_graph_store_contract.py and prints the rules that some store breaks.
`speed` asks each store in turn, over 5,000 items with vectors of dimension 384. It prints the latency of `asearch`, the
longest stall of the loop meanwhile (and while idle), and MeVe's overhead beyond the call that it wraps. Embedding is a
look-up, so that it isn't measured. Each store computes on one core (OPENBLAS_NUM_THREADS=1), since OpenBLAS threads
wait for each other on busy cores.
"""

import argparse
import asyncio
import contextlib
import io
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from langgraph.store.base import PutOp
from timing import watch_loop

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from langchain_meve import MeVeStore  # noqa: E402
from meve._formulas import normalize  # noqa: E402
from meve.memory import GovernedMemory  # noqa: E402
from meve.types import FloatArray  # noqa: E402
from tests.langchain_integration import langgraph_stores  # noqa: E402
from tests.langchain_integration.graph_store_contract.contract import list_rules  # noqa: E402

ITEMS, ROUNDS, CALLS = 5_000, 60, 300
IDLE = "nothing, for 10 ms"
PLACE = ("memories", "alice")
STORES = {
    "InMemoryStore": ["TestInMemoryStore"],
    "SqliteStore": ["TestSqliteStore"],
    "AsyncSqliteStore": ["TestAsyncSqliteStore"],
    "MeVeStore": ["TestMeVeStore", "TestMeVeStoreOfOneUser"],
}


class LookupEmbedder:
    """An embedder whose vectors are sums of fixed ones, one per word."""

    name, dimension, similarity = "looked-up", 384, "cosine"

    def __init__(self) -> None:
        self._words: dict[str, FloatArray] = {}
        self._dice = np.random.default_rng(1)

    def embed_query(self, text: str) -> FloatArray:
        """Shape (384,)."""
        vector: FloatArray = self.embed_passages([text])[0]
        return vector

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Shape (n, 384)."""
        return normalize(np.stack([np.sum([self._of(word) for word in text.split()], axis=0) for text in texts]))

    def _of(self, word: str) -> FloatArray:
        if word not in self._words:
            self._words[word] = self._dice.normal(size=self.dimension).astype(np.float32)
        return self._words[word]


class Outcomes:
    """A pytest plugin that collects the outcome of each rule, by test class."""

    def __init__(self) -> None:
        self.of: dict[tuple[str, str], str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the outcome of a test's step."""
        is_final = report.when == "call" or (report.when == "setup" and report.outcome != "passed")
        if is_final:
            kind, test = report.nodeid.split("::")[1:]
            why = getattr(report, "wasxfail", "").removeprefix("reason: ")
            outcome = "yes" if report.passed else f"no: {why}" if why else "–" if report.skipped else "FAILED"
            key = (kind, test.partition("[")[0].removeprefix("test_"))
            rank = ("–", "yes").index
            before = self.of.get(key, outcome)
            worse = [each for each in (outcome, before) if each not in ("–", "yes")]
            self.of[key] = worse[0] if worse else max(outcome, before, key=rank)


def compare_rules() -> None:
    """Run the suite on every store, and print the outcomes."""
    outcomes = Outcomes()
    file = ROOT / "tests" / "langchain_integration" / "test_graph_store_contract.py"
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT), str(file)], plugins=[outcomes])
    stands: dict[str, list[str]] = {}
    for name in list_rules():
        outcome_rows = [[outcomes.of.get((kind, name), "–") for kind in kinds] for kinds in STORES.values()]
        stands[name] = [next((each for each in mine if each not in ("yes", "–")), mine[0]) for mine in outcome_rows]
    print(f"| of {len(stands)} rules | {' | '.join(STORES)} |\n|---|{'---|' * len(STORES)}")
    for mark, label in (("yes", "kept"), ("no", "broken"), ("–", "not applicable")):
        counts = [sum(each[n].startswith(mark) for each in stands.values()) for n in range(len(STORES))]
        print(f"| {label} | {' | '.join(map(str, counts))} |")
    print(f"\n| rule | {' | '.join(STORES)} |\n|---|{'---|' * len(STORES)}")
    for name, each in stands.items():
        if any(outcome not in ("yes", "–") for outcome in each):
            print(f"| {list_rules()[name]} | {' | '.join(each)} |")


async def compare_speed() -> None:
    """Time every store in turn."""
    rng, embedder = np.random.default_rng(2), LookupEmbedder()
    words = [f"word{n}" for n in range(2_000)]
    texts = [" ".join(rng.choice(words, 12)) for _ in range(ITEMS)]
    questions = [" ".join(rng.choice(words, 4)) for _ in range(ROUNDS)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        memory = GovernedMemory.open(folder / "memory.db", embedder=embedder)
        sqlite_store = await langgraph_stores.open_async(folder / "store.db", embedder)
        stores: dict[str, Any] = {
            "InMemoryStore": langgraph_stores.in_memory(embedder),
            "AsyncSqliteStore": sqlite_store,
            "MeVeStore": MeVeStore(memory, namespaces="memories/{user_id}/*"),
        }
        for store in stores.values():
            for begin in range(0, ITEMS, 500):
                ops = [PutOp(PLACE, f"k{n}", {"text": texts[n], "n": n}) for n in range(begin, begin + 500)]
                await store.abatch(ops)
            await store.asearch(PLACE, query=texts[0])
        await _time_searches(stores, questions)
        await _time_overhead(memory, stores["MeVeStore"], questions[0])
        await langgraph_stores.close_async(sqlite_store)
        memory.close()


async def _time_searches(stores: dict[str, Any], questions: Sequence[str]) -> None:
    stalls: dict[str, list[float]] = {name: [] for name in [*stores, IDLE]}
    taken: dict[str, list[float]] = {name: [] for name in stalls}
    rng = np.random.default_rng(3)
    for question in questions:
        for name in rng.permutation(list(stalls)):
            call = asyncio.sleep(0.01) if name == IDLE else stores[name].asearch(PLACE, query=question)
            latency, stall = await _probe(call)
            taken[name].append(latency)
            stalls[name].append(stall)
    print(f"medians of {len(questions)} over {ITEMS:,} items, in changing order; milliseconds")
    print("| | `asearch` | longest stall of the loop, median | worst |\n|---|---:|---:|---:|")
    for name, stood in stalls.items():
        median = "" if name == IDLE else f"{statistics.median(taken[name]):.1f}"
        print(f"| {name} | {median} | {statistics.median(stood):.1f} | {max(stood):.1f} |")


async def _time_overhead(memory: GovernedMemory, store: MeVeStore, question: str) -> None:
    """Print MeVe's overhead beyond the call that it wraps: the median difference of paired calls."""
    pairs: dict[str, tuple[Callable[[], object], Callable[[], object], Callable[[], Awaitable[object]]]] = {
        "get": (
            lambda: memory.items.get(PLACE, "k7", user_id="alice"),
            lambda: store.get(PLACE, "k7"),
            lambda: store.aget(PLACE, "k7"),
        ),
        "search": (
            lambda: memory.items.search(PLACE, user_id="alice", query=question),
            lambda: store.search(PLACE, query=question),
            lambda: store.asearch(PLACE, query=question),
        ),
    }
    print(
        f"\nmedians of {CALLS} calls, in turn; milliseconds\n| | `memory.items` | sync | async |\n|---|---:|---:|---:|"
    )
    for name, (core, sync, task) in pairs.items():
        taken: list[tuple[float, float, float]] = []
        for _ in range(CALLS):
            moments = [time.perf_counter()]
            core()
            moments.append(time.perf_counter())
            sync()
            moments.append(time.perf_counter())
            await task()
            moments.append(time.perf_counter())
            one, two, three = np.diff(moments) * 1e3
            taken.append((one, two - one, three - one))
        base, over, over_async = np.median(taken, axis=0)
        print(f"| {name} | {base:.3f} | {over:+.3f} | {over_async:+.3f} |")


async def _probe(call: Awaitable[object]) -> tuple[float, float]:
    """Return a call's latency, and the longest stall of the loop meanwhile, in milliseconds."""
    async with watch_loop() as waits:
        start = time.perf_counter()
        await call
        latency = 1_000 * (time.perf_counter() - start)
    return latency, max(waits)


def main() -> None:
    """Run one of the two benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["rules", "speed"])
    if parser.parse_args().what == "rules":
        compare_rules()
    else:
        asyncio.run(compare_speed())


if __name__ == "__main__":
    main()
