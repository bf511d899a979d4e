"""Measure the graph kernel: slices in process and over loopback HTTP, under load, and retrieval with signed slices.

The graph has one conversation of 100,000 turns, a random tree: a reply goes to one of the last 50 turns. Slices hold at
most 64 turns. No slice is asked for twice unless the output says so.

    python benchmarks/graph_kernel.py [--turns 100000] [--load 10000] [--threads 4] [--graph postgresql://…]
"""

import argparse
import contextlib
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from meve.conversation import Conversation, PlacedTurn, SlicePolicy, TurnGraph
from meve.service.kernel import (
    GraphKernel,
    KernelAuthority,
    KernelLimits,
    SigningKey,
    SigningKeys,
    TurnEntry,
    VerifyingKey,
)

POLICY = SlicePolicy(child=0.9, sibling=0.5, max_turns=64)
WORDS = [
    "login",
    "token",
    "expires",
    "server",
    "user",
    "cache",
    "index",
    "query",
    "retry",
    "timeout",
    "header",
    "session",
    "cookie",
    "route",
    "proxy",
]


def make_turns(count: int, rng: random.Random) -> list[PlacedTurn]:
    return [
        PlacedTurn(
            id=f"t{n}",
            text=f"{' '.join(rng.choices(WORDS, k=12))} {n}",
            parents=(f"t{rng.randrange(max(0, n - 50), n)}",) if n else (),
        )
        for n in range(count)
    ]


def measure(ask: Callable[[str], object], anchors: list[str]) -> list[float]:
    times = []
    for anchor in anchors:
        begin = time.perf_counter()
        ask(anchor)
        times.append((time.perf_counter() - begin) * 1000)
    return times


def say(name: str, times: list[float]) -> None:
    cuts = statistics.quantiles(times, n=100)
    print(
        f"{name}: p50 {statistics.median(times):.2f} ms, p95 {cuts[94]:.2f}, p99 {cuts[98]:.2f} ({len(times):,} slices)"
    )


@contextlib.contextmanager
def serve(graph: str, keys: Path) -> Iterator[tuple[str, psutil.Process]]:
    code = "from meve.cli import main; main()"
    options = ["--port", "0", "--rate", "1000000", "--burst", "1000000"]
    command = [sys.executable, "-c", code, "kernel", "serve", "--graph", graph, "--keys", str(keys), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[2].rstrip(","), psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def load(authority: KernelAuthority, graph: TurnGraph, anchors: list[str], threads: int) -> None:
    times: list[float] = []

    def ask(mine: list[str]) -> None:
        times.extend(measure(lambda anchor: authority.cut(graph, anchor, POLICY), mine))

    workers = [threading.Thread(target=ask, args=(anchors[n::threads],)) for n in range(threads)]
    begin = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    say(f"HTTP under load, {threads} threads, verified", times)
    print(f"  {len(times) / (time.perf_counter() - begin):.0f} slices per second")


def compare(url: str, bearer: str, verifying: VerifyingKey, rng: random.Random) -> None:
    """Print the throughput of retrieval with signed slices over that with slices cut in process, in turns."""
    turns = make_turns(2_000, rng)
    authority = KernelAuthority(url, bearer=bearer, tenant="t", conversation="r", keys=[verifying], timeout=60)
    authority.add(turns)
    signed = Conversation.from_messages(turns, authority=authority, policy=POLICY)
    plain = Conversation.from_messages(turns, policy=POLICY)
    talks = {"plain": plain, "signed": signed}
    ratios = []
    for part in range(31):
        spent = {}
        for name in sorted(talks, reverse=part % 2 == 0):
            seed = random.Random(part)
            begin = time.perf_counter()
            for _ in range(10):
                talks[name].retrieve(" ".join(seed.choices(WORDS, k=5)), anchor=f"t{seed.randrange(500, 2_000)}")
            spent[name] = time.perf_counter() - begin
        ratios.append(spent["plain"] / spent["signed"])
    low, middle, high = statistics.quantiles(ratios[1:], n=4)
    print(f"retrieval, throughput with signed slices over without: {middle:.2f} (quartiles {low:.2f} and {high:.2f})")
    authority.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("--load", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--graph", help="an empty PostgreSQL database; a file by default")
    options = parser.parse_args()
    rng = random.Random(7)
    turns = make_turns(options.turns, rng)
    key = SigningKey.generate("k")
    keys = SigningKeys(current="k", keys=(key,))
    with tempfile.TemporaryDirectory() as folder:
        graph_at, key_file = options.graph or str(Path(folder) / "kernel.db"), Path(folder) / "keys"
        key_file.touch(mode=0o600)
        key_file.write_text(keys.to_json())
        kernel = GraphKernel.open(graph_at, keys, KernelLimits(batch_turns=1_000_000))
        bearer = kernel.store.grant("bench", "t", may_add=True)
        begin = time.perf_counter()
        kernel.add("t", "c", [TurnEntry.from_turn(turn, "t", "c") for turn in turns])
        print(f"adding {options.turns:,} turns: {time.perf_counter() - begin:.1f} s")
        begin = time.perf_counter()
        kernel.cut("t", "c", "t0", POLICY)
        print(f"first slice, which builds the graph: {time.perf_counter() - begin:.2f} s")
        anchors = [turn.id for turn in rng.sample(turns, options.load + 2_000)]
        before = time.process_time()
        say("in process, signed", measure(lambda anchor: kernel.cut("t", "c", anchor, POLICY), anchors[:1_000]))
        print(f"  CPU time of a slice: {time.process_time() - before:.2f} ms")
        say("in process, signed, cached", measure(lambda anchor: kernel.cut("t", "c", anchor, POLICY), anchors[:1_000]))
        kernel.close()
        graph = TurnGraph.from_turns(turns)
        with serve(graph_at, key_file) as (url, process):
            authority = KernelAuthority(
                url, bearer=bearer, tenant="t", conversation="c", keys=[key.verifying], timeout=60
            )
            authority.cut(graph, "t0", POLICY)
            before = time.process_time(), sum(process.cpu_times()[:2])
            times = measure(lambda anchor: authority.cut(graph, anchor, POLICY), anchors[1_000:2_000])
            say("HTTP, verified", times)
            client, kernel_time = time.process_time() - before[0], sum(process.cpu_times()[:2]) - before[1]
            print(f"  CPU time of a slice: client {client:.2f} ms, kernel {kernel_time:.2f} ms")
            load(authority, graph, anchors[2_000:], options.threads)
            authority.close()
            compare(url, bearer, key.verifying, rng)


if __name__ == "__main__":
    main()
