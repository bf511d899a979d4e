"""Runs a cross-encoder on ONNX Runtime, without torch or transformers.

sentence-transformers would use optimum-onnx, which can't be installed beside transformers 5.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from meve._fork_safety import GATE
from meve.components._model_errors import map_load_errors
from meve.components._onnx_session import CorePool, cuda_number, list_inputs, open_session
from meve.components._text_splitter import TextSplitter, read_json, read_window
from meve.components.verifiers._sentence_scores import TokenReading, read_tokens
from meve.components.verifiers._torch_runtime import CHOICES, check_classifier, check_max_length
from meve.errors import ModelError, ModelNotFoundError, wrap_errors
from meve.types import FloatArray

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Encoding

FILES = ("onnx/model.onnx", "model.onnx")
"""Possible paths of the graph in a model's folder; the first match is used."""

BATCH = 4
"""Default batch size, in pairs; small, since several batches run at once."""
BATCH_ON_CUDA = 32
"""Default batch size on a GPU, where batches run one by one."""

TOKEN_LOGITS = "token_logits"
"""The name of the optional second output: a logit per token, as `meve.training.token_head` adds it."""
TOKEN_HEAD = "meve_token_head"
"""The prefix of the nodes and weights that compute it. Layer 3 has the weights `meve_token_head_weight_3`."""


class OnnxRuntime:
    """A loaded ONNX cross-encoder with one label. Threads may share it and run in parallel.

    Batches run in parallel, one core each; this keeps all cores busier than one batch on all cores.

    Args:
        session: a loaded graph, with inputs among input_ids, attention_mask and token_type_ids.
        splitter: the model's tokenizer.
        window: tokens that it reads at once, special ones included.
        name: the model's name in messages.
        pad_id: the token that pads shorter pairs of a batch; it is masked.
        threads: how many batches run at once; None for all cores.
        batch_size: the default batch size, in pairs.

    Raises:
        ModelError: the graph has other inputs, or lacks input_ids.
    """

    def __init__(
        self,
        session: "InferenceSession",
        *,
        splitter: TextSplitter,
        window: int,
        name: str,
        pad_id: int = 0,
        threads: int | None = 1,
        batch_size: int = BATCH,
    ) -> None:
        self._pool = CorePool(threads, "meve-verifier")
        self._session = session
        self._name = name
        self._pad_id = pad_id
        self.splitter = splitter
        self.window = window
        self.batch_size = batch_size
        self.rates_tokens = TOKEN_LOGITS in [entry.name for entry in session.get_outputs()]
        """Whether the graph has a logit per token, which `read` needs."""
        self._inputs = list_inputs(session, name)

    @classmethod
    def from_folder(
        cls, folder: Path, *, max_length: int | None = None, threads: int | None = None, device: str | None = None
    ) -> Self:
        """Load onnx/model.onnx or model.onnx, with the config.json and tokenizer.json beside it.

        Args:
            folder: the model's folder.
            max_length: tokens to read at once, special ones included; None for the model's maximum.
            threads: how many batches run at once, each on one core; None for all cores, or for 1 on a GPU.
            device: None or `cpu` for the processor; `cuda` or `cuda:N` for a GPU.

        Raises:
            ModelNotFoundError: the folder, the graph or the tokenizer is missing.
            ModelError: not a classifier with one label, or files that can't be read.
            ConfigurationError: `max_length` or `threads` is out of range, or ONNX Runtime can't use `device`.
        """
        on_cuda = cuda_number(device) is not None
        graph = find_onnx_file(folder)
        config = read_json(folder / "config.json")
        if not config:
            raise ModelNotFoundError(f"{folder} holds no config.json: put the model's own there, or export it again")
        check_classifier(config, str(folder))
        splitter = TextSplitter.from_folder(folder)
        return cls(
            open_session(graph, device),
            splitter=splitter,
            window=check_max_length(max_length, read_window(folder), str(folder)),
            name=str(folder),
            pad_id=int(config.get("pad_token_id") or 0),
            threads=1 if on_cuda and threads is None else threads,
            batch_size=BATCH_ON_CUDA if on_cuda else BATCH,
        )

    def logits(self, batches: Sequence[Sequence[tuple[str, str]]]) -> list[FloatArray]:
        """Return the model's logits for each batch of n pairs, shape (n,).

        Raises:
            ModelError: the model failed, or didn't return one output for each pair.
        """
        return self._pool.map(self._score_batch, batches)

    def read(self, batches: Sequence[Sequence[tuple[str, str]]]) -> list[tuple[FloatArray, list[TokenReading]]]:
        """Return for each batch of n pairs the logits, shape (n,), and the n readings of the passages' tokens.

        Raises:
            ModelError: as `logits`.
        """
        return self._pool.map(self._read_batch, batches)

    def _score_batch(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        return self._run(self._encode(pairs))[0]

    def _read_batch(self, pairs: Sequence[tuple[str, str]]) -> tuple[FloatArray, list[TokenReading]]:
        encodings = self._encode(pairs)
        scores, tokens = self._run(encodings)
        return scores, list(map(read_tokens, encodings, tokens))

    def _encode(self, pairs: Sequence[tuple[str, str]]) -> list["Encoding"]:
        encodings: list[Encoding] = self.splitter.tokenizer.encode_batch(list(pairs))
        return encodings

    def _run(self, encodings: Sequence["Encoding"]) -> tuple[FloatArray, FloatArray]:
        """Return the pairs' logits, shape (n,), and the graph's last output."""
        with wrap_errors(ModelError, f"scoring {len(encodings)} pairs with {self._name}"):
            arrays = self._build_arrays(encodings)
            with GATE.passing():
                outputs = self._session.run(None, arrays)
        scores = np.asarray(outputs[0], dtype=np.float32)
        if scores.size != len(encodings):
            raise ModelError(
                f"the graph of {self._name} returned shape {scores.shape} for {len(encodings)} pairs, expected one "
                "score each: give a cross-encoder with one label"
            )
        return scores.reshape(-1), np.asarray(outputs[-1], dtype=np.float32)

    def build_inputs(self, pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """Return the graph's inputs for a batch of n pairs, each array of shape (n, tokens)."""
        return self._build_arrays(self._encode(pairs))

    def _build_arrays(self, encodings: Sequence["Encoding"]) -> dict[str, Any]:
        shape = (len(encodings), max(len(e.ids) for e in encodings))
        arrays: dict[str, Any] = {
            "input_ids": np.full(shape, self._pad_id, dtype=np.int64),
            "attention_mask": np.zeros(shape, dtype=np.int64),
            "token_type_ids": np.zeros(shape, dtype=np.int64),
        }
        for row, encoding in enumerate(encodings):
            length = len(encoding.ids)
            arrays["input_ids"][row, :length] = encoding.ids
            arrays["attention_mask"][row, :length] = 1
            arrays["token_type_ids"][row, :length] = encoding.type_ids
        return {entry: arrays[entry] for entry in self._inputs}


def find_onnx_file(folder: Path) -> Path:
    """Return the path of the graph in a model's folder.

    Raises:
        ModelNotFoundError: the folder doesn't exist, or holds no graph.
    """
    if not folder.is_dir():
        raise ModelNotFoundError(f"no folder {folder}: {CHOICES}")
    for file in FILES:
        if (folder / file).is_file():
            return folder / file
    raise ModelNotFoundError(
        f"{folder} holds neither {' nor '.join(FILES)}: make one with "
        f"meve.components.verifiers.export_onnx({str(folder)!r}, {str(folder)!r})"
    )


def find_onnx_folder(name: str, *, local_files_only: bool = False) -> Path:
    """Return the folder of a model: the one named, or the local copy of a hub model.

    Raises:
        ModelNotFoundError: no such model on this machine or on the hub.
    """
    if Path(name).is_dir():
        return Path(name)
    from huggingface_hub import snapshot_download

    patterns = [*FILES, *(f"{file}_data" for file in FILES), "*.json"]
    with map_load_errors(name, CHOICES):
        return Path(snapshot_download(name, allow_patterns=patterns, local_files_only=local_files_only))
