"""An embedder over any sentence-transformers model, by hub name or local folder."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from meve._extras import require_imports
from meve._formulas import normalize
from meve.components._long_texts import find_asked, join_query, split_query
from meve.components._model_errors import find_cached_folder, map_load_errors
from meve.components._text_splitter import TextSplitter
from meve.components._torch_device import check_torch_device, choose_batch_size, run_within_memory
from meve.errors import ConfigurationError, ModelError, PassageError, QueryError, wrap_errors
from meve.types import FloatArray, Similarity

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

CHOICES = 'give a folder that holds the model, or embedder="minilm", which needs no hub'

ON_CPU, ELSEWHERE = 8, 32
"""Default batch sizes, by device; on CUDA, the size depends on the free memory."""


class SentenceTransformerEmbedder:
    """Embeds queries and passages with a sentence-transformers model and its prompts. Thread-safe.

    A passage longer than the model's window is embedded in pieces; its vector is their mean, weighted by tokens, so
    nothing is truncated. Vectors have length 1, unless the model is made for the dot product.

    `meve.ports.Embedder` describes the arguments and errors of the methods.

    Args:
        model: a loaded model.
        name: the model's name; an index stores it and rebuilds the embedder from it.
        query_prompt: text to put before a query; None for the model's own prompt, "" for none.
        passage_prompt: text to put before a passage; likewise.
        batch_size: how many texts the model reads at once; None for 8 on a CPU, where larger batches are slower, as
            many as the free memory holds on CUDA (at most 256), and 32 elsewhere. A batch that exceeds the memory of
            the GPU is halved.

    Raises:
        ConfigurationError: a prompt fills the window, or the batch size is below 1.
        ModelError: the tokenizer can't report token positions, or the model compares vectors by a distance.
    """

    def __init__(
        self,
        model: "SentenceTransformer",
        *,
        name: str,
        query_prompt: str | None = None,
        passage_prompt: str | None = None,
        batch_size: int | None = None,
    ) -> None:
        if batch_size is None:
            default = ON_CPU if model.device.type == "cpu" else ELSEWHERE
            batch_size = choose_batch_size(_transformer_config(model), _window(model), model.device, default)
        if batch_size < 1:
            raise ConfigurationError(f"batch_size must be at least 1, got {batch_size}")
        self._model = model
        self.name = name
        given = {"query_prompt": query_prompt, "passage_prompt": passage_prompt}
        self.prompts = {side: prompt for side, prompt in given.items() if prompt is not None}
        """The prompts that were given, by argument; an index stores them beside the name."""
        self._batch_size = batch_size
        self._lock = threading.Lock()
        self.similarity = _similarity(model, name)
        """`dot` for a model made for it, else `cosine`, with vectors of length 1."""
        self._query_prompt = _prompt(model, query_prompt, ("query",))
        self._passage_prompt = _prompt(model, passage_prompt, ("document", "passage", "corpus"))
        new = hasattr(model, "get_embedding_dimension")  # newer sentence-transformers renamed it
        dimension = model.get_embedding_dimension() if new else model.get_sentence_embedding_dimension()
        if not dimension:
            raise ModelError(f"the model {name!r} doesn't state the length of its vectors: use another model")
        self.dimension = int(dimension)
        self.window = _window(model)
        """The number of tokens the model reads at once, special ones and prompt included; None for no limit."""
        self._splitter = TextSplitter.from_tokenizer(model.tokenizer)
        self._query_room = self._find_room("query_prompt", self._query_prompt)
        self._room = self._find_room("passage_prompt", self._passage_prompt)

    @classmethod
    def from_name(
        cls,
        name_or_path: str,
        *,
        device: str | None = None,
        query_prompt: str | None = None,
        passage_prompt: str | None = None,
        batch_size: int | None = None,
        local_files_only: bool = False,
    ) -> Self:
        """Load a model by its hub name or folder. A hub model is downloaded if it isn't cached.

        Args:
            name_or_path: such as `sentence-transformers/multi-qa-mpnet-base-dot-v1`, or a folder.
            device: `cpu`, `cuda`, …; None lets sentence-transformers choose.
            query_prompt: text to put before a query; None for the model's own prompt, "" for none.
            passage_prompt: text to put before a passage; likewise.
            batch_size: how many texts the model reads at once; None for the device's default.
            local_files_only: whether to never contact a hub, even for a hub name.

        Raises:
            MissingExtraError: sentence-transformers isn't installed.
            ConfigurationError: torch can't use `device`, a prompt fills the window, or the batch size is below 1.
            ModelNotFoundError: no such model on this machine or on the hub.
            ModelError: the model exists, but can't be loaded or used.
        """
        with require_imports(f"the embedder {name_or_path!r}", {"sentence_transformers": "models"}):
            from sentence_transformers import SentenceTransformer
        check_torch_device(device)
        with map_load_errors(name_or_path, CHOICES):
            place = find_cached_folder(name_or_path, "sentence-transformers/") if local_files_only else name_or_path
            model = SentenceTransformer(place, device=device, local_files_only=local_files_only)
        return cls(
            model, name=name_or_path, query_prompt=query_prompt, passage_prompt=passage_prompt, batch_size=batch_size
        )

    def embed_query(self, text: str) -> FloatArray:
        """Return the vector of a query, shape (d,); for one that exceeds the window, see `meve.ports.Embedder`."""
        room = self._query_room
        if room is None:
            if not isinstance(text, str):
                raise QueryError(f"the query must be text, got {type(text).__name__}")
            return np.asarray(self._encode_query([text])[0], dtype=np.float32)
        stretches = split_query(self._splitter, text, room, name=self.name)
        asked = find_asked(self._splitter, text, room)
        vectors = self._encode_query([part.text for part in [*stretches, *asked]])
        whole = self._join(vectors[: len(stretches)], [stretch.tokens for stretch in stretches], [0])[0]
        joined = join_query(whole, vectors[len(stretches) :])
        return normalize(joined) if asked and self.similarity == "cosine" else joined

    def _encode_query(self, parts: Sequence[str]) -> FloatArray:
        with self._lock, wrap_errors(ModelError, f"embedding a query with {self.name}"), _one_thread():
            encoded = self._model.encode_query(
                list(parts), prompt=self._query_prompt, batch_size=1, show_progress_bar=False, convert_to_numpy=True
            )
        return self._checked(encoded)

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return the vectors of passages, shape (n, d), in the order given; (0, d) for none."""
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise PassageError("passages must be a list of texts: put a single text in a list")
        if not len(texts):
            return np.zeros((0, self.dimension), dtype=np.float32)
        pieces, tokens, starts = (
            (list(texts), [], []) if self._room is None else self._splitter.split_all(texts, self._room)
        )
        with self._lock, wrap_errors(ModelError, f"embedding {len(texts)} passages with {self.name}"):
            encoded = run_within_memory(
                lambda size: self._model.encode_document(
                    pieces,
                    prompt=self._passage_prompt,
                    batch_size=size,
                    show_progress_bar=False,
                    convert_to_numpy=True,
                ),
                self._batch_size,
            )
        vectors = self._checked(encoded)
        return vectors if len(pieces) == len(texts) else self._join(vectors, tokens, starts)

    def _join(self, vectors: FloatArray, tokens: Sequence[int], starts: Sequence[int]) -> FloatArray:
        """Return the mean vectors of texts from those of their pieces, weighted by tokens."""
        if len(vectors) == len(starts):
            return vectors
        weight = np.maximum(tokens, 1).astype(np.float32)
        means = np.add.reduceat(vectors * weight[:, None], starts) / np.add.reduceat(weight, starts)[:, None]
        return normalize(means) if self.similarity == "cosine" else np.asarray(means, dtype=np.float32)

    def _find_room(self, option: str, prompt: str) -> int | None:
        """Return how many tokens fit beside a prompt; one is spared, since the prompt may merge with the text."""
        if self.window is None:
            return None
        taken = self._splitter.count_special()
        if prompt:
            taken += self._splitter.count(prompt) + 1
        if self.window - taken < 1:
            raise ConfigurationError(
                f"the {option.replace('_', ' ')} leaves no room: it and special tokens take {taken} of the "
                f"{self.window} tokens that {self.name} reads; give a shorter {option}"
            )
        return self.window - taken

    def _checked(self, encoded: object) -> FloatArray:
        vectors = np.asarray(encoded, dtype=np.float32)
        if vectors.ndim != 2 or vectors.shape[1] != self.dimension or not np.isfinite(vectors).all():
            raise ModelError(
                f"{self.name} returned vectors of shape {vectors.shape}, or with NaN or infinity; "
                f"expected finite vectors of length {self.dimension}: check the model's files and its device"
            )
        return normalize(vectors) if self.similarity == "cosine" else vectors


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let torch work on the calling thread alone, and restore its setting.

    For the few tokens of one query, other threads cost more than they save: 26 ms against 54 on two busy cores.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _similarity(model: "SentenceTransformer", name: str) -> Similarity:
    kind = str(getattr(model, "similarity_fn_name", None) or "cosine")
    if kind not in ("cosine", "dot"):
        raise ModelError(f"the model {name!r} compares vectors by {kind!r}: use one made for cosine or dot product")
    return "dot" if kind == "dot" else "cosine"


def _prompt(model: "SentenceTransformer", given: str | None, names: Sequence[str]) -> str:
    """Return the given prompt, else the model's prompt for this use, else its default prompt, else ""."""
    if given is not None:
        return given
    prompts = model.prompts or {}
    own = next((prompts[name] for name in names if prompts.get(name)), None)
    return str(own or prompts.get(model.default_prompt_name or "") or "")


def _transformer_config(model: "SentenceTransformer") -> dict[str, Any]:
    """Return the configuration of the model's transformer; empty for a model without one."""
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    return {} if config is None else dict(config.to_dict())


def _window(model: "SentenceTransformer") -> int | None:
    length = model.max_seq_length
    return int(length) if length is not None and 0 < length < 1_000_000 else None
