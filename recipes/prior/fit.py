"""Fits the prior that ships, which predicts the candidates that have no chance of being verified.

    python -m recipes.prior.fit --data DATA --cache WORK --to FOLDER

For questions of HotpotQA, 2WikiMultihopQA and NQ-open outside the verifier's training, and for held-out headings of
manuals and public pages (`recipes.evidence`), every candidate is scored. The prior learns which candidates reach the
threshold. Its minimum probability is one that few of these fall below. It is then measured on questions of
`meve bench`.

FOLDER is a subfolder of the verifier that ships: `minilm` for `--embedder minilm`, which is the default, else `words`.
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
from meve.components.verifiers import load_verifier
from meve.evaluation._model_caches import DiskCachedEmbedder, DiskCachedVerifier
from meve.evaluation._set_runner import sample_questions
from meve.evaluation.datasets import read_set
from meve.evaluation.experiments._experiment import CACHE, SCORES
from meve.pipeline.phases.cascade import LEAST_SCORED
from meve.types import Candidate, FloatArray, Passage, Query
from recipes.evidence.fit import PAGES, QUESTIONS, SECTIONS, read_sections, sample_asked
from recipes.sufficiency.contexts import NoEstimator
from recipes.verifier.pages import read_corpus
from recipes.verifier.splits import SEED, unseen

NAMES = {"static": "meve-prior-1", "minilm": "meve-prior-2"}
"""By embedder: with MiniLM the verdicts weigh its vectors too."""
MEASURED = (*QUESTIONS, "musique")
MOST = 150
"""Questions per set for the fit."""
ASKED = 60
"""Questions per set for the measurement, the first ones that `meve bench` draws."""


LOST = 0.01
"""The share of verified candidates that fall below the minimum probability."""


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
    parser.add_argument("--cache", type=Path, required=True, help="a folder for embeddings and scores")
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--embedder", choices=NAMES, default="minilm")
    given = parser.parse_args()
    sets = {name: read_set(name, given.data) for name in MEASURED}
    asked = {name: [q.text for q in unseen(sets[name], given.data)[:MOST]] for name in QUESTIONS}
    fitted_sets = [score_candidates(sets[n].passages, asked[n], given.embedder, given.cache) for n in QUESTIONS]
    for name in SECTIONS:
        passages, headings = read_sections(name, given.data)
        fitted_sets.append(score_candidates(passages, [text for text, _ in headings], given.embedder, given.cache))
    passages, asked_of_pages = read_corpus()
    answered = [text for text, _ in sample_asked(asked_of_pages, answered=True)]
    fitted_sets.append(score_candidates(passages, answered, given.embedder, given.cache))
    x, y = np.concatenate([t[0] for t in fitted_sets]), np.concatenate([t[1] for t in fitted_sets])
    model = LogisticRegression(C=10.0, max_iter=1000).fit(x, y)
    prior = FittedPrior(
        name=NAMES[given.embedder],
        embedder=fitted_sets[0][3],
        verifier=fitted_sets[0][4],
        weights=dict(zip(FEATURES, map(float, model.coef_[0]), strict=True)),
        intercept=float(model.intercept_[0]),
        least=0.0,
        fitted_on=f"questions of {', '.join((*QUESTIONS, *SECTIONS, PAGES))} that the verifier wasn't trained on",
    )
    prior = replace(prior, least=float(np.quantile(chances(prior, x)[y], LOST)))
    lost, saved = [], []
    for name in MEASURED:
        questions = [q.text for q in sample_questions(sets[name].questions, ASKED, SEED) if q.gold]
        x, y, asked_by, *_ = score_candidates(sets[name].passages, questions, given.embedder, given.cache)
        skipped = skip(prior, x, asked_by)
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
    passages: Sequence[Passage], questions: Sequence[str], embedder: str, cache: Path
) -> tuple[FloatArray, np.ndarray, np.ndarray, str, str]:
    """Return the features of candidates, shape (n, 4), which were verified, and the indices of their questions.

    The names of embedder and verifier follow.
    """
    cached = DiskCachedEmbedder(resolve_embedder(embedder), cache / CACHE)
    watcher = Watcher()
    verifier = DiskCachedVerifier(load_verifier(), cache / SCORES)
    retriever = Retriever.from_passages(passages, embedder=cached, verifier=verifier)
    retriever.engine = replace(retriever.engine, prior=watcher, estimator=NoEstimator())
    x, y, asked_by = [], [], []
    names = retriever.embedder.name, retriever.verifier.name
    for n, question in enumerate(questions):
        trace = retriever.retrieve(question, exact=False, redundancy=1.0, mode="no_fallback").trace
        verdicts = {c.id: c.verified for c in trace.candidates}
        x += [watcher.seen[i] for i in verdicts]
        y += list(verdicts.values())
        asked_by += [n] * len(verdicts)
    return np.array(x), np.array(y), np.array(asked_by), *names


def skip(prior: FittedPrior, x: FloatArray, asked_by: np.ndarray) -> np.ndarray:
    """Return which candidates are skipped: those below the least chance, but for the likeliest of each question."""
    given = chances(prior, x)
    skipped = given < prior.least
    for n in np.unique(asked_by):
        of_question = np.flatnonzero(asked_by == n)
        skipped[of_question[np.argsort(-given[of_question])[:LEAST_SCORED]]] = False
    return skipped


def chances(prior: FittedPrior, x: FloatArray) -> np.ndarray:
    """Return the prior's probabilities."""
    return 1 / (1 + np.exp(-(x @ np.array([prior.weights[name] for name in FEATURES]) + prior.intercept)))


if __name__ == "__main__":
    main()
