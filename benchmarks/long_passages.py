"""Verdicts and time of the verifier on long passages, read by their best pieces and read whole.

    python benchmarks/long_passages.py --data DATA

Each text joins passages of a set, 1,000 to 3,000 tokens in all. The passages resemble one gold passage of a question
(BM25). The text is judged with the gold passage at a random place among them, and without it. A verdict is lost if the
whole text with the gold passage is verified, and its best pieces aren't. Fewer pieces never score higher. Times are
medians of the first texts with gold, read by default and whole in turn.
"""

import argparse
import random
import statistics
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from timing import timed

from meve.components.lexical.bm25 import Bm25Index
from meve.components.verifiers._best_pieces import choose_pieces
from meve.components.verifiers._shipped import load_shipped_verifier
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.evaluation._set_runner import sample_questions
from meve.evaluation.datasets import read_set
from meve.evaluation.experiments._experiment import SEED
from meve.evaluation.types import EvaluationSet
from meve.types import FloatArray

SETS = ("hotpotqa", "nq_open", "2wiki", "musique")
FLOORS = (0.1, 0.15, 0.2, 0.3, 0.4, 0.0)
THRESHOLD = 0.5


def main() -> None:
    """Print the verdicts for each floor, and the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of evaluation sets")
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--tokens", type=int, nargs=2, default=(1_000, 3_000), help="the least and most of a text")
    parser.add_argument("--timed", type=int, default=20, help="questions of each set that are timed")
    parser.add_argument("--set", action="append", default=[], help="only this one; may be repeated")
    arguments = parser.parse_args()
    verifier = load_shipped_verifier(threads=1).with_cache(0)
    texts: list[list[tuple[str, str, str]]] = []
    for name in arguments.set or SETS:
        dataset = read_set(name, arguments.data)
        texts.append(list(join_passages(dataset, arguments.questions, arguments.tokens, verifier)))
    plain, gold = ([(row[0], row[column]) for rows in texts for row in rows] for column in (1, 2))
    report_verdicts(score_by_floor(gold, verifier), score_by_floor(plain, verifier))
    report_times([(row[0], row[2]) for rows in texts for row in rows[: arguments.timed]], verifier)


def join_passages(
    dataset: EvaluationSet, count: int, limits: Sequence[int], verifier: CrossEncoderVerifier
) -> Iterator[tuple[str, str, str]]:
    """Yield questions, each with a text without gold passages, and the same text with one gold passage."""
    contents = {p.id: p.content for p in dataset.passages}
    ids, index, rng = list(contents), Bm25Index(), random.Random(SEED)
    index.add(np.arange(len(ids)), list(contents.values()))
    tokens = dict(zip(ids, verifier._runtime.splitter.count_many(list(contents.values())), strict=True))
    for question in sample_questions(dataset.questions, count, SEED):
        gold = rng.choice(sorted(question.gold))
        size, chosen = rng.randint(*limits) - tokens[gold], []
        for row in index.search(contents[gold], len(ids))[0].tolist():
            if size > 0 and ids[row] not in question.gold:
                chosen.append(contents[ids[row]])
                size -= tokens[ids[row]]
        rng.shuffle(chosen)
        place = rng.randint(0, len(chosen))
        yield question.text, "\n".join(chosen), "\n".join([*chosen[:place], contents[gold], *chosen[place:]])


def score_by_floor(texts: Sequence[tuple[str, str]], verifier: CrossEncoderVerifier) -> tuple[FloatArray, FloatArray]:
    """Return for each text and floor the probability and the number of read pieces, both of shape (n, floors).

    Pieces are read once; a piece has the same logit in every choice.
    """
    logits, sizes = [], []
    for question, text in texts:
        room = verifier._room(question)
        pieces, _, starts = verifier._runtime.splitter.split_all([text], room, overlap=room // 4)
        read = np.concatenate(verifier._runtime.logits([[(question, piece)] for piece in pieces]))
        chosen = [choose_pieces(question, pieces, starts, floor) for floor in FLOORS]
        logits.append([read[rows].max() for rows in chosen])
        sizes.append([len(rows) for rows in chosen])
    return verifier.calibration.apply(np.array(logits)), np.array(sizes, dtype=np.float32)


def report_verdicts(gold: tuple[FloatArray, FloatArray], plain: tuple[FloatArray, FloatArray]) -> None:
    """Print for each floor the share of pieces read, the AUC, and the verdicts that differ from whole reading."""
    (scores, sizes), (others, other_sizes) = gold, plain
    verified, wrong = scores >= THRESHOLD, others >= THRESHOLD
    print(f"{len(scores) + len(others)} texts; read whole, {verified[:, -1].sum()} verified with gold, "
          f"{wrong[:, -1].sum()} without")  # fmt: skip
    for n, floor in enumerate(FLOORS):
        read = (sizes[:, n].sum() + other_sizes[:, n].sum()) / (sizes[:, -1].sum() + other_sizes[:, -1].sum())
        lost, removed = ((v[:, -1] & ~v[:, n]).sum() for v in (verified, wrong))
        print(f"floor {floor}: {read:.2f} of the pieces read, AUC {auc(scores[:, n], others[:, n]):.3f}, "
              f"lost {lost} verdicts with gold and {removed} without")  # fmt: skip


def auc(gold: FloatArray, other: FloatArray) -> float:
    """Return the probability that a text with gold scores higher than one without; ties count half."""
    return float(((gold[:, None] > other).mean() + (gold[:, None] >= other).mean()) / 2)


def report_times(texts: Sequence[tuple[str, str]], verifier: CrossEncoderVerifier) -> None:
    """Print the median times of texts read by default and whole, in turn."""
    whole = load_shipped_verifier(threads=1, piece_floor=0).with_cache(0)
    times = [[timed(partial(v.raw_scores, query, [text])) for v in (verifier, whole)] for query, text in texts]
    few, every = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = statistics.median(a / b for a, b in times)
    print(f"{few:.0f} ms by default and {every:.0f} ms whole; median ratio {ratio:.2f} of {len(times)} texts")


if __name__ == "__main__":
    main()
