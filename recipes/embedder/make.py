"""Makes the embedder that ships: all-MiniLM-L6-v2 distilled to one vector per token, then tuned on pairs.

    pip install 'meve[offline]' 'model2vec[train]' 'skeletoken>=0.6,<0.7'
    python -m recipes.embedder.make --data DATA --work WORK --to FOLDER

WORK holds the `train.jsonl` and `dev.jsonl` of `recipes.verifier.mixture`. Their relevant pairs are used, and all other
queries of DATA/train that aren't held out, with their passages.
Distilling passes each token of the vocabulary through the model, reduces the outputs to their principal components, and
weights them by how rare a token is. Tuning moves a question's vector towards that of its passage, and away from those
of the other passages of the batch. Both are model2vec's own.
"""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from meve.components.embedders.minilm import NAME, check_weights, minilm_folder
from meve.components.embedders.static import KIND
from recipes.verifier import pairs
from recipes.verifier.examples import Example
from recipes.verifier.splits import SEED

DIMENSIONS = 256
EPOCHS, BATCH, RATE, TEMPERATURE = 3, 512, 1e-3, 0.05


def main() -> None:
    """Distil, tune and save the embedder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="0 distils only")
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--dimensions", type=int, default=DIMENSIONS)
    given = parser.parse_args()
    model = distil(given.dimensions)
    if given.epochs:
        more = (e for e in pairs.answering(given.data / "train") if e.part == "train")
        train = select_relevant([*Example.read(given.work / "train.jsonl"), *more])
        dev = select_relevant(Example.read(given.work / "dev.jsonl"))
        print(f"{len(train):,} pairs, {len(dev):,} to watch")
        model = tune(model, train, dev, given.epochs, given.rate, given.batch)
    save(model, given.to)


def distil(dimensions: int) -> Any:  # noqa: ANN401 - a model2vec.StaticModel
    """Return a model with one vector per token."""
    from model2vec.distill import distill_from_model
    from transformers import AutoModel, AutoTokenizer

    folder = minilm_folder()
    check_weights(folder / "model.safetensors")
    return distill_from_model(
        AutoModel.from_pretrained(folder),
        AutoTokenizer.from_pretrained(folder),
        pca_dims=dimensions,
        quantize_to="float32",
        device="cpu",
    )


def tune(model: Any, train: list[Example], dev: list[Example], epochs: int, rate: float, batch: int) -> Any:  # noqa: ANN401
    """Tune the vectors so that questions are close to their passages."""
    from model2vec.train import StaticModelForPairSimilarity

    trainer = StaticModelForPairSimilarity.from_static_model(model=model, n_layers=0)
    trainer.fit(
        [e.query for e in train],
        [e.passage for e in train],
        text_a_val=[e.query for e in dev],
        text_b_val=[e.passage for e in dev],
        learning_rate=rate,
        batch_size=batch,
        min_epochs=epochs,
        max_epochs=epochs,
        temperature=TEMPERATURE,
        random_seed=SEED,
        device="cpu",
    )
    return trainer.to_static_model()


def select_relevant(examples: Iterable[Example]) -> list[Example]:
    """Return the distinct relevant pairs, without second hops, whose queries hold a passage."""
    by_text = {(e.query, e.passage): e for e in examples if e.relevant and e.kind != "second hop"}
    return list(by_text.values())


def save(model: Any, folder: Path) -> None:  # noqa: ANN401
    """Save with eight bits per number, and without local paths."""
    from model2vec.model import quantize_model

    quantize_model(model, quantize_to="int8").save_pretrained(folder)
    for file in ("README.md", "modules.json"):  # the project has its own card, and only MeVe loads the model
        (folder / file).unlink(missing_ok=True)
    config = {
        "model_type": KIND,
        "architectures": ["StaticModel"],
        "base_model": NAME,
        "embedding_dtype": "int8",
        "hidden_dim": model.dim,
        "max_length": None,
        "normalize": True,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
