"""Fits the prior that ships, which predicts the candidates that have no chance of being verified.

    python -m recipes.prior.fit --data DATA --cache WORK --to FOLDER

For questions of HotpotQA, 2WikiMultihopQA and NQ-open outside the verifier's training, every candidate is scored. The
prior learns which candidates reach the threshold; its minimum probability loses one in 200 of them. It is then measured
on the questions of `meve bench`, of other sets too.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from meve import Retriever
from meve.components._shipped_models import PRIOR
from meve.components.embedders import resolve_embedder
from meve.components.verification_prior import FEATURES, FittedPrior, extract_candidate_features
from meve.evaluation._model_caches import DiskCachedEmbedder
from meve.evaluation._set_runner import sample_questions
from meve.evaluation.datasets import read_set
from meve.evaluation.experiments._experiment import CACHE
from meve.evaluation.types import EvaluationSet, Question
from meve.types import Candidate, FloatArray, Query
from recipes.sufficiency.contexts import NoEstimator
from recipes.verifier.splits import SEED, unseen

NAME = "meve-prior-1"
FITTED = ("hotpotqa", "2wiki", "nq_open")
MEASURED = (*FITTED, "musique", "nfcorpus", "scifact")
MOST = 150
"""Questions per set for the fit."""
ASKED = 60
"""Questions per set for the measurement, the first ones that `meve bench` draws."""
LOST = 0.005


class Watcher:
    """A prior that skips nothing and records the features of every candidate."""

    name, least = "watcher", 0.0

    def __init__(self) -> None:
        self.seen: dict[str, FloatArray] = {}

    def chances(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """Record the features and return 1 for all."""
        features = extract_candidate_features(query, candidates)
        self.seen = {c.id: row for c, row in zip(candidates, features, strict=True)}
        return np.ones(len(candidates), dtype=np.float32)


def main() -> None:
    """Fit, measure and write the prior."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True, help="a folder for embeddings")
    parser.add_argument("--to", type=Path, required=True, help="the folder of the verifier that ships")
    given = parser.parse_args()
    sets = {name: read_set(name, given.data) for name in MEASURED}
    unseen_questions = {name: unseen(sets[name], given.data)[:MOST] for name in FITTED}
    fitted_sets = [score_candidates(sets[name], unseen_questions[name], given.cache / CACHE) for name in FITTED]
    x, y = np.concatenate([t[0] for t in fitted_sets]), np.concatenate([t[1] for t in fitted_sets])
    model = LogisticRegression(C=10.0, max_iter=1000).fit(x, y)
    prior = FittedPrior(
        name=NAME,
        embedder=fitted_sets[0][2],
        verifier=fitted_sets[0][3],
        weights=dict(zip(FEATURES, map(float, model.coef_[0]), strict=True)),
        intercept=float(model.intercept_[0]),
        least=0.0,
        fitted_on=f"questions of {', '.join(FITTED)} that the verifier wasn't trained on",
    )
    prior = replace(prior, least=float(np.quantile(chances(prior, x)[y], LOST)))
    lost, saved = [], []
    for name in MEASURED:
        questions = [q for q in sample_questions(sets[name].questions, ASKED, SEED) if q.gold]
        x, y, *_ = score_candidates(sets[name], questions, given.cache / CACHE)
        skipped = chances(prior, x) < prior.least
        lost.append(skipped[y])
        saved.append(skipped)
        share = f"{skipped.mean():.3f} of {len(skipped)}"
        print(f"{name:12} {share} candidates skipped, with {skipped[y].mean():.4f} of {y.sum()} "
              "that the verifier would take", flush=True)  # fmt: skip
    prior = replace(prior, lost=float(np.concatenate(lost).mean()), saved=float(np.concatenate(saved).mean()))
    result = json.dumps(prior.to_dict(), indent=2) + "\n"
    (given.to / PRIOR).write_text(result, "utf-8")
    print(result)


def score_candidates(
    chosen: EvaluationSet, questions: Sequence[Question], cache: Path
) -> tuple[FloatArray, np.ndarray, str, str]:
    """Return the features of candidates, shape (n, 4), which were verified, and the names of embedder and verifier."""
    cached = DiskCachedEmbedder(resolve_embedder(None), cache)
    watcher = Watcher()
    retriever = Retriever.from_passages(chosen.passages, embedder=cached)
    retriever.engine = replace(retriever.engine, prior=watcher, estimator=NoEstimator())
    x, y = [], []
    embedder, verifier = retriever.embedder.name, retriever.verifier.name
    for question in questions:
        trace = retriever.retrieve(question.text, exact=False, redundancy=1.0, mode="no_fallback").trace
        verdicts = {c.id: c.verified for c in trace.candidates}
        x += [watcher.seen[i] for i in verdicts]
        y += list(verdicts.values())
    return np.array(x), np.array(y), embedder, verifier


def chances(prior: FittedPrior, x: FloatArray) -> np.ndarray:
    """Return the prior's probabilities."""
    return 1 / (1 + np.exp(-(x @ np.array([prior.weights[name] for name in FEATURES]) + prior.intercept)))


if __name__ == "__main__":
    main()
