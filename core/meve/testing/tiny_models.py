"""Models small enough for a test: real architectures and tokenizers, random weights."""

import string
from importlib import import_module
from pathlib import Path
from typing import Any

LENGTH = 48
"""The models' window, in tokens."""
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def save_tiny_model(folder: Path, *, labels: int = 1, kind: str = "classifier", words: tuple[str, ...] = ()) -> Path:
    """Save a BERT of two layers with random weights, and a vocabulary of single letters and a few words.

    Args:
        folder: where to save it; must not exist yet.
        labels: the number of labels of a classifier.
        kind: `classifier` for a cross-encoder, `encoder`, or `mpnet` for an encoder of that kind.
        words: words for the vocabulary besides those of the contract suites.
    """
    import torch

    transformers: Any = import_module("transformers")

    letters = list(string.ascii_lowercase)
    known_words = ["what", "orbits", "the", "earth", "moon", "harbour", "cat", "bread", "is", ".", "?", ",", *words]
    special = ("<s>", "<pad>", "</s>", "[UNK]", "<mask>") if kind == "mpnet" else SPECIAL
    vocabulary = [*special, *letters, *(f"##{a}" for a in letters), *known_words]
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    load = transformers.MPNetTokenizerFast if kind == "mpnet" else transformers.BertTokenizerFast
    tokenizer = load(vocab=str(folder / "vocab.txt"), model_max_length=LENGTH)
    configure, make = {
        "classifier": (transformers.BertConfig, transformers.BertForSequenceClassification),
        "encoder": (transformers.BertConfig, transformers.BertModel),
        "mpnet": (transformers.MPNetConfig, transformers.MPNetModel),
    }[kind]
    config = configure(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64, num_labels=labels, initializer_range=0.5,
    )  # fmt: skip
    torch.manual_seed(0)
    make(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
