"""Compare the prior with a head on an early layer of the verifier: how many candidates each would leave unread.

    python -m benchmarks.early_exit --data DATA --cache FOLDER --weights FOLDER [--layer 2]

FOLDER of `--weights` holds the verifier as torch weights (`meve.training.onnx_dequantize`), that of `--cache` the
embeddings. Both are linear models of the log-odds of the verdict, fitted on three of four sets and measured on the
fourth. The prior reads cosines and words; the head also reads the hidden states of its layer, of candidates that the
prior leaves. Each bound loses a share of the verified candidates of the three sets: 1 % for the prior alone, and
half of that for prior and head each. Prints the share of candidates that is settled unread, the share of verified ones
that is lost, and the layers computed per candidate, as a share of those of the whole verifier.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from benchmarks.equal_tokens import with_indexes
from meve._formulas import log_odds
from meve.components.embedders import resolve_embedder
from meve.components.tokenizers import resolve_tokens
from meve.components.verifiers import load_verifier
from meve.evaluation._model_caches import DiskCachedEmbedder, SharedVerifier
from meve.evaluation._set_runner import sample_questions
from meve.evaluation.datasets import read_set
from meve.evaluation.experiments._experiment import CACHE, SEED
from meve.evaluation.types import SharedComponents
from meve.types import FloatArray
from recipes.prior.fit import Watcher

QUESTIONS = {"2wiki": 100, "hotpotqa": 100, "musique": 50, "nq_open": 60}
LOST = 0.01
LAYERS = 6
WINDOW = 320
BATCH = 32


def read_candidates(data: Path, cache: Path) -> tuple[list[tuple[str, str]], FloatArray, FloatArray, list[str]]:
    """Return of all candidates question and text, the prior's inputs (n, 4), probabilities (n,), and sets."""
    components = SharedComponents(
        embedder=DiskCachedEmbedder(resolve_embedder("minilm"), cache / CACHE),
        verifier=SharedVerifier(load_verifier()),
        tokens=resolve_tokens(None),
    )
    watcher = Watcher()
    pairs, inputs, probabilities, sets = [], [], [], []
    for name, count in QUESTIONS.items():
        dataset = read_set(name, data)
        contents = {p.id: p.content for p in dataset.passages}
        questions = list(sample_questions(dataset.questions, count, SEED))
        for indexed, question in with_indexes(dataset, questions, components):
            retriever = indexed.retriever
            retriever.engine = replace(retriever.engine, prior=watcher)
            trace = retriever.retrieve(question.text, redundancy=1.0, mode="no_fallback").trace
            for candidate in trace.candidates:
                inputs.append(watcher.seen[candidate.id])
                pairs.append((question.text, contents[candidate.id]))
                probabilities.append(candidate.scores["verifier"])
                sets.append(name)
    return pairs, np.array(inputs), np.array(probabilities), sets


@torch.inference_mode()
def read_hidden(folder: Path, layer: int, pairs: list[tuple[str, str]]) -> FloatArray:
    """Return features of the hidden states after a layer: of the first token, means, and the best matches."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    encoder = AutoModelForSequenceClassification.from_pretrained(folder).eval().bert
    encoder.encoder.layer = encoder.encoder.layer[:layer]
    order = np.argsort([len(text) for _, text in pairs])
    features: dict[int, Any] = {}
    for start in range(0, len(order), BATCH):
        rows = order[start : start + BATCH].tolist()
        encoded = tokenizer(
            *zip(*(pairs[n] for n in rows), strict=True),
            truncation="only_second", max_length=WINDOW, padding=True, return_tensors="pt",
        )  # fmt: skip
        hidden = encoder(**encoded).last_hidden_state
        passage = (encoded["attention_mask"] * encoded["token_type_ids"]).unsqueeze(-1).float()
        query = encoded["attention_mask"].unsqueeze(-1) - passage
        means = [(hidden * mask).sum(1) / mask.sum(1) for mask in (query, passage)]
        unit = torch.nn.functional.normalize(hidden, dim=-1)
        likeness = (unit @ unit.transpose(1, 2)).masked_fill(passage.transpose(1, 2) == 0, -1).max(2).values
        match = (likeness * query[..., 0]).sum(1) / query[..., 0].sum(1)
        together = torch.cat([hidden[:, 0], *means, means[0] * means[1], match[:, None]], 1)
        features |= dict(zip(rows, together.numpy(), strict=True))
    return np.stack([features[n] for n in range(len(pairs))])


def settle(inputs: FloatArray, targets: FloatArray, fitted: FloatArray, lost: float, alpha: float) -> FloatArray:
    """Return which candidates a model leaves unread; the bound is chosen on halves that it was not fitted to."""
    verified = targets >= 0
    held_out = np.zeros(len(targets))
    half = (np.cumsum(fitted) * 2 > fitted.sum()) & fitted
    for one, other in ((half, fitted & ~half), (fitted & ~half, half)):
        held_out[other] = fit(inputs[one], targets[one], alpha).predict(inputs[other])
    bound = np.quantile(held_out[fitted & verified], lost)
    return np.asarray(fit(inputs[fitted], targets[fitted], alpha).predict(inputs) < bound)


def fit(inputs: FloatArray, targets: FloatArray, alpha: float) -> Any:
    """Return a linear model of standardised inputs."""
    return make_pipeline(StandardScaler(), Ridge(alpha=alpha)).fit(inputs, targets)


def main() -> None:
    """Print a line for each set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--layer", type=int, default=2)
    given = parser.parse_args()
    pairs, inputs, probabilities, sets = read_candidates(given.data, given.cache)
    targets = log_odds(np.clip(probabilities, 1e-5, 1 - 1e-5))
    both = np.hstack([read_hidden(given.weights, given.layer, pairs), inputs])
    verified = targets >= 0
    for name in QUESTIONS:
        own = np.array(sets) == name
        alone = settle(inputs, targets, ~own, LOST, 1)
        first = settle(inputs, targets, ~own, LOST / 2, 1)
        then = first | settle(both, targets, ~own, LOST / 2, 3_000)
        share = given.layer / LAYERS
        layers = (~first[own]).mean() * share + (~then[own]).mean() * (1 - share)
        lost = [(each & verified)[own].sum() / verified[own].sum() for each in (alone, then)]
        print(f"{name}: the prior settles {alone[own].mean():.2f} and loses {lost[0]:.3f}; with layer {given.layer} "
              f"{then[own].mean():.2f} and {lost[1]:.3f}; layers computed {(~alone[own]).mean():.2f} and "
              f"{layers:.2f}, {layers / (~alone[own]).mean():.2f} of them", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
