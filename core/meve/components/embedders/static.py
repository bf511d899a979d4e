"""Static embeddings: a vector for each token of a vocabulary, and a text is their mean. No torch, no window.

Over `model2vec`. Source: Tulkens and van Dongen, Model2Vec: Fast State-of-the-Art Static Embeddings (2024).
"""

import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from meve._formulas import normalize
from meve.components._text_splitter import read_json
from meve.errors import ConfigurationError, ModelError, ModelNotFoundError, PassageError, QueryError, wrap_errors
from meve.types import FloatArray, Similarity

if TYPE_CHECKING:
    from model2vec import StaticModel

SHIPPED = "meve-static-1"
"""The name of the embedder that ships: all-MiniLM-L6-v2, distilled to a vector for each token."""
KIND = "model2vec"
"""What the config.json of such a model calls it."""

_TOGETHER = 1_024


class StaticEmbedder:
    """Embeds by the mean of its tokens' vectors. Safe to share between threads, which take turns.

    Quick, without torch, and for texts of any length. It knows what words mean, and not how they stand to one
    another: a sentence and the same words shuffled have the same vector. Of a text without a token that the model
    knows, the vector is zero, and so is its similarity to everything.

    Args:
        model: a loaded `model2vec.StaticModel`.
        name: what it is called; an index remembers it, and rebuilds the embedder from it.

    Raises:
        ConfigurationError: an empty name.
    """

    similarity: Similarity = "cosine"

    def __init__(self, model: "StaticModel", *, name: str) -> None:
        if not name.strip():
            raise ConfigurationError("the embedder's name is empty: give the model's name or folder")
        self._model = model
        self._name = name
        self._turn = threading.Lock()  # encoding sets the tokenizer's limits, and back

    @classmethod
    def from_folder(cls, folder: str | Path, *, name: str | None = None) -> Self:
        """Load a model that model2vec saved.

        Args:
            folder: where it lies.
            name: what to call it; None for the folder.

        Raises:
            ModelNotFoundError: no such folder.
            ModelError: it holds no static model, or one that can't be read.
        """
        place = Path(folder)
        if not place.is_dir():
            raise ModelNotFoundError(f"no folder {place}: give one that model2vec saved, or embedder='static'")
        with wrap_errors(ModelError, f"loading the static embedder {place}"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "IProgress not found")  # in notebooks; nothing here draws a bar
            from model2vec import StaticModel

            model = StaticModel.from_pretrained(place)
        return cls(model, name=name or str(folder))

    @classmethod
    def shipped(cls) -> Self:
        """The one that comes with MeVe: English, 256 dimensions, no download.

        Raises:
            ModelError: its files are damaged.
        """
        return cls.from_folder(shipped_folder(), name=SHIPPED)

    @property
    def name(self) -> str:
        """What the model is called."""
        return self._name

    @property
    def dimension(self) -> int:
        """The length d of a vector."""
        return int(self._model.dim)

    def embed_query(self, text: str) -> FloatArray:
        """One query, as a vector of shape (d,), of length 1 or zero.

        Raises:
            QueryError: not text.
            ModelError: the model failed.
        """
        if not isinstance(text, str):
            raise QueryError(f"a query is {type(text).__name__}: give text")
        vector: FloatArray = self._encoded([text])[0]
        return vector

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Passages, as an array of shape (n, d), rows of length 1 or zero, in the order given.

        Raises:
            PassageError: something that isn't text.
            ModelError: the model failed.
        """
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise PassageError("passages to embed must be a list of texts: put a single one in a list")
        if not len(texts):
            return np.zeros((0, self.dimension), dtype=np.float32)
        return self._encoded(list(texts))

    def _encoded(self, texts: list[str]) -> FloatArray:
        with self._turn, wrap_errors(ModelError, f"embedding {len(texts)} texts with {self._name!r}"):
            made = self._model.encode(texts, normalize=False, max_length=None, batch_size=_TOGETHER,
                                      use_multiprocessing=False)  # fmt: skip
        return normalize(np.asarray(made, dtype=np.float32))


def is_static_model(folder: Path) -> bool:
    """Whether a folder holds a model that model2vec saved."""
    return read_json(folder / "config.json").get("model_type") == KIND


def shipped_folder() -> Path:
    """Where the embedder that ships lies: its vectors, tokenizer and model card."""
    return Path(__file__).parent / SHIPPED
