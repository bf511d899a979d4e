"""A verifier that reads query and passage together: any cross-encoder with one label, on torch or ONNX."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Literal, Protocol, Self, TypeAlias

import numpy as np

from meve._formulas import sigmoid
from meve.calibration.probability_maps import PlattCalibration, calibration_from_dict
from meve.components._long_texts import MOST_READINGS, choose_readings, find_asked, split_query
from meve.components._text_cache import TextCache, Texts
from meve.components._text_splitter import TextPiece, TextSplitter, read_json
from meve.components.verifiers._sentence_scores import TokenReading, locate_pieces, rate_sentences
from meve.errors import CalibrationError, ConfigurationError, ModelError, PassageError, QueryError
from meve.ports import Calibration
from meve.types import FloatArray, TextSpans

Backend = Literal["torch", "onnx"]
TextPairs: TypeAlias = Sequence[tuple[str, str]]

_LEAST_SHARE = 0.5
"""The share of the window that a query leaves for the passage; a longer query is read in stretches."""
CACHE_SIZE = 16_384
"""Default number of cached scores, enough for a few hundred queries."""
READINGS = 512
"""The number of passages whose token logits are cached, enough to rate sentences of the last dozens of queries."""
_OVERLAP = 0.25
"""The share of a piece of a long passage that the next piece repeats, so that no answer is split."""


class Runtime(Protocol):
    """A loaded cross-encoder. Must be safe to call from many threads.

    A true attribute `rates_tokens` promises a method `read` as `OnnxRuntime.read`.
    """

    @property
    def window(self) -> int:
        """The number of tokens the model reads at once, special ones included."""

    @property
    def splitter(self) -> TextSplitter:
        """The model's tokenizer, for counting and splitting."""

    def logits(self, batches: Sequence[TextPairs]) -> list[FloatArray]:
        """Return the model's logits for each batch of n (query, passage), shape (n,); every pair fits the window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """The readings of queries and passages: lists of one length, except for the pieces."""

    pieces: list[str]
    """All pieces of the passage, in order."""
    places: list[int]
    """The index of the piece of each reading."""
    texts: list[tuple[str, str]]
    """The stretch of the query and the piece of each reading."""
    tokens: list[int]
    unread: int
    """The number of pieces that aren't read."""


class CrossEncoderVerifier:
    """Scores (query, passage) with a cross-encoder; raw scores are its logits, whatever activation its config names.

    A passage that doesn't fit beside the query is read in overlapping pieces, a query over half of the window in
    stretches, and the highest score counts. Of more than 16 such readings of a passage, those that share the most words
    are read, and `count_unread` tells how many aren't. Pairs are batched by length, which saves padding; scores come in
    the order of the passages.

    Args:
        runtime: a loaded model: `TorchRuntime` or `OnnxRuntime`.
        name: the model's name in the trace and in an index.
        calibration: maps logits to probabilities; None for the plain sigmoid.
        batch_size: how many pairs the model reads at once.
        cache_size: how many raw scores are cached; 0 for none.

    Raises:
        ConfigurationError: `batch_size` is below 1, or `cache_size` below 0.
    """

    most_readings = MOST_READINGS
    """The most pairs of a stretch of the query and a piece of the passage that are read."""
    max_length: int | None = None
    """The `max_length` that `from_name` was given."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        name: str,
        calibration: Calibration | None = None,
        batch_size: int = 16,
        cache_size: int = CACHE_SIZE,
    ) -> None:
        if batch_size < 1:
            raise ConfigurationError(f"batch_size must be at least 1, got {batch_size}")
        self._runtime = runtime
        self.name = name
        self.calibration: Calibration = PlattCalibration() if calibration is None else calibration
        self._batch_size = batch_size
        self._cache = TextCache[float](cache_size)
        self._readings = TextCache[list[TokenReading]](READINGS)
        self._unread = TextCache[int](cache_size or READINGS)

    @classmethod
    def from_name(
        cls,
        name_or_folder: str,
        *,
        backend: Backend = "torch",
        calibration: Calibration | None = None,
        max_length: int | None = None,
        batch_size: int | None = None,
        cache_size: int = CACHE_SIZE,
        device: str | None = None,
        threads: int | None = None,
        local_files_only: bool = False,
    ) -> Self:
        """Load a model by its hub name or folder. A hub model is downloaded if it isn't cached.

        Args:
            name_or_folder: such as `cross-encoder/ms-marco-MiniLM-L-6-v2`, or a folder.
            backend: `torch`, or `onnx` for a model exported with `export_onnx` (or one that ships onnx/model.onnx).
            calibration: None for the calibration.json in the folder, as `meve calibrate` writes it, or else the plain
                sigmoid.
            max_length: tokens that the model reads at once, special ones included; None for the model's maximum.
            batch_size: how many pairs the model reads at once. None on torch for as many as the free memory holds on
                CUDA (at most 256), and 16 elsewhere; on ONNX for 32 on CUDA, and 4 on the processor, which runs several
                batches in parallel. On torch, a batch that exceeds the memory of the GPU is halved.
            cache_size: how many raw scores are cached; 0 for none.
            device: such as `cpu`, `cuda` or `cuda:1`. None lets torch choose, and means the processor for ONNX. ONNX
                on CUDA needs onnxruntime-gpu in place of onnxruntime, and a graph without 8-bit weights.
            threads: for ONNX, how many batches run at once; None for all cores, or for 1 on a GPU. Torch's are set for
                the whole process by `torch.set_num_threads`.
            local_files_only: whether to never contact a hub, even for a hub name.

        Raises:
            MissingExtraError: torch, or sentence-transformers, isn't installed.
            ConfigurationError: an option that the backend lacks, or out of range, or a device that can't be used.
            ModelNotFoundError: no such model on this machine or on the hub, or it lacks a tokenizer or ONNX file.
            ModelError: the model is broken, or isn't a classifier of pairs with one label.
            CalibrationError: the calibration.json is invalid.
        """
        name = str(name_or_folder)
        if not name.strip():
            raise ConfigurationError("verifier must not be empty: give a model's name or folder")
        runtime: Runtime
        if backend == "onnx":
            from meve.components.verifiers._onnx_runtime import OnnxRuntime, find_onnx_folder

            folder = find_onnx_folder(name, local_files_only=local_files_only)
            runtime = OnnxRuntime.from_folder(folder, max_length=max_length, threads=threads, device=device)
        elif backend == "torch":
            if threads is not None:
                raise ConfigurationError(
                    f"threads must be left out for torch, got {threads}: call torch.set_num_threads({threads})"
                )
            from meve.components.verifiers._torch_runtime import TorchRuntime

            folder = Path(name)
            runtime = TorchRuntime.from_name(
                name, max_length=max_length, device=device, local_files_only=local_files_only
            )
        else:
            raise ConfigurationError(f"backend must be one of torch, onnx, got {backend!r}")
        if calibration is None:
            calibration = load_calibration_file(folder)
        size = runtime.batch_size if batch_size is None else batch_size
        verifier = cls(runtime, name=name, calibration=calibration, batch_size=size, cache_size=cache_size)
        verifier.max_length = max_length
        return verifier

    @property
    def window(self) -> int:
        """The number of tokens of query, passage and special ones the model reads at once."""
        return self._runtime.window

    def raw_scores(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Return the model's logits, shape (n,), in the order given; for a long passage, the highest of its pieces.

        Raises:
            QueryError: the query isn't text, or has more than 4,096 tokens.
            PassageError: a passage isn't text.
            ModelError: the model failed, or returned NaN.
        """
        self._split_query(query)  # raises for an invalid query
        if isinstance(passages, str) or not all(isinstance(text, str) for text in passages):
            raise PassageError("passages must be a list of texts: put a single text in a list")
        return self.score_pairs([(query, text) for text in passages])

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        """Return the model's logits of pairs of query and passage, shape (n,), in the order given.

        Pairs of several queries share batches. Raises as `raw_scores`.
        """
        if not len(pairs):
            return np.zeros(0, dtype=np.float32)
        for query, text in pairs:
            if not isinstance(query, str):
                raise QueryError(f"the query must be text, got {type(query).__name__}")
            if not isinstance(text, str):
                raise PassageError(f"passages must be texts, got {type(text).__name__}")
        scores = self._cache.fetch(list(pairs), lambda missing: self._read(missing)[0].tolist())
        return np.asarray(scores, dtype=np.float32)

    @property
    def scores_sentences(self) -> bool:
        """Whether the model has a logit per token, which `score_sentences` needs."""
        return bool(getattr(self._runtime, "rates_tokens", False))

    def score_sentences(self, query: str, passages: Sequence[str], sentences: Sequence[TextSpans]) -> list[FloatArray]:
        """Return the probability of each sentence to be evidence.

        The last 512 passages that were scored aren't read again.

        Args:
            query: the question.
            passages: n texts.
            sentences: for each passage, the start and end of its sentences, in characters.

        Returns:
            For each passage, one probability in [0, 1] per sentence; 0 for a sentence without tokens.

        Raises:
            QueryError: as `raw_scores`.
            ModelError: the model has no logit per token, or failed.
        """
        if not self.scores_sentences:
            raise ModelError(f"{self.name} has no logit per token: add it with meve.training.token_head")
        self._split_query(query)  # raises for an invalid query
        keys = [(query, text) for text in passages]
        readings = self._readings.fetch(keys, lambda missing: self._read(missing)[1])
        return [sigmoid(rate_sentences(own, spans)) for own, spans in zip(readings, sentences, strict=True)]

    def count_unread(self, query: str, passages: Sequence[str]) -> list[int]:
        """Return how many pieces of each passage weren't read because there were too many; 0 if it isn't known."""
        return self._unread.fetch([(query, text) for text in passages], lambda missing: [0] * len(missing))

    def has_read(self, query: str, passages: Sequence[str]) -> list[bool]:
        """Return for each passage whether its score is cached, so that scoring it takes hardly any time."""
        return self._cache.has([(query, text) for text in passages])

    def _choose(self, pairs: Sequence[Texts]) -> list[_Chosen]:
        """Return what is read of each pair; the passages of one query in a row are split together."""
        chosen: list[_Chosen] = []
        splitter = self._runtime.splitter
        for query, group in groupby(pairs, key=itemgetter(0)):
            stretches = self._split_query(query)
            asked = [stretch.text for stretch in stretches]
            room = self._runtime.window - splitter.count_special(pair=True) - max(s.tokens for s in stretches)
            pieces, lengths, starts = splitter.split_all(
                [text for _, text in group], room, overlap=int(_OVERLAP * room)
            )
            for first, last in pairwise([*starts, len(pieces)]):
                own = choose_readings(asked, pieces[first:last])
                chosen.append(
                    _Chosen(
                        pieces=pieces[first:last],
                        places=[p for p, _ in own],
                        texts=[(asked[s], pieces[first + p]) for p, s in own],
                        tokens=[stretches[s].tokens + lengths[first + p] for p, s in own],
                        unread=last - first - len({p for p, _ in own}),
                    )
                )
        return chosen

    def _read(self, pairs: Sequence[Texts]) -> tuple[FloatArray, list[list[TokenReading]]]:
        """Return the logits of pairs, and the readings of each passage's tokens, which are cached."""
        chosen = self._choose(pairs)
        self._unread.put({pair: own.unread for pair, own in zip(pairs, chosen, strict=True) if own.unread})
        texts = [each for own in chosen for each in own.texts]
        order = np.argsort(-np.array([tokens for own in chosen for tokens in own.tokens]), kind="stable")
        batches = [order[at : at + self._batch_size] for at in range(0, len(order), self._batch_size)]
        logits, tokens = self._compute([[texts[i] for i in batch] for batch in batches])
        logits[order] = logits.copy()
        if not np.isfinite(logits).all():
            broken = int((~np.isfinite(logits)).sum())
            raise ModelError(
                f"{self.name} returned NaN or infinity for {broken} of {len(texts)} pairs: check the model's files"
            )
        starts = np.cumsum([0, *(len(own.texts) for own in chosen[:-1])])
        readings: list[list[TokenReading]] = []
        if tokens:
            tokens = [tokens[at] for at in np.argsort(order).tolist()]
            for (_, text), own, at in zip(pairs, chosen, starts.tolist(), strict=True):
                begins = locate_pieces(text, own.pieces)
                read = zip(own.places, tokens[at : at + len(own.places)], strict=True)
                readings.append([TokenReading(one.spans + begins[p], one.logits) for p, one in read])
            self._readings.put(dict(zip(pairs, readings, strict=True)))
        return np.asarray(np.maximum.reduceat(logits, starts), dtype=np.float32), readings

    def _compute(self, batches: Sequence[TextPairs]) -> tuple[FloatArray, list[TokenReading]]:
        """Return the logits of all batches together, and the tokens' readings if the model has them."""
        if not self.scores_sentences:
            return np.concatenate(self._runtime.logits(batches)), []
        computed = self._runtime.read(batches)  # type: ignore[attr-defined]
        return np.concatenate([scores for scores, _ in computed]), [one for _, read in computed for one in read]

    def score(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Return calibrated probabilities in [0, 1], shape (n,), in the order given; raises as `raw_scores`."""
        return self.calibration.apply(self.raw_scores(query, passages))

    def with_calibration(self, calibration: Calibration) -> Self:
        """Return a verifier with the same loaded model and another calibration."""
        other = copy.copy(self)
        other.calibration = calibration
        return other

    def with_cache(self, size: int) -> Self:
        """Return a verifier with the same loaded model and a new cache of `size` raw scores; 0 for none."""
        other = copy.copy(self)
        other._cache, other._readings = TextCache(size), TextCache(READINGS)
        other._unread = TextCache(size or READINGS)
        return other

    def _split_query(self, query: str) -> list[TextPiece]:
        """Return the query, or its stretches if it is over half of the window; first what it asks for by itself."""
        most = int((1 - _LEAST_SHARE) * self._runtime.window)
        splitter = self._runtime.splitter
        stretches = split_query(splitter, query, most, name=self.name, overlap=int(_OVERLAP * most))
        return [*find_asked(splitter, query, most), *stretches]


def load_calibration_file(folder: Path) -> Calibration | None:
    """Load the calibration.json in a model's folder, plain or as `meve calibrate` writes it; None if there is none.

    Raises:
        CalibrationError: the file is invalid.
    """
    file = folder / "calibration.json"
    stored = read_json(file)
    if not stored:
        return None
    data = stored.get("calibration", stored)
    try:
        return calibration_from_dict(data)
    except (CalibrationError, TypeError, ValueError) as cause:
        raise CalibrationError(
            f"{file} can't be used ({cause}): write it again with 'meve calibrate PAIRS.jsonl --verifier {file.parent}'"
        ) from cause
