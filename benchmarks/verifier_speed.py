"""Latency of a quantised verifier for 20 passages, beside sentence-transformers' CrossEncoder with unquantised weights.

    python benchmarks/verifier_speed.py --data DATA --verifier SMALL --weights FOLDER

FOLDER holds the same model for torch, in fp32; `recipes.verifier.ship` makes SMALL of it. Both score the same questions
in turn, each over 20 passages of every length in the set; the ratio is of the medians. Kendall's tau compares the two
orders of a question's passages, and is a mean over questions.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau

from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.evaluation._set_runner import sample_questions
from meve.evaluation.datasets import read_set
from meve.evaluation.experiments._experiment import SEED

PASSAGES = 20


def main() -> None:
    """Time both verifiers in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of evaluation sets")
    parser.add_argument("--weights", type=Path, required=True, help="the same model for torch")
    parser.add_argument("--verifier", type=Path, required=True, help="the quantised one")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--set", default="nq_open")
    parser.add_argument("--questions", type=int, default=30)
    arguments = parser.parse_args()
    from sentence_transformers import CrossEncoder

    small = CrossEncoderVerifier.from_name(arguments.verifier, backend="onnx", batch_size=arguments.batch, cache_size=0)
    whole = CrossEncoder(str(arguments.weights), device="cpu")
    dataset = read_set(arguments.set, arguments.data)
    texts = sorted((p.content for p in dataset.passages), key=len)
    questions = [q.text for q in sample_questions(dataset.questions, arguments.questions + 1, SEED)]
    rng = np.random.default_rng(SEED)
    times: dict[str, list[float]] = {"small": [], "whole": []}
    taus = []
    for n, question in enumerate(questions):
        places = (np.arange(PASSAGES) + rng.random(PASSAGES)) * len(texts) / PASSAGES  # one of each twentieth
        passages = [texts[int(place)] for place in rng.permutation(places)]
        a, took = score_timed(lambda: small.raw_scores(question, passages))  # noqa: B023 - called at once
        b, theirs = score_timed(lambda: whole.predict([(question, p) for p in passages]))  # noqa: B023
        if n:  # the first warms both up
            times["small"].append(took)
            times["whole"].append(theirs)
            taus.append(kendalltau(a, b).statistic)
    mine, other = (statistics.median(times[name]) for name in ("small", "whole"))
    print(f"{arguments.set}: {PASSAGES} passages, medians of {arguments.questions}: {mine:.0f} ms and {other:.0f} ms, "
          f"ratio {mine / other:.3f}; Kendall's tau {np.mean(taus):.3f}")  # fmt: skip


def score_timed(call: Callable[[], object]) -> tuple[np.ndarray, float]:
    """Return a call's result, and its milliseconds."""
    start = time.perf_counter()
    result = call()
    return np.asarray(result), 1000 * (time.perf_counter() - start)


if __name__ == "__main__":
    main()
