"""The trajectory experiment: ranks the turn that a reply answers, its replies, and the evidence for questions.

The weights of combined features are learnt on one half of a set's conversations and tested on the other, both ways.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from meve._extras import require
from meve.components.embedders import FAST, resolve_embedder
from meve.components.embedders.cached import CachedEmbedder
from meve.components.logistic import fit_logistic
from meve.conversation.ranking import FEATURES, Ranking
from meve.errors import EvaluationError
from meve.evaluation.experiments._experiment import SEED
from meve.evaluation.experiments.memory.memory_results import MemoryResults, Tally
from meve.evaluation.experiments.trajectory.cases import Case, Task, make_cases
from meve.evaluation.experiments.trajectory.reply_trees import SETS, ReplyTree, read_reply_trees
from meve.evaluation.results import collect_versions
from meve.types import FloatArray, StageProgress

CASES = 400
"""Cases per half of a set, unless all are requested."""
DEPTH = 10
SINGLE = {"cosine": "semantic", "recency": "recency", "BM25": "words"}
"""The baselines, each a feature."""
_SINGLES = frozenset(SINGLE.values())
_STEPS = {
    "cosine + BM25": ("semantic", "words"),
    "+ temporal": ("recency",),
    "+ trajectory": ("trajectory",),
    "+ attention": ("attention",),
    "+ speakers": ("addressed", "addresses", "own"),
    "+ neighbours": ("before", "after"),
}
PUBLISHED = "as published"
DEFAULT = "Ranking()"
WITHOUT_SHAPE = "speakers without trajectory and attention"
_DIMENSIONS = ("3 dimensions", "5 dimensions", "7 dimensions")
_BASE = ("semantic", "words", "recency")
_NEGATIVES = 20
"""Wrong candidates per case that the weights are fitted on."""
DESCRIPTIONS = {
    f"{name}: {part}": text
    for name in set(SETS) - {"locomo"}
    for part, text in (
        (
            "parent",
            "The turn that a reply answers, among up to 100 turns before it. A star marks a paired difference to the "
            "best single feature. Weights of several features were learnt on the other half of the conversations.",
        ),
        ("continuation", "The replies to a turn, among up to 100 turns after it whose own replies aren't known."),
        (
            "leakage",
            "The share of the ten best that lie on another branch than the turn that the reply answers: with slices "
            "that hold ancestors only, the default, and with the published ones, which admit the nearest siblings.",
        ),
    )
}
DESCRIPTIONS["locomo: question"] = (
    "The turns that hold the answer to a question, among all turns of a talk of some 600. A star marks a paired "
    "difference to the best single feature. Weights of several features were learnt on the other half of the talks."
)
"""What each table shows, by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryOptions:
    """The options of the trajectory experiment."""

    data: Path
    """The folder with a folder for each set."""
    sets: tuple[str, ...] = tuple(SETS)
    cases: int = CASES
    """Cases per half of a set, at least 10."""
    embedder: str | None = None
    seed: int = SEED


def systems() -> dict[str, tuple[str, ...]]:
    """Return the features of each combined system, by name."""
    found: dict[str, tuple[str, ...]] = {}
    features: tuple[str, ...] = ()
    for name, new in _STEPS.items():
        features += new
        found[name] = features
    found[WITHOUT_SHAPE] = (*_BASE, *_STEPS["+ speakers"])
    return found | {name: (*_BASE, name) for name in _DIMENSIONS}


def run_trajectory(options: TrajectoryOptions, progress: StageProgress = lambda *_: None) -> MemoryResults:
    """Measure rankings of parents and continuations, and what of them the anchor can't see.

    Raises:
        DatasetError: a set is absent, truncated or of another format.
        EvaluationError: fewer than 10 cases, or a set with too few conversations.
        MissingExtraError: scikit-learn isn't installed.
    """
    if options.cases < 10:
        raise EvaluationError(f"cases must be at least 10, got {options.cases}")
    require("fitting weights", {"sklearn": "models"})
    embedder = CachedEmbedder(resolve_embedder(options.embedder, default=FAST), cache_size=20_000)
    tallies = []
    for n, name in enumerate(options.sets):
        trees = read_reply_trees(options.data, name)
        tasks: tuple[Task, ...] = ("question",) if name == "locomo" else ("parent", "continuation")
        for m, task in enumerate(tasks):
            progress(f"{name}: {task}", 2 * n + m, 2 * len(options.sets))
            halves = draw_halves(trees, task, options, embedder)
            tallies.append(_measure(f"{name}: {task}", halves, options.seed))
            if task == "parent":
                tallies.append(_measure_leakage(f"{name}: leakage", halves, options.seed))
    progress("done", 2 * len(options.sets), 2 * len(options.sets))
    settings = {
        "seed": options.seed, "cases per half": options.cases, "embedder": embedder.name,
        "versions": collect_versions(),
    }  # fmt: skip
    return MemoryResults.from_tallies("trajectory", settings, tallies)


def draw_halves(
    trees: Sequence[ReplyTree], task: Task, options: TrajectoryOptions, embedder: CachedEmbedder
) -> tuple[list[Case], list[Case]]:
    """Return the cases of two halves of the conversations, drawn at random."""
    chance = random.Random(options.seed)
    order = chance.sample(range(len(trees)), len(trees))
    halves: list[list[Case]] = []
    for half in (order[::2], order[1::2]):
        turns = [(at, n) for at in half for n in _positions(trees[at], task)]
        if task == "continuation":
            answered = {at: {parent for t in trees[at].turns for parent in t.parents} for at in half}
            turns = [(at, n) for at, n in turns if trees[at].turns[n].id in answered[at]]
        drawn = chance.sample(turns, min(len(turns), options.cases))
        cases: list[Case] = []
        for at in sorted({at for at, _ in drawn}):
            cases += make_cases(trees[at], sorted(n for each, n in drawn if each == at), task, embedder)
        halves.append(cases)
    if min(map(len, halves)) < 10:
        raise EvaluationError(f"each half needs at least 10 cases, got {len(halves[0])} and {len(halves[1])}")
    return halves[0], halves[1]


def _positions(tree: ReplyTree, task: Task) -> Sequence[int]:
    return {
        "parent": tree.asked,
        "continuation": range(len(tree.turns)),
        "question": range(len(tree.questions)),
    }[task]


def choose_weights(cases: Sequence[Case], features: Sequence[str], seed: int) -> dict[str, float]:
    """Return fitted weights, or the best single feature if those aren't better on these cases beyond chance."""
    fitted = fit_weights(cases, features, seed)
    single = {
        name: np.array([reciprocal_rank(case, {name: 1.0}) for case in cases]) for name in features if name in _SINGLES
    }
    best = max(single, key=lambda name: float(single[name].mean()))
    gains = np.array([reciprocal_rank(case, fitted) for case in cases]) - single[best]
    return fitted if gains.mean() > 1.96 * gains.std() / len(gains) ** 0.5 else {best: 1.0}


def reciprocal_rank(case: Case, weights: Mapping[str, float]) -> float:
    """Return 1 over the rank of the first right candidate, 0 beyond the tenth."""
    return rank_measures(score_case(case, weights), case.right)["MRR@10"]


def fit_weights(cases: Sequence[Case], features: Sequence[str], seed: int) -> dict[str, float]:
    """Return the weights of a logistic regression on the differences between a right candidate and a wrong one."""
    random_ = np.random.default_rng(seed)
    rows: list[dict[str, float]] = []
    labels: list[bool] = []
    for case in cases:
        values = np.stack([case.features[name] for name in features], axis=1).astype(np.float64)
        wrong = random_.permutation(np.flatnonzero(~case.right))[:_NEGATIVES]
        for right in np.flatnonzero(case.right):
            for gap in values[right] - values[wrong]:
                rows += [dict(zip(features, gap, strict=True)), dict(zip(features, -gap, strict=True))]
                labels += [True, False]
    return fit_logistic(rows, labels)[0]


def score_case(case: Case, weights: Mapping[str, float]) -> FloatArray:
    """Return the weighted sum of a case's features, with the latest of equal candidates first; shape (m,)."""
    total = sum(weight * case.features[name] for name, weight in weights.items())
    return np.asarray(total + 1e-7 * case.features["recency"], dtype=np.float32)


def _weights(halves: tuple[list[Case], list[Case]], seed: int) -> list[dict[str, dict[str, float]]]:
    """Return for each half the weights of each system, those of combined ones learnt on the other half."""
    paper = Ranking.paper()
    fixed = {name: {feature: 1.0} for name, feature in SINGLE.items()}
    fixed[PUBLISHED] = {"semantic": paper.semantic, "trajectory": paper.trajectory}
    fixed[DEFAULT] = {name: getattr(Ranking(), name) for name in FEATURES if name != "outcome"}
    return [
        fixed | {name: choose_weights(other, features, seed) for name, features in systems().items()}
        for other in reversed(halves)
    ]


def _measure(name: str, halves: tuple[list[Case], list[Case]], seed: int) -> Tally:
    weights = _weights(halves, seed)
    best = max(SINGLE, key=lambda system: _mean_rank(halves, weights, system))
    tally = Tally(name, seed, against=best)
    for half, by_system in zip(halves, weights, strict=True):
        for case in half:
            for system, each in by_system.items():
                for measure, value in rank_measures(score_case(case, each), case.right).items():
                    tally.add(system, measure, value)
    return tally


def _mean_rank(
    halves: tuple[list[Case], list[Case]], weights: Sequence[Mapping[str, Mapping[str, float]]], system: str
) -> float:
    values = [
        reciprocal_rank(case, by_system[system])
        for half, by_system in zip(halves, weights, strict=True)
        for case in half
    ]
    return float(np.mean(values))


def rank_measures(scores: FloatArray, right: npt.NDArray[np.bool_]) -> dict[str, float]:
    """Return MRR@10, Recall@10 and NDCG@10 of a ranking.

    Args:
        scores: of m candidates, of equal ones the first counts as better; shape (m,).
        right: which candidates are right, at least one; shape (m,).

    >>> rank_measures(np.array([0.1, 0.9, 0.5], np.float32), np.array([False, False, True]))
    {'MRR@10': 0.5, 'Recall@10': 1.0, 'NDCG@10': 0.6309}
    """
    hits = right[np.argsort(-scores, kind="stable")[:DEPTH]]
    gains = 1 / np.log2(np.arange(DEPTH) + 2)
    ideal = gains[: min(DEPTH, int(right.sum()))].sum()
    first = int(np.argmax(hits)) + 1 if hits.any() else 0
    return {
        "MRR@10": 1 / first if first else 0.0,
        "Recall@10": float(hits.sum() / right.sum()),
        "NDCG@10": round(float(gains[: len(hits)][hits].sum() / ideal), 4),
    }


def _measure_leakage(name: str, halves: tuple[list[Case], list[Case]], seed: int) -> Tally:
    """Measure the share of the ten best that don't lie on the line of the turn that the question replies to."""
    tally = Tally(name, seed)
    full = "+ speakers"
    for half, by_system in zip(halves, _weights(halves, seed), strict=True):
        for case in half:
            if case.visible is None:
                continue
            everything = np.ones(len(case.right), dtype=np.bool_)
            for system in (*SINGLE, full):
                tally.add(
                    system, "share unseen", _unseen(score_case(case, by_system[system]), case.visible, everything)
                )
            scores = score_case(case, by_system[full])
            for policy, inside in case.admitted.items():
                tally.add(f"{full}, {policy}", "share unseen", _unseen(scores, case.visible, inside))
    return tally


def _unseen(scores: FloatArray, visible: npt.NDArray[np.bool_], inside: npt.NDArray[np.bool_]) -> float:
    places = np.flatnonzero(inside)
    best = places[np.argsort(-scores[places], kind="stable")[:DEPTH]]
    return float(np.mean(~visible[best])) if len(best) else 0.0
