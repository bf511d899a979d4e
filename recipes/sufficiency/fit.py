"""Fits the estimate of sufficiency that ships, and measures it on questions kept out of all training.

    python -m recipes.sufficiency.fit --data DATA --cache WORK --to FOLDER

Questions of HotpotQA, 2WikiMultihopQA and NQ-open that the verifier wasn't trained on, and that `meve bench` doesn't
ask unless told to, are asked twice: of the corpus, and of the corpus without their gold passages. It learns to tell the
two apart; fitted to whether all gold stands in the context, it told less, of that too. Then the questions that `meve
bench` asks, the same way, and those of HotpotQA's fullwiki contexts, of which some are complete.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sklearn.metrics import balanced_accuracy_score

from meve.components._shipped_models import SUFFICIENCY
from meve.components.sufficiency import SufficiencyEstimator, fit_sufficiency
from meve.evaluation._set_runner import sample_questions
from meve.evaluation.datasets import read_set
from meve.evaluation.experiments._experiment import CACHE, QUESTIONS
from meve.evaluation.types import Question
from recipes.sufficiency.contexts import DialogueQuestion, asked_of_pools, asked_twice
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
    told: list[DialogueQuestion] = []
    for name in FITTED:
        chosen = read_set(name, given.data)
        mine = unseen(chosen, given.data)[:MOST]
        told += asked_twice(chosen, mine, embedder=given.embedder, verifier=given.verifier, cache=file)
        print(f"{name}: {len(mine)} questions to fit on", flush=True)
    estimator = fit_sufficiency(
        [(question, context.passages) for question, context, _ in told],
        held(told),
        name=NAME,
        verifier=told[0][1].trace.verifier,
        fitted_on=f"questions of {', '.join(FITTED)}, asked with and without their gold passages",
    )
    measured: dict[str, float] = {}
    for name in ("nq_open", "hotpotqa", "hotpotqa_fullwiki"):
        chosen = read_set(name, given.data)
        asked = [q for q in sample_questions(chosen.questions, QUESTIONS, SEED) if q.gold or chosen.has_pools]
        ask = asked_of_pools if chosen.has_pools else asked_twice
        found = list(ask(chosen, asked, embedder=given.embedder, verifier=given.verifier, cache=file))
        measured |= shown(name, estimator, found, asked)
    made = replace(estimator, measured=measured)
    (given.to / SUFFICIENCY).write_text(json.dumps(made.to_dict(), indent=2) + "\n", "utf-8")


def held(told: Sequence[DialogueQuestion]) -> list[bool]:
    """Whether the corpus had the gold passages, of questions that were asked with them and without in turn."""
    return [n % 2 == 0 for n in range(len(told))]


def shown(
    name: str, estimator: SufficiencyEstimator, told: Sequence[DialogueQuestion], asked: Sequence[Question]
) -> Mapping[str, float]:
    """Balanced accuracy by what the context holds, and by what the corpus held, beside "anything verified"."""
    there = held(told) if len(told) == 2 * len(asked) else [enough for *_, enough in told]
    carried = [enough for *_, enough in told]
    verified = [any(p.verified for p in context.passages) for _, context, _ in told]
    said = [
        some and estimator.estimate(question, context.passages) >= estimator.threshold
        for (question, context, _), some in zip(told, verified, strict=True)
    ]
    made = {}
    for label, truth in (("in the context", carried), ("in the corpus", there)):
        ours, before = (balanced_accuracy_score(truth, guess) for guess in (said, verified))
        made[f"{name}, {label}"] = round(float(ours), 3)
        print(f"{name:20} {label:16} {ours:.3f}, by anything verified {before:.3f}, {len(told)} contexts", flush=True)
    return made


if __name__ == "__main__":
    main()
