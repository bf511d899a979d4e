"""Fits the estimate of sufficiency that ships, and measures it on questions kept out of all training.

    python -m recipes.sufficiency.fit --data DATA --cache WORK --to FOLDER

Questions of HotpotQA, 2WikiMultihopQA and NQ-open that the verifier wasn't trained on, and that `meve bench` doesn't
ask unless told to, are asked of the corpus, of the corpus without their gold passages, and if there are several,
without each one of them. It learns to tell the first from the others. Measured are the questions that `meve bench`
asks, of the corpus and of the corpus without gold, and those of HotpotQA's fullwiki contexts, of which some are
complete.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sklearn.metrics import balanced_accuracy_score

from meve.evaluation.datasets import read_set
from meve.evaluation.experiments.common import CACHE, QUESTIONS
from meve.evaluation.run import sample
from meve.parts.companions import SUFFICIENCY
from meve.parts.sufficiency import SufficiencyEstimator, fit_sufficiency
from recipes.sufficiency.contexts import Told, asked_of_pools, asked_twice
from recipes.verifier.splits import SEED, unseen

NAME = "meve-sufficiency-1"
FITTED = ("hotpotqa", "2wiki", "nq_open")
MOST = 150
"""Questions of a set that it is fitted on."""


def main() -> None:
    """Fit, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True, help="a folder for embeddings")
    parser.add_argument("--to", type=Path, required=True, help="the folder of the verifier that ships")
    parser.add_argument("--embedder")
    parser.add_argument("--verifier")
    given = parser.parse_args()
    file = given.cache / CACHE
    told: list[Told] = []
    for name in FITTED:
        chosen = read_set(name, given.data)
        mine = unseen(chosen, given.data)[:MOST]
        parts = {"embedder": given.embedder, "verifier": given.verifier, "cache": file}
        told += asked_twice(chosen, mine, partly=True, **parts)
        print(f"{name}: {len(mine)} questions to fit on", flush=True)
    estimator = fit_sufficiency(
        [(each.question, each.context.passages) for each in told],
        [each.held for each in told],
        name=NAME,
        verifier=told[0].context.trace.verifier,
        fitted_on=f"questions of {', '.join(FITTED)}, asked with their gold passages, without, and without one of them",
    )
    measured: dict[str, float] = {}
    for name in ("nq_open", "hotpotqa", "hotpotqa_fullwiki"):
        chosen = read_set(name, given.data)
        asked = [q for q in sample(chosen.questions, QUESTIONS, SEED) if q.gold or chosen.closed]
        ask = asked_of_pools if chosen.closed else asked_twice
        found = list(ask(chosen, asked, embedder=given.embedder, verifier=given.verifier, cache=file))
        measured |= shown(name, estimator, found)
    made = replace(estimator, measured=measured)
    (given.to / SUFFICIENCY).write_text(json.dumps(made.to_dict(), indent=2) + "\n", "utf-8")


def shown(name: str, estimator: SufficiencyEstimator, told: Sequence[Told]) -> Mapping[str, float]:
    """Balanced accuracy by what the context holds, and by what the corpus held, beside "anything verified"."""
    verified = [any(p.verified for p in each.context.passages) for each in told]
    said = [
        some and estimator.estimate(each.question, each.context.passages) >= estimator.threshold
        for each, some in zip(told, verified, strict=True)
    ]
    made = {}
    for label, truth in (("context", [each.carried for each in told]), ("corpus", [each.held for each in told])):
        ours, before = (balanced_accuracy_score(truth, guess) for guess in (said, verified))
        made[f"{name}, in the {label}"] = round(float(ours), 3)
        print(
            f"{name:20} in the {label:8} {ours:.3f}, by anything verified {before:.3f}, {len(told)} contexts",
            flush=True,
        )
    return made


if __name__ == "__main__":
    main()
