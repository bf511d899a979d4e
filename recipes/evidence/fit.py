"""Fits the evidence model that ships: the verifier's logits, cosines and keyword scores together.

    python -m recipes.evidence.fit --data DATA --cache WORK --to FOLDER
    python -m recipes.evidence.fit --data DATA --cache WORK --to FOLDER --embedder static

The first command makes the model for MiniLM's vectors; FOLDER is the subfolder `minilm` of the verifier that ships. The
second makes the one for any other embedder, which reads no cosine; its FOLDER is `words`.

Candidates of questions outside the verifier's training are its examples: questions of HotpotQA, 2WikiMultihopQA and
NQ-open, headings of manuals and public pages over the sections of their set, and questions of held-out pages, contrasts
and conversations (`pages`, `contrasts` and `conversations` of `recipes.verifier`); each conversation is a corpus of its
turns. A relevant candidate counts eight times, so a candidate reaches one half if one in nine of its like is relevant:
a missed answer costs more than a passage too many. Each set has the same weight. Then the areas under the curve and the
calibration errors are printed for the questions of `meve bench`, the latter also without that weight, as the chance
that a candidate is relevant.
"""

import argparse
import gzip
import json
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from meve import Passage, Retriever
from meve._formulas import expected_calibration_error, sigmoid
from meve.components._shipped_models import EVIDENCE
from meve.components.embedders import resolve_embedder
from meve.components.evidence import FITS, INPUTS, INTERCEPT, WORD_FITS, EvidenceModel
from meve.components.verifiers import load_verifier
from meve.evaluation._model_caches import DiskCachedEmbedder, DiskCachedVerifier
from meve.evaluation._set_runner import sample_questions
from meve.evaluation.datasets import read_set
from meve.evaluation.experiments._experiment import CACHE, SCORES
from meve.types import FloatArray
from recipes.verifier import contrasts, conversations
from recipes.verifier.pages import read_corpus
from recipes.verifier.splits import SEED, part_of, unseen

NAMES = {"minilm": "meve-evidence-1", "static": "meve-evidence-2"}
"""By the embedder that finds the candidates. With the static one, cosines aren't read."""
QUESTIONS = ("hotpotqa", "2wiki", "nq_open")
SECTIONS = ("docs_web_cc", "docs_permissive", "gov_us")
PAGES, CONTRASTS, CONVERSATIONS = "pages", "contrasts", "conversations"
WRITTEN = (PAGES, CONTRASTS, CONVERSATIONS)
"""The sets that were written for the verifier's training."""
MEASURED = ("hotpotqa", "2wiki", "musique", "nq_open", "scifact")
MOST, PASSAGES = 150, 2_500
"""Questions per set, and sections per set of sections."""
WEIGHT = 8.0
"""The weight of a relevant candidate."""
HALF = 0.5
START = {"+".join(names): {**dict.fromkeys(names, 1.0), INTERCEPT: 0.0} for names in FITS}

Asked = Sequence[tuple[str, set[str]]]
"""Questions, each with the ids of its relevant passages."""


def main() -> None:
    """Fit, measure and write the model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True, help="a folder for embeddings and scores")
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--embedder", choices=NAMES, default="minilm")
    parser.add_argument("--measured", type=int, default=MOST, help="questions of each set that are measured")
    given = parser.parse_args()
    models = {"embedder": given.embedder, "cache": given.cache}
    fitted: list[tuple[FloatArray, np.ndarray]] = []
    for name in QUESTIONS:
        chosen = read_set(name, given.data)
        asked = [(q.text, set(q.gold)) for q in unseen(chosen, given.data)[:MOST] if q.gold]
        fitted.append(list_candidates(name, chosen.passages, asked, **models))
    for name in SECTIONS:
        fitted.append(list_candidates(name, *read_sections(name, given.data), **models))
    passages, asked = read_corpus()
    fitted.append(list_candidates(PAGES, passages, sample_asked(asked, answered=True), **models))
    fitted.append(list_candidates(CONTRASTS, *contrasts.read_corpus(), **models))
    talks = [list_candidates(CONVERSATIONS, *talk, **models) for talk in conversations.read_corpora()]
    fitted.append((np.concatenate([x for x, _ in talks]), np.concatenate([relevant for _, relevant in talks])))
    model = fit(fitted, given.embedder)
    text = json.dumps(model.to_dict(), indent=2) + "\n"
    (given.to / EVIDENCE).write_text(text, "utf-8")
    print(text)
    for name in MEASURED:
        chosen = read_set(name, given.data)
        asked = [(q.text, set(q.gold)) for q in sample_questions(chosen.questions, given.measured, SEED) if q.gold]
        x, relevant = list_candidates(f"{name}, measured", chosen.passages, asked, **models)
        sums = model.sums(dict(zip(INPUTS, x.T, strict=True)))
        ours, alone = roc_auc_score(relevant, sums), roc_auc_score(relevant, x[:, 0])
        weighted, chance = (
            expected_calibration_error(sigmoid(sums - log), relevant) for log in (0.0, float(np.log(WEIGHT)))
        )
        by_verifier = load_verifier().calibration.apply(x[:, 0]) >= HALF
        verified = [(each[relevant].mean(), each[~relevant].mean()) for each in (sums >= 0, by_verifier)]
        print(
            f"{name}: AUC {ours:.3f}, logit alone {alone:.3f}; calibration error {weighted:.3f}, without the weight "
            f"{chance:.3f}; {relevant.mean():.3f} of the candidates are relevant; of these and the others, "
            f"{verified[0][0]:.3f} and {verified[0][1]:.4f} reach one half, {verified[1][0]:.3f} and "
            f"{verified[1][1]:.4f} by the verifier alone",
            flush=True,
        )


def read_sections(name: str, data: Path) -> tuple[list[Passage], Asked]:
    """Return sections of a training set as passages, and held-out headings as questions."""
    with gzip.open(data / "train" / f"{name}.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    choose = random.Random(SEED)
    held_out = [row for row in rows if part_of(name, str(row["group"])) != "train"]
    choose.shuffle(held_out)
    asked = held_out[:MOST]
    others = sorted({row["positive"] for row in rows} - {row["positive"] for row in asked})
    choose.shuffle(others)
    texts = list(dict.fromkeys([*(row["positive"] for row in asked), *others]))[:PASSAGES]
    ids = {text: f"{name}-{n}" for n, text in enumerate(texts)}
    relevant: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row["positive"] in ids:
            relevant[row["query"].casefold()].add(ids[row["positive"]])
    return (
        [Passage(id=i, text=text) for text, i in ids.items()],
        [(row["query"], relevant[row["query"].casefold()]) for row in asked],
    )


def sample_asked(asked: Asked, *, answered: bool) -> Asked:
    """Return a sample of the questions that have a passage, or of those that have none."""
    chosen = [(question, gold) for question, gold in asked if bool(gold) is answered]
    return random.Random(SEED).sample(chosen, min(2 * MOST, len(chosen)))


def list_candidates(
    name: str, passages: Iterable[Passage], asked: Asked, *, embedder: str, cache: Path
) -> tuple[FloatArray, np.ndarray]:
    """Return the inputs of all candidates, shape (n, 3), NaN where unknown, and which are relevant, shape (n,)."""
    cached = DiskCachedEmbedder(resolve_embedder(embedder), cache / CACHE)
    verifier = DiskCachedVerifier(load_verifier(), cache / SCORES)
    retriever = Retriever.from_passages(list(passages), embedder=cached, verifier=verifier)
    start = EvidenceModel(name="start", verifier=retriever.verifier.name, embedder=cached.name, fits=START)
    retriever.engine = replace(retriever.engine, evidence=start)
    x, relevant = [], []
    for question, gold in asked:
        trace = retriever.retrieve(question, exact=True, redundancy=1.0, mode="no_fallback").trace
        for candidate in trace.candidates:
            x.append([candidate.scores["logit"], candidate.scores["cosine"], candidate.scores.get("keywords", np.nan)])
            relevant.append(candidate.id in gold)
    print(f"{name}: {len(asked)} questions, {len(x):,} candidates, {sum(relevant)} relevant", flush=True)
    return np.array(x, dtype=np.float32), np.array(relevant)


def fit(sets: Sequence[tuple[FloatArray, np.ndarray]], embedder: str) -> EvidenceModel:
    """Fit one logistic regression for each set of inputs.

    Where the logit is all that is known, the verifier's own calibration counts.
    """
    x, relevant = np.concatenate([each for each, _ in sets]), np.concatenate([each for _, each in sets])
    weights = np.concatenate([np.where(each, WEIGHT, 1.0) / len(each) for _, each in sets])
    fits: dict[str, Mapping[str, float]] = {}
    for names in FITS if embedder == "minilm" else WORD_FITS[:1]:
        columns = x[:, [INPUTS.index(name) for name in names]]
        known = np.isfinite(columns).all(axis=1)
        scale = columns[known].std(axis=0)
        regression = LogisticRegression(C=100.0, max_iter=2000).fit(
            columns[known] / scale, relevant[known], sample_weight=weights[known] / weights[known].mean()
        )
        values = dict(zip(names, map(float, np.maximum(regression.coef_[0] / scale, 0.0)), strict=True))
        fits["+".join(names)] = {**values, INTERCEPT: float(regression.intercept_[0])}
    if embedder != "minilm":
        own = load_verifier().calibration.to_dict()
        fits["logit"] = {"logit": own["slope"], INTERCEPT: own["intercept"]}
    return EvidenceModel(
        name=NAMES[embedder],
        verifier="meve-verifier-1",
        embedder=resolve_embedder(embedder).name if embedder == "minilm" else None,
        fits=fits,
        fitted_on=f"candidates of held-out questions of {', '.join((*QUESTIONS, *SECTIONS, *WRITTEN))}",
    )


if __name__ == "__main__":
    main()
