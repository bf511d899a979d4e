"""Fits the logits per token of the verifier that ships, and adds them to its graph.

    python -m recipes.sentences.fit --data DATA --mixture WORK --work CACHE --model FOLDER [--to FOLDER]

The model stays as it is. A logistic regression tells gold sentences from others by the mean of their tokens' hidden
states. The mean of such logits over a sentence is the logit of the mean, so the graph needs one weight per unit, and
a sentence of any extent can be rated. The last step is a Platt calibration on questions held out of training, which
also weighs the logit of the whole passage. Run it again for a new model; hidden states are kept in CACHE by model and
passages.
"""

import argparse
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import onnx
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from meve.components._onnx_session import open_session
from meve.components.verifiers._onnx_runtime import OnnxRuntime, find_onnx_file
from meve.components.verifiers._sentence_scores import are_within, read_spans
from meve.pipeline.phases.condense import find_spans
from meve.training.token_head import add_token_head, hidden_states, remove_token_head
from meve.types import FloatArray
from recipes.sentences.passages import LabelledPassage, passages

LAYERS = 3
"""The number of layers used, the last ones that compute all tokens."""
STRENGTH = 0.001
"""The inverse strength of the regularisation, on standardised hidden states."""
CHUNK = 250
"""Passages per file of the cache."""


def main() -> None:
    """Read the passages, fit, measure and write the graph."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--mixture", type=Path, required=True, help="the folder of recipes.verifier.mixture")
    parser.add_argument("--work", type=Path, required=True, help="a folder for hidden states")
    parser.add_argument("--model", type=Path, required=True, help="a folder that quantize_onnx wrote")
    parser.add_argument("--to", type=Path, help="the graph to write; default: the model's own")
    given = parser.parse_args()
    chosen = passages(given.data, given.mixture)
    reader = StateReader(given.model, given.work)
    states = np.concatenate([reader.read(chosen[at : at + CHUNK]) for at in range(0, len(chosen), CHUNK)])
    labels = np.array([label for each in chosen for label in each.labels])
    sets = np.array([f"{each.set} {each.part}" for each in chosen for _ in each.labels])
    weights, relevance, bias = fit(states, labels, sets)
    rated = states @ np.append(weights, np.float32(relevance)) + bias
    for name in sorted(set(sets)):
        own = sets == name
        auc = roc_auc_score(labels[own], rated[own])
        print(f"{name}: {own.sum():,} sentences, {labels[own].sum():,} gold, AUC {auc:.3f}")
    by_layer = dict(zip(reader.layers, np.split(weights, LAYERS), strict=True))
    graph = find_onnx_file(given.model)
    add_token_head(graph, given.to or graph, weights=by_layer, relevance=relevance, bias=bias)
    print("now run recipes.sentences.threshold")


def fit(inputs: FloatArray, labels: np.ndarray, sets: np.ndarray) -> tuple[FloatArray, float, float]:
    """Return the weights of the hidden states, that of the passage's logit, and the bias of calibrated logits."""
    training = np.char.endswith(sets, "train")
    states, logits = inputs[:, :-1], inputs[:, -1:]
    mean, scale = states[training].mean(axis=0), states[training].std(axis=0) + 1e-6
    model = LogisticRegression(C=STRENGTH, max_iter=1000).fit((states[training] - mean) / scale, labels[training])
    weights = model.coef_[0] / scale
    bias = float(model.intercept_[0] - weights @ mean)
    raw = np.column_stack([states @ weights + bias, logits])[~training]
    platt = LogisticRegression(C=1e6).fit(raw, labels[~training])
    slope, relevance, intercept = *map(float, platt.coef_[0]), float(platt.intercept_[0])
    print(f"Platt: slope {slope:.3f}, of the passage's logit {relevance:.3f}, intercept {intercept:.3f}")
    return np.asarray(weights * slope, dtype=np.float32), relevance, bias * slope + intercept


class StateReader:
    """Reads the hidden states of sentences, and caches them in files named by model and passages."""

    def __init__(self, folder: Path, work: Path) -> None:
        model = onnx.load(str(find_onnx_file(folder)))
        remove_token_head(model)
        self._digest = hashlib.sha256(model.SerializeToString(deterministic=True))
        names = hidden_states(model)
        self.layers = range(len(names) - LAYERS + 1, len(names) + 1)
        for layer in self.layers:
            model.graph.output.append(
                onnx.helper.make_tensor_value_info(names[layer - 1], onnx.TensorProto.FLOAT, None)
            )
        self._work = work
        work.mkdir(parents=True, exist_ok=True)
        onnx.save(model, str(work / "states.onnx"))
        self._session = open_session(work / "states.onnx")
        self._runtime = OnnxRuntime.from_folder(folder)

    def read(self, chosen: Sequence[LabelledPassage]) -> FloatArray:
        """Return the sentences' mean hidden states and the passages' logits, shape (s, LAYERS · units + 1).

        Hidden states beyond the window are 0.
        """
        digest = self._digest.copy()
        digest.update(json.dumps([asdict(each) for each in chosen]).encode())
        file = self._work / f"{digest.hexdigest()[:20]}.npy"
        if not file.is_file():
            np.save(file, np.concatenate([self._states(each) for each in chosen]))
            print(f"read {len(chosen)} passages", flush=True)
        stored: FloatArray = np.load(file)
        return stored

    def _states(self, each: LabelledPassage) -> FloatArray:
        pair = (each.query, each.passage.content)
        encoding = self._runtime.splitter.tokenizer.encode(*pair)
        rows, spans = read_spans(encoding)
        fitting = rows < self._runtime.window
        inputs = {name: array[:, : self._runtime.window] for name, array in self._runtime.build_inputs([pair]).items()}
        logits, *layers = self._session.run(None, inputs)
        tokens = np.concatenate([layer[0] for layer in layers], axis=1)[rows[fitting]]
        states = np.zeros((len(each.sentences), tokens.shape[1] + 1), dtype=np.float32)
        states[:, -1] = logits[0, 0]
        for n, (start, end) in enumerate(find_spans(each.passage, each.sentences)):
            within = are_within(spans[fitting], start, end)
            if within.any():
                states[n, :-1] = tokens[within].mean(axis=0)
        return states


if __name__ == "__main__":
    main()
