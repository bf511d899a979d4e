"""Static embeddings over `model2vec`: the vector of a text is the mean of its tokens' vectors. No torch, no window.

Source: Tulkens and van Dongen, Model2Vec: Fast State-of-the-Art Static Embeddings (2024).
"""

import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from meve._fork_safety import GATE, ForkSafeLock
from meve._formulas import normalize
from meve.components._bert_words import tokenize_by_words
from meve.components._text_splitter import read_json
from meve.errors import ConfigurationError, ModelError, ModelNotFoundError, PassageError, QueryError, wrap_errors
from meve.types import FloatArray, Similarity

if TYPE_CHECKING:
    from model2vec import StaticModel

SHIPPED_EMBEDDER = "meve-static-1"
"""The name of the embedder that ships: all-MiniLM-L6-v2, distilled to one vector per token."""
EMBEDDER_FOLDER = Path(__file__).parent / SHIPPED_EMBEDDER
"""The folder of the embedder that ships: its vectors, tokenizer and model card."""
KIND = "model2vec"
"""The model type in such a model's config.json."""

_TOGETHER = 1_024


class StaticEmbedder:
    """Embeds a text as the mean of its tokens' vectors. Threads may share it, and take turns.

    Fast, without torch, for texts of any length. Word order is ignored: a sentence and its words shuffled have the same
    vector. A text without known tokens has a zero vector, and so similarity 0 to everything.

    `meve.ports.Embedder` describes the arguments and errors of the methods.

    Args:
        model: a loaded `model2vec.StaticModel`.
        name: the model's name; an index stores it and rebuilds the embedder from it.

    Raises:
        ConfigurationError: an empty name.
    """

    similarity: Similarity = "cosine"

    def __init__(self, model: "StaticModel", *, name: str) -> None:
        if not name.strip():
            raise ConfigurationError("name must not be empty: give the model's name or folder")
        self._model = model
        self.name = name
        self.dimension = int(model.dim)
        self._lock = ForkSafeLock()  # encoding changes the shared tokenizer's limits

    @classmethod
    def from_folder(cls, folder: str | Path, *, name: str | None = None) -> Self:
        """Load a model saved by model2vec.

        Args:
            folder: the model's folder.
            name: the embedder's name; None for the folder.

        Raises:
            ModelNotFoundError: the folder doesn't exist.
            ModelError: it holds no static model, or one that can't be read.
        """
        return cls(_load_model(Path(folder)), name=name or str(folder))

    @classmethod
    def load_shipped(cls) -> Self:
        """Load the embedder that ships with MeVe: English, 256 dimensions, no download.

        A process loads the model once; all embedders that this returns share it, and take turns.

        Raises:
            ModelError: its files are damaged.
        """
        model, lock = _load_shipped_model(EMBEDDER_FOLDER)
        embedder = cls(model, name=SHIPPED_EMBEDDER)
        embedder._lock = lock
        return embedder

    def embed_query(self, text: str) -> FloatArray:
        """Return the vector of a query, shape (d,), of length 1 or zero."""
        if not isinstance(text, str):
            raise QueryError(f"the query must be text, got {type(text).__name__}")
        vector: FloatArray = self._encode([text])[0]
        return vector

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return the vectors of passages, shape (n, d), rows of length 1 or zero, in the order given."""
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise PassageError("passages must be a list of texts: put a single text in a list")
        if not len(texts):
            return np.zeros((0, self.dimension), dtype=np.float32)
        return self._encode(list(texts))

    def _encode(self, texts: list[str]) -> FloatArray:
        with GATE.passing(), self._lock, wrap_errors(ModelError, f"embedding {len(texts)} texts with {self.name!r}"):
            vectors = self._model.encode(texts, normalize=False, max_length=None, batch_size=_TOGETHER,
                                      use_multiprocessing=False)  # fmt: skip
        return normalize(np.asarray(vectors, dtype=np.float32))


def _load_model(folder: Path) -> "StaticModel":
    if not folder.is_dir():
        raise ModelNotFoundError(f"no folder {folder}: give a folder saved by model2vec, or embedder='static'")
    with wrap_errors(ModelError, f"loading the static embedder {folder}"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "IProgress not found")  # in notebooks
        from model2vec import StaticModel

        model = StaticModel.from_pretrained(folder)
        tokenize_by_words(model)
        return model


@cache
def _load_shipped_model(folder: Path) -> tuple["StaticModel", ForkSafeLock]:
    return _load_model(folder), ForkSafeLock()


def is_static_model(folder: Path) -> bool:
    """Return whether a folder holds a model saved by model2vec."""
    return read_json(folder / "config.json").get("model_type") == KIND
