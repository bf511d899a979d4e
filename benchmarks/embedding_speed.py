"""CPU time of embedding passages: with MiniLM in 8 bits, with the static embedder, and with MiniLM in torch.

    OMP_NUM_THREADS=1 python benchmarks/embedding_speed.py --data DATA [--set hotpotqa]

All embed the same batches of passages in turn, on one core. Needs the extra `offline`.
"""

import argparse
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from meve.components.embedders import resolve_embedder
from meve.evaluation.datasets import read_set
from meve.evaluation.experiments._experiment import SEED

EMBEDDERS = ("minilm", "static", "all-MiniLM-L6-v2")
BATCHES, BATCH = 10, 64


def main() -> None:
    """Print the passages a second of each embedder, and its time relative to the first's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of evaluation sets")
    parser.add_argument("--set", default="hotpotqa")
    given = parser.parse_args()
    texts = [p.content for p in read_set(given.set, given.data).passages]
    np.random.default_rng(SEED).shuffle(texts)
    embedders = {name: resolve_embedder(name) for name in EMBEDDERS}
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    for n in range(BATCHES + 1):
        batch = texts[n * BATCH : (n + 1) * BATCH]
        for name, embedder in embedders.items():
            start = time.process_time()
            embedder.embed_passages(batch)
            if n:  # the first warms all up
                seconds[name].append(time.process_time() - start)
    medians = {name: float(np.median(values)) for name, values in seconds.items()}
    print(f"{given.set}: {np.mean([len(text.split()) for text in texts]):.0f} words a passage")
    for name, median in medians.items():
        print(f"{name}: {BATCH / median:.0f} passages a second of a core, {median / medians[EMBEDDERS[0]]:.3f}")


if __name__ == "__main__":
    main()
