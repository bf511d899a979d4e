"""CPU time of each maintenance of one user's memories, until no pair is left to compare, over LoCoMo's turns.

python -m benchmarks.maintenance_rounds --data DATA [--memories 10000] [--rounds 60]
"""

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from meve.components.embedders import FAST, resolve_embedder
from meve.evaluation.experiments.memory.memory_speed import _Material, _TimedEmbedder
from meve.memory import GovernedMemory, Policy


def main() -> None:
    """Print, for each round, its CPU seconds, how many memories it closed, and how many pairs it left."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True, help="the folder with the folder locomo")
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=60, help="the most rounds")
    options = parser.parse_args()
    embedder = _TimedEmbedder(resolve_embedder(FAST))
    policy = Policy.from_dict({"limits": {"per_user": 2 * options.memories}, "chat_ttl": None})
    with (
        TemporaryDirectory() as folder,
        GovernedMemory.open(Path(folder) / "memory.db", policy=policy, embedder=embedder) as memory,
    ):
        _Material(options.data / "locomo", embedder).fill(memory, "alice", options.memories)
        for n in range(1, options.rounds + 1):
            start = time.process_time()
            report = memory.maintain()
            seconds, left = time.process_time() - start, report.left_pairs.get("alice", 0)
            counts = {name: count for name, count in report.counts().items() if count}
            print(f"round {n}: {seconds:.1f} s, {left} pairs left, {counts}", flush=True)
            if not left:
                break
        start = time.process_time()
        memory.maintain()
        print(f"with nothing new: {time.process_time() - start:.1f} s")


if __name__ == "__main__":
    main()
