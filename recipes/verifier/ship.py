"""Makes of the trained verifier what ships: a graph of 8-bit weights, its calibration, and nothing else.

    python -m recipes.verifier.ship --work WORK --model WORK/model --to FOLDER

Nothing is put in the folder unless all of it is fit. The graph must order the passages of questions kept out of
training as the whole model does (Kendall's tau, mean over questions). The calibration is fitted on `dev.jsonl`, by the
small graph's own scores. What was fitted to the model before, the estimate of sufficiency and the prior, must be fitted
anew: recipes.sufficiency.fit, recipes.prior.fit.
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
from meve.training.verdict import rows_by_query
from meve.types import LabelledPair
from recipes.verifier.examples import Example, pair_of
from recipes.verifier.splits import SEED

PROBED = 100
"""Questions whose passages both graphs order."""
SAMPLED = 200
"""Pairs of the training that show how large activations get."""
SHIPPED = ("onnx/model.onnx", "config.json", "tokenizer.json", "tokenizer_config.json", "calibration.json")
WINDOW = 384
"""Tokens that it reads at once: trained on 160, it overlooks what stands at the end of 512."""
MOST = 25_000_000


def main() -> None:
    """Quantise, hold against the whole model, calibrate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True)
    given = parser.parse_args()
    dev = [pair_of(e) for e in Example.read(given.work / "dev.jsonl")]
    rng = random.Random(SEED)
    samples = rng.sample([pair_of(e) for e in Example.read(given.work / "train.jsonl")], SAMPLED)
    with tempfile.TemporaryDirectory(prefix="meve-ship-") as name:
        made = Path(name)
        quantize_onnx(given.model, made, samples=[(pair.query, pair.passage) for pair in samples])
        anonymous(made / "config.json")
        (made / "tokenizer_config.json").write_text(json.dumps({"model_max_length": WINDOW}) + "\n", "utf-8")
        small = CrossEncoderVerifier.from_name(made, backend="onnx", batch_size=1)
        whole = CrossEncoderVerifier.from_name(given.model, device="cpu", max_length=WINDOW)
        check(made, agreement(whole, small, dev))
        calibrated(made, small, dev)
        for file in SHIPPED:
            (given.to / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(made / file, given.to / file)
    print("now fit anew what was fitted to the model before: recipes.sufficiency.fit, recipes.prior.fit")


def check(made: Path, tau: float) -> None:
    """Stop unless it orders as the whole model does, and is small enough."""
    size = sum((made / file).stat().st_size for file in SHIPPED if (made / file).is_file())
    print(f"Kendall's tau with the whole model: {tau:.3f}; {size / 1e6:.1f} MB")
    if not tau >= LEAST_AGREEMENT or size > MOST:
        raise SystemExit(f"not fit to ship: at least {LEAST_AGREEMENT}, and at most {MOST / 1e6:.0f} MB")


def calibrated(made: Path, small: CrossEncoderVerifier, dev: Sequence[LabelledPair]) -> None:
    """Fit its calibration, by its own scores."""
    raw = raw_scores(small, dev)
    relevant = [pair.relevant for pair in dev]
    fitted = "pairs of the training sets' own, of pages and questions kept out of training (recipes/verifier)"
    calibration = fit_calibration(raw, relevant, fitted_on=fitted, seed=SEED)
    text = json.dumps({"calibration": calibration.to_dict()}, indent=2) + "\n"
    (made / "calibration.json").write_text(text, "utf-8")
    print(text)


def agreement(whole: CrossEncoderVerifier, small: CrossEncoderVerifier, pairs: Sequence[LabelledPair]) -> float:
    """Kendall's tau between the two orders of a question's passages, the mean over questions with five or more."""
    rows = [r for r in rows_by_query(pairs) if len(r) >= 5][:PROBED]
    taus = []
    for mine in rows:
        passages = [pairs[n].passage for n in mine]
        scores = [verifier.raw_scores(pairs[mine[0]].query, passages) for verifier in (whole, small)]
        taus.append(kendalltau(*scores).statistic)
    return float(np.mean(taus))


def anonymous(file: Path) -> None:
    """The configuration without the folder that it was made in."""
    config = json.loads(file.read_text("utf-8"))
    config.pop("_name_or_path", None)
    file.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()
