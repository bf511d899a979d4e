"""Trains the model that tells whether a newer statement ends what an older one tells, and packages it.

    python -m recipes.updates.train --data DATA --base MODEL --work WORK --to FOLDER
    python -m recipes.updates.train --further second --base MODEL --work WORK --to FOLDER
    python -m recipes.updates.train --further third --base MODEL --work WORK --to FOLDER
    python -m recipes.updates.train --further fourth --base MODEL --work WORK --to FOLDER

MODEL is the weights for torch (`meve.training.onnx_dequantize`) of the shipped verifier, or with `--further` those that
the training before left in WORK (the fourth had those of the shipped graph); the third one and the fourth take a minute
of one core each. WORK keeps the training, which is
resumed if interrupted. FOLDER gets a graph of 8-bit weights and a Platt calibration on a tenth of the records, which
are held out of training; their measures are printed. `onnx/model.onnx` and `calibration.json` are what ships.
"""

import argparse
import json
import random
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from meve.calibration.fitting import fit_calibration, raw_scores
from meve.components.embedders import resolve_embedder
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.training import TrainingConfig, fine_tune
from meve.training.onnx_quantize import quantize_onnx
from meve.types import LabelledPair
from recipes.updates.attributes import make_attribute_pairs
from recipes.updates.pairs import (
    Record,
    is_held_out,
    make_dialogue_pairs,
    make_pairs,
    make_random_pairs,
    make_talk_pairs,
    make_unrelated_pairs,
    read_records,
)
from recipes.verifier.ship import SHIPPED, remove_local_path

SEED = 3
CONFIG = TrainingConfig(
    epochs=2, batch_size=32, learning_rate=8e-5, warmup=0.05, max_length=192, dropout=0.05, frozen_layers=1, bf16=True
)
WINDOW = 192
CALIBRATED = 1_500
"""The number of pairs held out of training on which the calibration is fitted."""
ATTRIBUTES = 6_000
"""The number of pairs of plain statements about attributes, before pairs of equal statements are left out."""
DIALOGUES = 4_000
"""The number of pairs of statements of one dialogue."""
FURTHER = TrainingConfig(
    epochs=1, batch_size=32, learning_rate=7e-5, warmup=0.08, max_length=96, dropout=0.05, frozen_layers=3
)
"""The settings of the second and the third training."""
READ = ("details", "life", "second", "things", "work")
"""The files of records that the first training reads."""
NEWER = ("settings", "remarks", "reworded")
"""The files of records of settings, misleading remarks and reworded changes."""
MIXES = {
    "second": {"newer": 2_400, "ordinary": 2_000, "read": 3_400, "talk": 3_600, "random": 400},
    "third": {
        "everyday": 1_000, "newer": 50, "ordinary": 100, "read": 200, "attributes": 1_500, "talk": 300, "random": 50,
    },
    "fourth": {
        "chat": 2_000, "everyday": 600, "newer": 300, "ordinary": 300, "read": 700, "attributes": 900, "talk": 500,
        "random": 100,
    },
}  # fmt: skip
"""The numbers of pairs of each kind that the second and the third training read.

The second one was run before the records of everyday life and the last 30 rows of talk were written.
"""
SAMPLED = 200
"""The number of pairs of records on which activations are measured, and rankings compared.

Small talk would tell nothing there: the model gives nearly the same score to all of it.
"""


def main() -> None:
    """Train, quantise, calibrate and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--further", choices=MIXES)
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True)
    given = parser.parse_args()
    if given.data is None and not given.further:
        parser.error("the first training needs --data")
    rng = random.Random(SEED)
    pairs = mix_pairs(MIXES[given.further], rng) if given.further else gather_pairs(given.data, rng)
    print(f"{len(pairs):,} pairs, {sum(p.relevant for p in pairs):,} of them end the older one")
    started = time.monotonic()

    def report(done: int, steps: int) -> None:
        if done % 50 == 0:
            print(f"step {done:,} of {steps:,} after {time.monotonic() - started:.0f} s", flush=True)

    trained = fine_tune(given.base, pairs, given.work, FURTHER if given.further else CONFIG, report)
    held_out = list(make_pairs([record for record in read_records() if is_held_out(record)]))
    rng = random.Random(SEED)
    samples = rng.sample(list(make_pairs(read_known())), SAMPLED)
    package(trained, samples, rng.sample(held_out, CALIBRATED), given.to)


def gather_pairs(data: Path, rng: random.Random) -> list[LabelledPair]:
    """Return the pairs of the first training."""
    known = read_known(READ)
    embedder = resolve_embedder("minilm")
    others = list(make_unrelated_pairs(known, embedder, rng))
    others += make_dialogue_pairs(data / "train" / "persona_chat_synthetic.jsonl.gz", embedder, DIALOGUES, rng)
    return [*make_pairs(known), *others, *make_attribute_pairs(ATTRIBUTES, rng)]


def mix_pairs(mix: Mapping[str, int], rng: random.Random) -> list[LabelledPair]:
    """Return the pairs of a further training: so many of each kind."""
    known = read_known()
    kinds = {
        "chat": list(make_pairs(read_known(("chat",)))),
        "everyday": list(make_pairs(read_known(("everyday",)))),
        "newer": list(make_pairs(read_known(NEWER))),
        "ordinary": list(make_pairs(read_known(("ordinary",)))),
        "read": list(make_pairs(read_known(READ))),
        "attributes": list(make_attribute_pairs(ATTRIBUTES, rng)),
        "talk": list(make_talk_pairs(known, rng)),
        "random": list(make_random_pairs(known, mix["random"], rng)),
    }
    return [pair for kind, count in mix.items() for pair in rng.sample(kinds[kind], min(count, len(kinds[kind])))]


def read_known(names: Sequence[str] = ()) -> list[Record]:
    """Return the records of these files, or of all, that aren't held out of training."""
    return [record for record in read_records(names) if not is_held_out(record)]


def package(model: Path, samples: Sequence[LabelledPair], held_out: Sequence[LabelledPair], to: Path) -> None:
    """Quantise, calibrate and measure a trained model."""
    with tempfile.TemporaryDirectory(prefix="meve-updates-") as name:
        folder = Path(name)
        tau = quantize_onnx(model, folder, samples=[(pair.query, pair.passage) for pair in samples])
        remove_local_path(folder / "config.json")
        (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": WINDOW}) + "\n", "utf-8")
        small = CrossEncoderVerifier.from_name(str(folder), backend="onnx", batch_size=1)
        raw, labels = raw_scores(small, held_out), [pair.relevant for pair in held_out]
        fitted = "statements written for the project and held out of training (recipes/updates)"
        calibration = fit_calibration(raw, labels, fitted_on=fitted, seed=SEED)
        (folder / "calibration.json").write_text(
            json.dumps({"calibration": calibration.to_dict()}, indent=2) + "\n", "utf-8"
        )
        for file in SHIPPED:
            (to / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / file, to / file)
    probabilities, ended = calibration.apply(raw), np.array(labels)
    print(f"tau {tau:.3f}; held out: {len(ended):,} pairs, AUC {roc_auc_score(ended, raw):.3f}")
    for least in (0.5, 0.7, 0.8, 0.9, 0.95):
        found = probabilities >= least
        print(f"  at {least}: {found[ended].mean():.3f} of those that end, {found[~ended].mean():.4f} of the others")


if __name__ == "__main__":
    main()
