"""Times of the same searches in a small and a large corpus that `benchmarks.growth` made, asked in turn.

    OMP_NUM_THREADS=1 python -m benchmarks.growth_ratios FOLDER SMALL LARGE [--postgres URL]

FOLDER holds the indices of both sizes. With `--postgres`, LARGE stands in the collection that `growth` filled, and the
first SMALL passages are added to another one if it is empty. Each question is asked of one and then of the other, three
times, by one process, so that what else runs on the machine slows both. Prints medians in milliseconds, of the wall
clock and of this process' CPU time; PostgreSQL's CPU time is of other processes, and isn't counted.
"""

import argparse
import statistics
import time
from collections import defaultdict
from functools import partial
from pathlib import Path

from benchmarks.growth import K, make_questions, open_collection, read_passages
from meve import Retriever
from meve.testing.fakes import OverlapVerifier
from meve.types import Query

ROUNDS = 3


def main() -> None:
    """Open both, ask in turn, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("small", type=int)
    parser.add_argument("large", type=int)
    parser.add_argument("--postgres", metavar="URL")
    options = parser.parse_args()
    if options.postgres:
        small, large = (
            open_collection(options.postgres, f"first {options.small}"),
            open_collection(options.postgres, "growth"),
        )
        if not len(small):
            small.update(add=list(read_passages(options.folder, options.small)))
    else:
        small, large = (
            Retriever.load(options.folder / f"index {size}", verifier=OverlapVerifier())
            for size in (options.small, options.large)
        )
    assert (len(small), len(large)) == (options.small, options.large)
    compare(small, large, options.folder)


def compare(small: Retriever, large: Retriever, folder: Path) -> None:
    """Ask both each question, and print the medians and their ratios."""
    times: dict[tuple[str, bool], list[tuple[float, float]]] = defaultdict(list)
    sources = [list(each._corpus.sources(each.config, counted=True)) for each in (small, large)]
    for number in range(1 + ROUNDS):
        for text, _ in make_questions(folder):
            query = Query(text=text, vector=small.embedder.embed_query(text))
            for is_large, retriever in enumerate((small, large)):
                calls = {source.name: partial(source.search, query, K) for source in sources[is_large]}
                calls["retrieve"] = partial(retriever.retrieve, text, vector=query.vector)
                for name, call in calls.items():
                    start, used = time.perf_counter(), time.process_time()
                    call()
                    spent = time.perf_counter() - start, time.process_time() - used
                    if number:  # the first round fills caches
                        times[name, bool(is_large)].append(spent)
    print(f"{'search':<10}{'small':>10}{'large':>10}{'ratio':>8}{'CPU small':>12}{'CPU large':>12}{'ratio':>8}")
    for name in dict.fromkeys(name for name, _ in times):
        line = f"{name:<10}"
        for clock, width in ((0, 10), (1, 12)):
            few, many = (
                1_000 * statistics.median(each[clock] for each in times[name, is_large]) for is_large in (False, True)
            )
            line += f"{few:>{width}.2f}{many:>{width}.2f}{many / few:>8.2f}"
        print(line)


if __name__ == "__main__":
    main()
