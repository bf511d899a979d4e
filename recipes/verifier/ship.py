"""Packages the trained verifier: a graph of 8-bit weights and its calibration.

    python -m recipes.verifier.ship --work WORK --model WORK/model --to FOLDER

The folder is written only if all checks pass. The graph must rank the passages of held-out questions as the original
model does (Kendall's tau, mean over questions). The calibration is fitted to the quantised graph's scores on
`dev.jsonl` and the pages, contrasts and whole documents held out. Everything that was fitted to its scores must be
fitted again afterwards, in this order: recipes.sentences.fit and recipes.sentences.threshold; then, for each of
`--embedder minilm` and `--embedder static`, recipes.evidence.fit, recipes.prior.fit and recipes.sufficiency.fit.
"""

import argparse
import json
import random
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau

from meve.calibration.fitting import fit_calibration, raw_scores
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.training.onnx_quantize import LEAST_AGREEMENT, quantize_onnx
from meve.training.verifier_comparison import rows_by_query
from meve.types import LabelledPair
from recipes.verifier import contrasts, conversations, pages, whole_documents
from recipes.verifier.examples import Example, pair_of
from recipes.verifier.splits import SEED

PROBED = 100
"""The number of questions whose passages both models rank."""
SAMPLED = 200
"""The number of training pairs on which activations are measured."""
SHIPPED = ("onnx/model.onnx", "config.json", "tokenizer.json", "tokenizer_config.json", "calibration.json")
WINDOW = 384
"""The window in tokens; trained on 160, the model overlooks answers at the end of 512."""
MOST = 25_000_000


def main() -> None:
    """Quantise, compare with the original model, and calibrate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True)
    given = parser.parse_args()
    written = (each.examples(SEED) for each in (pages, contrasts, whole_documents, conversations))
    held_out = [e for made in written for e in made if e.part == "dev"]
    dev = [pair_of(e) for e in (*Example.read(given.work / "dev.jsonl"), *held_out)]
    rng = random.Random(SEED)
    samples = rng.sample([pair_of(e) for e in Example.read(given.work / "train.jsonl")], SAMPLED)
    with tempfile.TemporaryDirectory(prefix="meve-ship-") as name:
        folder = Path(name)
        quantize_onnx(given.model, folder, samples=[(pair.query, pair.passage) for pair in samples])
        remove_local_path(folder / "config.json")
        (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": WINDOW}) + "\n", "utf-8")
        small = CrossEncoderVerifier.from_name(folder, backend="onnx", batch_size=1)
        whole = CrossEncoderVerifier.from_name(given.model, device="cpu", max_length=WINDOW)
        check_model(folder, agreement(whole, small, dev))
        write_calibration(folder, small, dev)
        for file in SHIPPED:
            (given.to / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / file, given.to / file)
    print("now fit sentences, evidence, prior and sufficiency again, as the docstring of this recipe says")


def check_model(folder: Path, tau: float) -> None:
    """Exit unless the graph ranks as the original model does, and is small enough."""
    size = sum((folder / file).stat().st_size for file in SHIPPED if (folder / file).is_file())
    print(f"Kendall's tau with the whole model: {tau:.3f}; {size / 1e6:.1f} MB")
    if not tau >= LEAST_AGREEMENT or size > MOST:
        raise SystemExit(
            f"not fit to ship: tau must be at least {LEAST_AGREEMENT}, and size at most {MOST / 1e6:.0f} MB"
        )


def write_calibration(folder: Path, small: CrossEncoderVerifier, dev: Sequence[LabelledPair]) -> None:
    """Fit the calibration to the graph's scores and write it."""
    raw = raw_scores(small, dev)
    relevant = [pair.relevant for pair in dev]
    fitted = "pairs of the training sets' own, of pages and questions kept out of training (recipes/verifier)"
    calibration = fit_calibration(raw, relevant, fitted_on=fitted, seed=SEED)
    text = json.dumps({"calibration": calibration.to_dict()}, indent=2) + "\n"
    (folder / "calibration.json").write_text(text, "utf-8")
    print(text)


def agreement(whole: CrossEncoderVerifier, small: CrossEncoderVerifier, pairs: Sequence[LabelledPair]) -> float:
    """Return Kendall's tau between both rankings, the mean over questions with five or more passages."""
    rows = [r for r in rows_by_query(pairs) if len(r) >= 5][:PROBED]
    taus = []
    for group in rows:
        passages = [pairs[n].passage for n in group]
        scores = [verifier.raw_scores(pairs[group[0]].query, passages) for verifier in (whole, small)]
        taus.append(kendalltau(*scores).statistic)
    return float(np.mean(taus))


def remove_local_path(file: Path) -> None:
    """Remove the local path from the configuration."""
    config = json.loads(file.read_text("utf-8"))
    config.pop("_name_or_path", None)
    file.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()
