"""Runs a cross-encoder on torch, through sentence-transformers."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from meve._extras import require_imports
from meve.components._model_errors import find_cached_folder, map_load_errors
from meve.components._text_splitter import TextSplitter, find_window
from meve.components._torch_device import check_torch_device, choose_batch_size, run_within_memory
from meve.components.verifiers._sentence_scores import TokenHead, TokenReading, read_tokens
from meve.errors import ConfigurationError, ModelError, ModelNotFoundError, wrap_errors
from meve.types import FloatArray

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

CHOICES = 'give a folder that holds the model, or use verifier="cosine", which needs no model of its own'

BATCH = 16
"""Default batch size, in pairs, except on CUDA."""

_TOKENIZER_FILES = (
    "tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model", "tokenizer.model"
)  # fmt: skip


class TorchRuntime:
    """A loaded cross-encoder with one label. Calls take turns, since threads can't share a tokenizer.

    Args:
        model: a loaded model.
        name: the model's name in messages.
        max_length: tokens that it reads at once, special ones included; None for the model's maximum.
        token_head: computes a logit per token, which `read` needs; None for a model without.

    Raises:
        ModelError: several labels, or a tokenizer that can't report token positions.
        ConfigurationError: `max_length` is out of range.
    """

    def __init__(
        self,
        model: "CrossEncoder",
        *,
        name: str,
        max_length: int | None = None,
        token_head: TokenHead | None = None,
    ) -> None:
        from torch.nn import Identity

        settings = model.config.to_dict() if model.config is not None else {}
        check_classifier(settings, name)
        self._model = model
        self._name = name
        self._identity = Identity()
        self._lock = threading.Lock()
        self._token_head = token_head
        self.rates_tokens = token_head is not None
        """Whether the model can rate tokens. `read` requires this."""
        self.splitter = TextSplitter.from_tokenizer(model.tokenizer)
        own = find_window(settings, getattr(model.tokenizer, "model_max_length", None), name)
        self.window = check_max_length(max_length, own, name)
        model.max_seq_length = self.window
        self.batch_size = choose_batch_size(settings, self.window, model.device, BATCH)
        """The default batch size: what the free memory holds on CUDA, else 16."""

    @classmethod
    def from_name(
        cls, name: str, *, max_length: int | None = None, device: str | None = None, local_files_only: bool = False
    ) -> Self:
        """Load a model by hub name or folder, after checking that it is a classifier with one label.

        Raises:
            MissingExtraError: sentence-transformers isn't installed.
            ModelNotFoundError: no such model on this machine or on the hub, or no tokenizer in the folder.
            ModelError: not a classifier with one label, or the model can't be loaded.
            ConfigurationError: `max_length` is out of range, or torch can't use `device`.
        """
        with require_imports(f"the verifier {name!r}", {"sentence_transformers": "models"}):
            from sentence_transformers import CrossEncoder
            from transformers import AutoConfig
        check_torch_device(device)
        folder = Path(name)
        if folder.is_dir() and not any((folder / file).is_file() for file in _TOKENIZER_FILES):
            raise ModelNotFoundError(f"{folder} holds no tokenizer: put the model's tokenizer.json there")
        with map_load_errors(name, CHOICES):
            place = find_cached_folder(name) if local_files_only else name
            config = AutoConfig.from_pretrained(place, local_files_only=local_files_only)
            check_classifier(config.to_dict() | {"num_labels": config.num_labels}, name)
            model = CrossEncoder(place, device=device, local_files_only=local_files_only)
        return cls(model, name=name, max_length=max_length)

    def logits(self, batches: Sequence[Sequence[tuple[str, str]]]) -> list[FloatArray]:
        """Return the model's logits for each batch of n pairs, shape (n,).

        A batch that exceeds the memory of the GPU is read in halves.

        Raises:
            ModelError: the model failed, or the memory is too small for one pair.
        """
        return [self._score_batch(pairs) for pairs in batches]

    def read(self, batches: Sequence[Sequence[tuple[str, str]]]) -> list[tuple[FloatArray, list[TokenReading]]]:
        """Return for each batch of n pairs the logits, shape (n,), and the n readings of the passages' tokens.

        Raises:
            ModelError: as `logits`, or the model has no head for tokens.
        """
        if self._token_head is None:
            raise ModelError(f"{self._name} has no logit per token: check `rates_tokens` first")
        return [self._read_batch(pairs, self._token_head) for pairs in batches]

    def _read_batch(self, pairs: Sequence[tuple[str, str]], head: TokenHead) -> tuple[FloatArray, list[TokenReading]]:
        with self._lock, wrap_errors(ModelError, f"scoring {len(pairs)} pairs with {self._name}"):
            parts = run_within_memory(
                lambda size: [self._read_part(pairs[at : at + size], head) for at in range(0, len(pairs), size)],
                len(pairs),
            )
        return np.concatenate([scores for scores, _ in parts]), [one for _, read in parts for one in read]

    def _read_part(self, pairs: Sequence[tuple[str, str]], head: TokenHead) -> tuple[FloatArray, list[TokenReading]]:
        import torch

        network: Any = self._model.model  # a property that may be None by its type
        encoded = self._model.tokenizer(
            [q for q, _ in pairs], [text for _, text in pairs], padding=True, return_tensors="pt"
        )
        with torch.inference_mode():
            output = network(**encoded.to(self._model.device), output_hidden_states=True)
            scores = output.logits.float().reshape(-1)
            tokens = (head.relevance * scores + head.bias)[:, None]
            for layer, weights in head.weights.items():
                states = output.hidden_states[layer].float()
                tokens = tokens + states @ torch.tensor(weights, device=states.device)
        readings = map(read_tokens, encoded.encodings, tokens.cpu().numpy())
        return scores.cpu().numpy(), list(readings)

    def _score_batch(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        with self._lock, wrap_errors(ModelError, f"scoring {len(pairs)} pairs with {self._name}"):
            scores = run_within_memory(
                lambda size: self._model.predict(
                    list(pairs),
                    batch_size=size,
                    activation_fn=self._identity,
                    show_progress_bar=False,
                    convert_to_numpy=True,
                ),
                len(pairs),
            )
        return np.asarray(scores, dtype=np.float32)


def check_classifier(config: dict[str, Any], name: str) -> None:
    """Check that the model has a classification head with one label; transformers would fill a missing head at random.

    Raises:
        ModelError: no sequence classifier, or several labels.
    """
    kinds = config.get("architectures") or []
    if not any(str(kind).endswith("ForSequenceClassification") for kind in kinds):
        raise ModelError(
            f"{name!r} isn't a cross-encoder: its config names {', '.join(map(str, kinds)) or 'no architecture'}, not "
            "one that ends in ForSequenceClassification; give a model trained to score pairs"
        )
    labels = config.get("num_labels") or len(config.get("id2label") or (0, 1))  # transformers' default is 2
    if labels != 1:
        raise ModelError(
            f"{name!r} has {labels} labels, but a verifier needs one: give a cross-encoder trained for relevance"
        )


def check_max_length(given: int | None, own: int, name: str) -> int:
    """Return the window to use: `given` if the model can read that much; None for the model's own.

    Raises:
        ConfigurationError: `given` exceeds the model's window, or is below 8.
    """
    if given is None:
        return own
    if not 8 <= given <= own:
        raise ConfigurationError(f"max_length must be between 8 and {own} for {name}, got {given}")
    return given
