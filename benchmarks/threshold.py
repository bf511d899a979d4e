"""The effect of a threshold on the paper's scale and on calibrated ones: a picture and a table.

    python benchmarks/threshold.py --data DATA --to docs/results/threshold.svg

Phase 1's candidates, labelled as gold or not, are pairs like those of `meve calibrate`. The first half of a set's
questions fits the calibration, for a recall of 0.9. The other half measures three scales: the paper's τ = 0.5 on the
sigmoid of the verifier's logits, 0.5 on the shipped probabilities, and the fitted threshold on fitted probabilities.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from meve import Retriever
from meve.calibration.fitting import calibrate, raw_scores
from meve.calibration.probability_maps import PlattCalibration
from meve.components.embedders import resolve_embedder
from meve.evaluation._model_caches import DiskCachedEmbedder
from meve.evaluation._set_runner import sample_questions
from meve.evaluation.datasets import read_set
from meve.evaluation.experiments._experiment import CACHE, QUESTIONS, SEED
from meve.evaluation.report.plots import OURS, THEIRS, prepare_matplotlib, save_figure
from meve.types import LabelledPair

SETS = ("hotpotqa", "2wiki", "musique", "nq_open", "nfcorpus", "scifact")
RECALL, PAPER = 0.9, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The probabilities of the measured half, and a threshold on them."""

    name: str
    probabilities: np.ndarray
    threshold: float


def main() -> None:
    """Calibrate, measure, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True, help="the picture, as SVG")
    parser.add_argument("--cache", type=Path, help="a folder for embeddings")
    parser.add_argument("--embedder")
    parser.add_argument("--verifier")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="a set, at most")
    arguments = parser.parse_args()
    drawn: list[tuple[str, np.ndarray, list[Scale]]] = []
    print("| set | gold among candidates | τ 0.5, sigmoid | τ 0.5, as shipped | fitted τ, fitted scale | fitted τ |")
    print("|---|---|---|---|---|---|")
    for name in SETS:
        gold, scales = measure_set(name, arguments)
        drawn.append((name, gold, scales))
        cells = [format_cell(scale.probabilities >= scale.threshold, gold) for scale in scales]
        print(f"| {name} | {gold.mean():.2f} | {' | '.join(cells)} | {scales[-1].threshold:.2f} |", flush=True)
    draw(drawn, arguments.to)


def measure_set(name: str, arguments: argparse.Namespace) -> tuple[np.ndarray, list[Scale]]:
    """Return which pairs of the second half are gold, and the three scales on them."""
    dataset = read_set(name, arguments.data)
    embedder = resolve_embedder(arguments.embedder)
    cached = DiskCachedEmbedder(embedder, arguments.cache / CACHE) if arguments.cache else embedder
    retriever = Retriever.from_passages(dataset.passages, embedder=cached, verifier=arguments.verifier)
    questions = [q for q in sample_questions(dataset.questions, arguments.questions, SEED) if q.gold and q.answerable]
    halves: list[list[LabelledPair]] = [[], []]
    for n, question in enumerate(questions):
        candidates = retriever.retrieve(question.text, mode="standard_rag").trace.candidates
        halves[n >= len(questions) // 2] += [
            LabelledPair(query=question.text, passage=retriever.get(c.id).content, relevant=c.id in question.gold)
            for c in candidates
        ]
    report = calibrate(retriever.verifier, halves[0], recall=RECALL)
    raw = raw_scores(retriever.verifier, halves[1])
    return np.array([pair.relevant for pair in halves[1]]), [
        Scale(name="sigmoid", probabilities=PlattCalibration().apply(raw), threshold=PAPER),
        Scale(name="as shipped", probabilities=retriever.verifier.calibration.apply(raw), threshold=PAPER),
        Scale(name="fitted", probabilities=report.calibration.apply(raw), threshold=report.threshold),
    ]


def format_cell(cached: np.ndarray, gold: np.ndarray) -> str:
    """Return recall and precision of what a threshold keeps, as a table cell."""
    precision = f"{gold[cached].mean():.2f}" if cached.any() else "—"
    return f"recall {cached[gold].mean():.2f}, precision {precision}"


def draw(drawn: Sequence[tuple[str, np.ndarray, list[Scale]]], file: Path) -> None:
    """Draw recall (solid) and precision (dashed) against the threshold, on the paper's scale and the fitted one."""
    prepare_matplotlib()
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(11, 6.2), sharex=True, sharey=True)
    for axis, (name, gold, scales) in zip(axes.flat, drawn, strict=True):
        for scale, colour in ((scales[0], THEIRS), (scales[-1], OURS)):
            curve(axis, scale, gold, colour)
        axis.set_title(name, fontsize=10)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[1]:
        axis.set_xlabel("threshold τ")
    for axis in axes[:, 0]:
        axis.set_ylabel("recall (whole), precision (dashed)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=4, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    save_figure(figure, file)


def curve(axis: Any, scale: Scale, gold: np.ndarray, colour: str) -> None:
    """Draw both shares at every threshold, and a mark at the chosen one."""
    steps = np.linspace(0, 1, 101)
    recall = [float((scale.probabilities[gold] >= at).mean()) for at in steps]
    kept = [scale.probabilities >= at for at in steps]
    precision = [float(gold[h].mean()) if h.any() else np.nan for h in kept]
    label = "sigmoid of the logit" if scale.name == "sigmoid" else "fitted to the set"
    axis.plot(steps, recall, color=colour, linewidth=2, label=label)
    axis.plot(steps, precision, color=colour, linewidth=1.3, linestyle="--")
    at = float((scale.probabilities[gold] >= scale.threshold).mean())
    mark = "the paper's τ = 0.5" if scale.name == "sigmoid" else "τ fitted for a recall of 0.9"
    axis.plot([scale.threshold], [at], marker="o", markersize=8, color=colour, markeredgecolor="white", label=mark,
              linestyle="none")  # fmt: skip


if __name__ == "__main__":
    main()
