"""An embedder over a BERT-like graph on ONNX Runtime, without torch: the mean of the vectors of the tokens."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from meve._fork_safety import GATE
from meve._formulas import normalize
from meve.components._long_texts import find_asked, join_query, split_query
from meve.components._onnx_session import CorePool, cuda_number, list_inputs, open_session
from meve.components._text_splitter import TextSplitter, read_json, read_window
from meve.errors import ModelError, ModelNotFoundError, PassageError, wrap_errors
from meve.types import FloatArray, RowArray, Similarity

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

SHIPPED_MINILM = "meve-minilm-1"
"""The name of the embedder that ships: all-MiniLM-L6-v2 with 8-bit weights."""
MINILM_NAMES = (SHIPPED_MINILM, "all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2")
"""That embedder's name and those of the published weights. Models fitted to the vectors of one hold for all."""
MINILM_FOLDER = Path(__file__).parent / SHIPPED_MINILM
"""The folder of that embedder: graph, tokenizer, configuration and model card."""


class OnnxEmbedder:
    """Embeds a text as the mean of its tokens' output vectors. Threads may share it and run in parallel.

    Each text is read on its own, one core each. A text longer than the model's window is embedded in pieces; its vector
    is their mean, weighted by tokens, so nothing is truncated. Vectors have length 1.

    Args:
        session: a loaded graph with inputs among input_ids, attention_mask and token_type_ids, and one output of shape
            (1, tokens, d).
        splitter: the model's tokenizer.
        window: the number of tokens that the model reads at once, special ones included.
        name: the model's name; an index stores it and rebuilds the embedder from it.
        threads: how many texts are read at once; None for all cores.

    Raises:
        ModelError: the graph has other inputs, or its output doesn't state the length of its vectors.
        ConfigurationError: `threads` is below 1.
    """

    similarity: Similarity = "cosine"

    def __init__(
        self,
        session: "InferenceSession",
        *,
        splitter: TextSplitter,
        window: int,
        name: str,
        threads: int | None = None,
    ) -> None:
        self._session = session
        self._inputs = list_inputs(session, name)
        self._splitter = splitter
        self.name = name
        self.window = window
        self._pool = CorePool(threads, "meve-embedder")
        size = session.get_outputs()[0].shape[-1]
        if not isinstance(size, int):
            raise ModelError(f"the graph of {name} doesn't state the length of its vectors: export it again")
        self.dimension = size

    @classmethod
    def from_folder(
        cls, folder: str | Path, *, name: str | None = None, threads: int | None = None, device: str | None = None
    ) -> Self:
        """Load onnx/model.onnx, with the config.json, tokenizer.json and tokenizer_config.json beside it.

        Args:
            folder: the model's folder.
            name: the embedder's name; None for the folder.
            threads: how many texts are read at once, each on one core; None for all cores, or for 1 on a GPU.
            device: None or `cpu` for the processor; `cuda` or `cuda:N` for a GPU, for graphs without 8-bit weights.

        Raises:
            ModelNotFoundError: the folder, the graph or the tokenizer is missing.
            ModelError: a file can't be read.
            ConfigurationError: `threads` is below 1, or ONNX Runtime can't use `device`.
        """
        place = Path(folder)
        session, splitter, window = _load_parts(place, device)
        return cls(
            session,
            splitter=splitter,
            window=window,
            name=name or str(folder),
            threads=1 if threads is None and cuda_number(device) is not None else threads,
        )

    @classmethod
    def load_shipped(cls, *, threads: int | None = None) -> Self:
        """Load the embedder that ships with MeVe: English, 384 dimensions, no download.

        A process loads the model once; all embedders that this returns share it.

        Raises:
            ModelError: its files are damaged.
            ConfigurationError: `threads` is below 1.
        """
        session, splitter, window = _load_shipped_parts(MINILM_FOLDER)
        return cls(session, splitter=splitter, window=window, name=SHIPPED_MINILM, threads=threads)

    def fits_window(self, text: str) -> bool:
        """Return whether the model reads a text at once; a longer one is embedded in pieces."""
        return self._splitter.count(text) <= self.window - self._splitter.count_special()

    def embed_query(self, text: str) -> FloatArray:
        """Return the vector of a query, shape (d,); for one that exceeds the window, see `meve.ports.Embedder`.

        Raises:
            QueryError: the query isn't text, or has more than 4,096 tokens; it is never truncated.
            ModelError: the model failed.
        """
        room = self.window - self._splitter.count_special()
        stretches = split_query(self._splitter, text, room, name=self.name)
        asked = [part.text for part in find_asked(self._splitter, text, room)]
        if len(stretches) > 1 or asked:
            vectors = self.embed_passages([text, *asked])
            return normalize(join_query(vectors[0], vectors[1:]))
        with wrap_errors(ModelError, f"embedding a query with {self.name}"):
            return self._embed(text)

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return the vectors of passages, shape (n, d), in the order given; (0, d) for none.

        Raises:
            PassageError: an entry isn't text.
            ModelError: the model failed.
        """
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise PassageError("passages must be a list of texts: put a single text in a list")
        if not len(texts):
            return np.zeros((0, self.dimension), dtype=np.float32)
        with wrap_errors(ModelError, f"embedding {len(texts)} passages with {self.name}"):
            pieces, tokens, starts = self._splitter.split_all(texts, self.window - self._splitter.count_special())
            vectors = np.stack(self._pool.map(self._embed, pieces)) * np.maximum(tokens, 1)[:, None]
        return normalize(np.add.reduceat(vectors, starts))

    def build_inputs(self, text: str) -> dict[str, RowArray]:
        """Return the graph's inputs for a text that fits the window, each of shape (1, tokens)."""
        ids = np.array([self._splitter.tokenizer.encode(text).ids], dtype=np.int64)
        arrays = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        return {name: arrays[name] for name in self._inputs}

    def _embed(self, text: str) -> FloatArray:
        """Return the vector of a text that fits the window, shape (d,)."""
        inputs = self.build_inputs(text)
        with GATE.passing():
            tokens = np.asarray(self._session.run(None, inputs)[0], dtype=np.float32)
        if not np.isfinite(tokens).all():
            raise ModelError(f"{self.name} returned NaN or infinity: check the model's files")
        return normalize(tokens[0].mean(axis=0))


def _load_parts(folder: Path, device: str | None = None) -> tuple["InferenceSession", TextSplitter, int]:
    """Load the session, the splitter and the window of a model."""
    graph = folder / "onnx" / "model.onnx"
    if not graph.is_file():
        raise ModelNotFoundError(f"no file {graph}: give the folder of an embedder that was exported to ONNX")
    return open_session(graph, device), TextSplitter.from_folder(folder), read_window(folder)


_load_shipped_parts = cache(_load_parts)


def is_onnx_embedder(folder: Path) -> bool:
    """Return whether a folder holds an embedder that was exported to ONNX."""
    return (folder / "onnx" / "model.onnx").is_file() and read_json(folder / "config.json").get("pooling") == "mean"
