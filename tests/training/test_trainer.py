"""Test the training of cross-encoders."""

import json
import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from meve.calibration.thresholds import area_under_curve
from meve.components.verifiers import load_verifier
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.errors import ConfigurationError, ModelNotFoundError, TrainingError
from meve.testing.tiny_models import save_tiny_model
from meve.training import TrainingConfig, fine_tune
from meve.training._batch_order import order_batches
from meve.types import LabelledPair

pytest.importorskip("accelerate")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

WORDS = tuple(["apple", "river", "stone", "cloud", "tiger", "lemon", "wagon", "piano"])


def pairs(queries: int, seed: int = 0) -> list[LabelledPair]:
    """Return pairs; a passage is relevant if it holds the query's word."""
    rng = random.Random(seed)
    result = []
    for _ in range(queries):
        word, *others = rng.sample(WORDS, 4)
        result.append(LabelledPair(query=f"what is the {word}?", passage=f"the {word} is {others[0]}", relevant=True))
        result += [
            LabelledPair(query=f"what is the {word}?", passage=f"the {o} is the cat", relevant=False) for o in others
        ]
    return result


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("base") / "tiny", kind="encoder", words=WORDS)


QUICK = TrainingConfig(epochs=1, batch_size=8, learning_rate=3e-3, max_length=32, save_every=5)


def auc(folder, tested):
    verifier = CrossEncoderVerifier.from_name(str(folder), device="cpu")
    raw = [float(verifier.raw_scores(p.query, [p.passage])[0]) for p in tested]
    return area_under_curve(raw, [p.relevant for p in tested])


def weights(folder: Path) -> np.ndarray:
    from safetensors.numpy import load_file

    return np.concatenate([w.reshape(-1) for _, w in sorted(load_file(folder / "model.safetensors").items())])


def test_training_goes_on_from_the_verifier_that_ships(tmp_path):
    pytest.importorskip("onnx")
    folder = fine_tune("meve-verifier-1", pairs(2), tmp_path / "further", replace(QUICK, learning_rate=1e-6))
    further, shipped = CrossEncoderVerifier.from_name(str(folder), device="cpu"), load_verifier()
    asked = "How often should I water tomatoes?", ["Water tomatoes twice a week.", "The treaty was signed in 1648."]
    assert further.raw_scores(*asked) == pytest.approx(shipped.raw_scores(*asked), abs=0.3)


def test_training_learns_relevance(base, tmp_path):
    steps = []
    config = TrainingConfig(epochs=5, batch_size=16, learning_rate=1e-3, max_length=32, save_every=500)
    fine_tune(base, pairs(300), tmp_path / "model", config, lambda result, total: steps.append((result, total)))
    assert auc(tmp_path / "model", pairs(30, seed=1)) > 0.9
    assert steps[-1] == (375, 375)


def test_seed_determines_the_model(base, tmp_path):
    result = [fine_tune(base, pairs(16), tmp_path / str(n), QUICK) for n in range(2)]
    assert (weights(result[0]) == weights(result[1])).all()
    other = replace(QUICK, seed=7)
    assert (weights(fine_tune(base, pairs(16), tmp_path / "other", other)) != weights(result[0])).any()


def test_dropout_defaults_to_the_models_own(base, tmp_path):
    own = fine_tune(base, pairs(4), tmp_path / "own", QUICK)
    none = fine_tune(base, pairs(4), tmp_path / "none", replace(QUICK, dropout=0.0))
    names = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    said = {
        folder: [json.loads((folder / "config.json").read_text())[name] for name in names] for folder in (own, none)
    }
    assert said == {own: [0.1, 0.1], none: [0.0, 0.0]}
    assert (weights(own) != weights(none)).any()


CHILD = """
import sys, json
from pathlib import Path
from meve.training import TrainingConfig, fine_tune
from meve.types import LabelledPair
base, data, to = map(Path, sys.argv[1:])
pairs = [LabelledPair(**row) for row in json.loads(data.read_text())]
def told(done, total):
    print(done, flush=True)
    import time; time.sleep(0.05)
config = TrainingConfig(epochs=1, batch_size=8, learning_rate=3e-3, max_length=32, save_every=5)
fine_tune(base, pairs, to, config, told)
"""


def test_resumed_training_equals_uninterrupted_training(base, tmp_path):
    rows = pairs(32)
    (tmp_path / "pairs.json").write_text(
        json.dumps([{"query": p.query, "passage": p.passage, "relevant": p.relevant} for p in rows])
    )
    whole = fine_tune(base, rows, tmp_path / "whole", QUICK)
    folders = [str(base), str(tmp_path / "pairs.json"), str(tmp_path / "broken")]
    command = [sys.executable, "-W", "ignore", "-c", CHILD, *folders]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    for line in child.stdout:
        if int(line) == 8:
            child.send_signal(signal.SIGKILL)
            break
    child.wait()
    child.stdout.close()
    assert not (tmp_path / "broken" / "model.safetensors").exists()
    steps = []
    again = fine_tune(base, rows, tmp_path / "broken", QUICK, lambda process, total: steps.append(process))
    assert steps[0] in (6, 11), "it goes on after the last checkpoint"
    assert (weights(again) == weights(whole)).all()


def test_soft_targets_replace_the_labels(base, tmp_path):
    rows = pairs(60)
    trained = fine_tune(base, rows, tmp_path / "model", QUICK, targets=[0.8] * len(rows))
    verifier = CrossEncoderVerifier.from_name(str(trained), device="cpu")
    assert np.mean([verifier.score(p.query, [p.passage]) for p in rows]) == pytest.approx(0.8, abs=0.05)
    with pytest.raises(TrainingError, match="another data"):
        fine_tune(base, rows, tmp_path / "model", QUICK)
    for wrong in ([0.5], [1.5] * len(rows)):
        with pytest.raises(TrainingError, match=r"targets must be one number in \[0, 1\] for each of 240 pairs"):
            fine_tune(base, rows, tmp_path / "other", QUICK, targets=wrong)


def test_frozen_layers_and_embeddings_keep_their_weights(base, tmp_path):
    from safetensors.numpy import load_file

    trained = fine_tune(base, pairs(16), tmp_path / "model", replace(QUICK, frozen_layers=1))
    before, after = load_file(base / "model.safetensors"), load_file(trained / "model.safetensors")
    changed = {
        name: (values != before[name.removeprefix("bert.")]).any()
        for name, values in after.items()
        if name.removeprefix("bert.") in before and "pooler" not in name
    }
    kept = [name for name in changed if "embeddings" in name or "layer.0." in name]
    assert kept
    assert not any(changed[name] for name in kept)
    assert all(changed[name] for name in changed if name not in kept and name.endswith("dense.weight"))
    with pytest.raises(ConfigurationError, match="frozen_layers must be below the model's 2 layers, got 2"):
        fine_tune(base, pairs(16), tmp_path / "none", replace(QUICK, frozen_layers=2))


def test_another_training_in_same_folder_raises(base, tmp_path):
    fine_tune(base, pairs(4), tmp_path / "model", QUICK)
    with pytest.raises(TrainingError, match="another data, pairs"):
        fine_tune(base, pairs(5), tmp_path / "model", QUICK)
    with pytest.raises(TrainingError, match="another epochs"):
        fine_tune(base, pairs(4), tmp_path / "model", replace(QUICK, epochs=2))


def test_pairs_of_one_label_raise(base, tmp_path):
    with pytest.raises(TrainingError, match="one label"):
        fine_tune(base, [p for p in pairs(4) if p.relevant], tmp_path / "model")
    with pytest.raises(ModelNotFoundError):
        fine_tune(tmp_path / "nowhere", pairs(4), tmp_path / "model")
    assert not (tmp_path / "model").exists(), "a mistyped base leaves the folder to the next training"
    for wrong in ({"epochs": 0}, {"learning_rate": 0.0}, {"warmup": 1.0}, {"batch_size": True}, {"dropout": 1.0}):
        with pytest.raises(ConfigurationError):
            TrainingConfig(**wrong)


def test_every_row_comes_once_per_epoch_sorted_by_length():
    lengths = [random.Random(n).randrange(1000) for n in range(1003)]
    order = order_batches(lengths, batch_size=16, epochs=2, seed=3)
    assert sorted(order[:1003]) == sorted(order[1003:]) == list(range(1003))
    assert order[:1003] != order[1003:]
    spread = [np.ptp([lengths[i] for i in order[at : at + 16]]) for at in range(0, 992, 16)]
    assert np.median(spread) < 60, "of 1,000"
    assert order_batches(lengths, batch_size=16, epochs=2, seed=3) == order
