"""Verdicts and time of the verifier on long passages, read by their best pieces and read whole.

    python benchmarks/long_passages.py --data DATA

Each text joins passages of a set, 1,000 to 3,000 tokens in all. The passages resemble one gold passage of a question
(BM25). The text is judged with the gold passage at a random place among them, and without it. A verdict is lost if the
whole text with the gold passage is verified, and its best pieces aren't. The best of fewer pieces never scores higher.
Times are those of the texts with gold, in turn.
"""

import argparse
import random
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from timing import timed

from meve.components.lexical.bm25 import Bm25Index
from meve.components.verifiers import MAX_PIECES
from meve.components.verifiers._best_pieces import choose_pieces
from meve.components.verifiers._shipped import load_shipped_verifier
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.evaluation._set_runner import sample_questions
from meve.evaluation.datasets import read_set
from meve.evaluation.experiments._experiment import SEED
from meve.evaluation.types import EvaluationSet
from meve.types import FloatArray

SETS = ("hotpotqa", "nq_open", "2wiki", "musique")
LIMITS = (1, 2, 3, 4, 5, 6)
TOKENS = (1_000, 3_000)
THRESHOLD = 0.5


def main() -> None:
    """Print the verdicts for each set and limit, and the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of evaluation sets")
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--set", action="append", default=[], help="only this one; may be repeated")
    arguments = parser.parse_args()
    limited = load_shipped_verifier(threads=1).with_cache(0)
    for name in arguments.set or SETS:
        texts = list(join_passages(read_set(name, arguments.data), arguments.questions, limited))
        scores = {gold: score_by_limit([(q, pair[gold]) for q, *pair in texts], limited) for gold in (0, 1)}
        report_verdicts(name, scores[1], scores[0])
        report_times([(question, text) for question, _, text in texts], limited)


def join_passages(dataset: EvaluationSet, count: int, verifier: CrossEncoderVerifier) -> Iterator[tuple[str, str, str]]:
    """Yield questions, each with a text without gold passages, and the same text with one gold passage."""
    contents = {p.id: p.content for p in dataset.passages}
    ids, index, rng = list(contents), Bm25Index(), random.Random(SEED)
    index.add(np.arange(len(ids)), list(contents.values()))
    tokens = dict(zip(ids, verifier._runtime.splitter.count_many(list(contents.values())), strict=True))
    for question in sample_questions(dataset.questions, count, SEED):
        gold = rng.choice(sorted(question.gold))
        size, chosen = rng.randint(*TOKENS) - tokens[gold], []
        for row in index.search(contents[gold], len(ids))[0].tolist():
            if size > 0 and ids[row] not in question.gold:
                chosen.append(contents[ids[row]])
                size -= tokens[ids[row]]
        rng.shuffle(chosen)
        place = rng.randint(0, len(chosen))
        yield question.text, "\n".join(chosen), "\n".join([*chosen[:place], contents[gold], *chosen[place:]])


def score_by_limit(texts: Sequence[tuple[str, str]], verifier: CrossEncoderVerifier) -> FloatArray:
    """Return the probability of each text with at most 1, 2, … of its pieces read, and read whole, shape (n, limits).

    Pieces are read once; a piece has the same logit in every choice.
    """
    rows = []
    for question, text in texts:
        room = verifier._room(question)
        pieces, _, starts = verifier._runtime.splitter.split_all([text], room, overlap=room // 4)
        logits = np.concatenate(verifier._runtime.logits([[(question, piece)] for piece in pieces]))
        rows.append([logits[choose_pieces(question, pieces, starts, n)].max() for n in (*LIMITS, None)])
    return verifier.calibration.apply(np.array(rows))


def report_verdicts(name: str, gold: FloatArray, other: FloatArray) -> None:
    """Print for each limit the AUC, and the verdicts that differ from those on whole texts."""
    verified = [int((scores[:, -1] >= THRESHOLD).sum()) for scores in (gold, other)]
    print(f"{name}, {len(gold)} questions, read whole: {verified[0]} verified with gold, {verified[1]} without, "
          f"AUC {auc(gold[:, -1], other[:, -1]):.3f}")  # fmt: skip
    for column, limit in enumerate(LIMITS):
        lost, removed = (
            ((scores[:, -1] >= THRESHOLD) & (scores[:, column] < THRESHOLD)).sum() for scores in (gold, other)
        )
        print(f"  {limit} pieces: {lost} lost, {removed} without gold no longer verified, "
              f"AUC {auc(gold[:, column], other[:, column]):.3f}", flush=True)  # fmt: skip


def auc(gold: FloatArray, other: FloatArray) -> float:
    """Return the probability that a text with gold scores higher than one without; ties count half."""
    return float(((gold[:, None] > other).mean() + (gold[:, None] >= other).mean()) / 2)


def report_times(texts: Sequence[tuple[str, str]], limited: CrossEncoderVerifier) -> None:
    """Print the median time of texts read by their best pieces and whole, in turn."""
    whole = load_shipped_verifier(threads=1, max_pieces=None).with_cache(0)
    times = [[timed(lambda: v.raw_scores(q, [text])) for v in (limited, whole)] for q, text in texts]  # noqa: B023
    few, every = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"  {MAX_PIECES} pieces and whole: {few:.0f} and {every:.0f} ms, ratio {few / every:.2f}")


if __name__ == "__main__":
    main()
