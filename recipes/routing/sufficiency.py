"""Fits the estimate whether memories tell what a question asks, and measures it on questions it wasn't fitted to.

    python -m recipes.routing.sufficiency --data DATA --cache WORK [--table]

The questions are those of the tuning halves of LoCoMo and LongMemEval, and of `benchmarks/answers/tuning.json`; each of
the three weighs the same, and in each the questions with an answer as much as those without. The measures are of
questions whose conversation was left out. `--table` measures the fitted weights on the other halves, once.

The weights are printed, for `meve.routing._sufficiency`. None is below 0.
"""

import argparse
import json
from collections.abc import Iterator, Sequence, Set
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from benchmarks.answers.measure import open_worlds
from meve.components.embedders import ACCURATE, resolve_embedder
from meve.components.verifiers import resolve_verifier
from meve.evaluation._model_caches import DiskCachedEmbedder
from meve.evaluation.experiments.memory.recall import open_filled
from meve.evaluation.experiments.routing.cases import Half
from meve.evaluation.experiments.routing.experiment import SETS
from meve.evaluation.experiments.routing.systems import CaseClock
from meve.routing import MemoryRouter, RouterConfig
from meve.routing._sufficiency import EvidenceFeatures

NAMES = tuple(field.name for field in fields(EvidenceFeatures) if field.name != "named")
PENALTY = 0.02
THRESHOLD = RouterConfig().evidence_threshold
OWN = "own"
WRONG_REFUSALS, LEAST = 0.08, 5
"""The share of questions with an answer below 0.5, at most, in each set that has so many: elsewhere it may be higher,
and a tenth is the limit."""


class Sample(NamedTuple):
    """A question with its features, and whether the memories answer it."""

    set: str
    unit: str
    id: str
    features: tuple[float, ...]
    """In the order of `NAMES`, then 1 for the intercept; empty if the question can't be refused."""
    named: bool
    answerable: bool


def read_samples(half: Half, data: Path, cache: Path, only: Sequence[str]) -> Iterator[Sample]:
    """Yield the questions of a half with their features, which are stored in the folder `cache`."""
    for name in only:
        file = cache / f"{name}-{half}.jsonl"
        stored = [Sample(*json.loads(line)) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
        known = {(sample.unit, sample.id) for sample in stored}
        yield from stored
        measured = _measure_own(half, known) if name == OWN else _measure_set(name, half, data, cache, known)
        with file.open("a", encoding="utf-8") as lines:
            for sample in measured:
                lines.write(json.dumps(sample) + "\n")
                lines.flush()
                yield sample


def _measure_own(half: Half, known: Set[tuple[str, str]]) -> Iterator[Sample]:
    for number, (memory, world) in enumerate(open_worlds("tuning" if half == "tuning" else "held_out")):
        unit = f"{OWN}-{number}"
        router = MemoryRouter(memory, user_id="user")
        answerable = dict.fromkeys(question for _, question, _, _ in world["cases"])
        for is_answerable, questions in ((True, answerable), (False, world["unanswerable"])):
            for question in (each for each in questions if (unit, each) not in known):
                yield Sample(OWN, unit, question, *_find_features(router, question), is_answerable)


def _measure_set(name: str, half: Half, data: Path, cache: Path, known: Set[tuple[str, str]]) -> Iterator[Sample]:
    questions = SETS[name](data)
    embedder = DiskCachedEmbedder(resolve_embedder(ACCURATE), cache / "embeddings.sqlite")
    clock = CaseClock()
    cases = [case for case in questions.cases if case.half == half and (case.user, case.id) not in known]
    users = {case.user for case in cases}
    turns = {user: own for user, own in questions.turns.items() if user in users}
    with open_filled(turns, embedder, verifier=resolve_verifier(None, embedder), clock=clock) as memory:
        for case in cases:
            clock.moment = case.at
            features, named = _find_features(MemoryRouter(memory, user_id=case.user), case.text)
            yield Sample(name, case.user, case.id, features, named, bool(case.evidence))


def _find_features(router: MemoryRouter, question: str) -> tuple[tuple[float, ...], bool]:
    """Return the features of the evidence, and whether the question names a speaker."""
    measured = router.recall(question).trace.sufficiency.get("features")
    return ((*(measured[name] for name in NAMES), 1.0), bool(measured["named"])) if measured else ((), False)


def fit(samples: Sequence[Sample]) -> dict[bool, np.ndarray]:
    """Return the weights with a named speaker, and without, in the order of the features, the intercept last."""
    kinds = {kind: [s for s in samples if s.features and s.named is kind] for kind in (True, False)}
    return {kind: _fit_kind(own) for kind, own in kinds.items() if own}


def _fit_kind(samples: Sequence[Sample]) -> np.ndarray:
    """Return the weights of a logistic regression, with the intercept at which few answerable questions are refused."""
    matrix = np.array([sample.features for sample in samples])
    answerable = np.array([sample.answerable for sample in samples])
    signs, weights = np.where(answerable, 1.0, -1.0), weigh(samples)

    def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
        margins = signs * (matrix @ values)
        penalty = PENALTY * values * np.array([*[1.0] * len(NAMES), 0.0])
        slopes = matrix.T @ (-signs * weights / (1 + np.exp(margins)))
        return float(weights @ np.logaddexp(0, -margins) + penalty @ values / 2), slopes + penalty

    bounds = [*[(0.0, None)] * len(NAMES), (None, None)]
    values = minimize(loss, np.zeros(len(bounds)), jac=True, bounds=bounds, method="L-BFGS-B").x
    sets = np.array([sample.set for sample in samples])
    logits = [(matrix @ values)[answerable & (sets == name)] for name in dict.fromkeys(sets)]
    values[-1] -= min(np.quantile(own, WRONG_REFUSALS, method="lower") for own in logits if len(own) >= LEAST)
    return values


def weigh(samples: Sequence[Sample]) -> np.ndarray:
    """Return weights that sum up to 1, by which sets count alike, and in each the two kinds of questions."""
    groups = [(sample.set, sample.answerable) for sample in samples]
    return np.array([1 / groups.count(group) for group in groups]) / len(set(groups))


def estimate(samples: Sequence[Sample], values: dict[bool, np.ndarray]) -> np.ndarray:
    """Return how likely the memories answer, for each question; 1 for those that can't be refused."""
    logits = [float(s.features @ values[s.named]) if s.features else np.inf for s in samples]
    return 1 / (1 + np.exp(-np.array(logits)))


def report(title: str, samples: Sequence[Sample], estimates: np.ndarray) -> None:
    """Print the shares that are refused, for each set."""
    print(title)
    for name in dict.fromkeys(sample.set for sample in samples):
        chosen = np.array([sample.set == name for sample in samples])
        known = np.array([sample.answerable for sample in samples])[chosen]
        values, refused = estimates[chosen], estimates[chosen] < THRESHOLD
        better = (values[known][:, None] > values[~known]) + 0.5 * (values[known][:, None] == values[~known])
        print(
            f"{name}: AUC {better.mean():.3f}; refused {refused[~known].mean():.3f} of {(~known).sum()} without an "
            f"answer, {refused[known].mean():.3f} of {known.sum()} with one"
        )


def main() -> None:
    """Fit, and print the weights and their measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=[OWN, "locomo", "longmemeval"])
    parser.add_argument("--table", action="store_true", help="measure on the other halves")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    samples = list(read_samples("tuning", options.data, options.cache, options.sets))
    units = [sample.unit for sample in samples]
    held_out = np.zeros(len(samples))
    for unit in dict.fromkeys(units):
        inside = np.array([each == unit for each in units])
        values = fit([sample for sample, is_in in zip(samples, inside, strict=True) if not is_in])
        held_out[inside] = estimate([sample for sample, is_in in zip(samples, inside, strict=True) if is_in], values)
    report("questions of conversations that were left out", samples, held_out)
    values = fit(samples)
    for kind, own in values.items():
        print(kind, {name: round(float(value), 2) for name, value in zip([*NAMES, ""], own, strict=True)})
    report("all of them", samples, estimate(samples, values))
    if options.table:
        others = list(read_samples("table", options.data, options.cache, options.sets))
        report("the other halves", others, estimate(others, values))


if __name__ == "__main__":
    main()
