"""A verifier that reads query and passage together: any cross-encoder with one label, on torch or on ONNX."""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol, Self, TypeAlias

import numpy as np

from meve.calibration.maps import PlattCalibration, calibration_from_dict
from meve.components._text_windows import Windows, read_json
from meve.components.verifiers._score_cache import ScoreCache
from meve.errors import CalibrationError, ConfigurationError, ModelError, PassageError, QueryError
from meve.ports import Calibration
from meve.types import FloatArray

Backend = Literal["torch", "onnx"]
Pairs: TypeAlias = Sequence[tuple[str, str]]

BATCH: dict[Backend, int] = {"torch": 16, "onnx": 4}
"""Pairs that are read together, unless told otherwise."""
_LEAST_SHARE = 0.5
"""The share of the window that a query must leave for the passage."""
CACHE_SIZE = 16_384
"""Scores that are remembered: of a few hundred questions."""
_OVERLAP = 0.25
"""The share of a stretch of a long passage that the next one repeats, so that an answer isn't cut in two."""


class Runtime(Protocol):
    """What runs a cross-encoder. It must be safe to call from many threads."""

    @property
    def window(self) -> int:
        """How many tokens the model reads at once, special ones included."""
        ...

    @property
    def windows(self) -> Windows:
        """The model's tokenizer, to count and to split with."""
        ...

    def logits(self, batches: Sequence[Pairs]) -> list[FloatArray]:
        """The model's raw outputs for each batch of n (query, passage), shape (n,); every pair fits the window."""
        ...


class CrossEncoderVerifier:
    """Scores (query, passage) with a cross-encoder; raw scores are its logits, whatever activation its config names.

    A passage that doesn't fit beside the query is read in overlapping stretches, and the best one counts: nothing is
    cut. Pairs are read in batches of like length, which saves padding; the order of the answer is that of the question.

    Args:
        runtime: a loaded model: `TorchRuntime` or `OnnxRuntime`.
        name: what it is called; the trace and an index name it.
        calibration: how logits become probabilities; None for the plain sigmoid.
        batch_size: how many pairs the model reads at once.
        cache_size: how many raw scores are remembered, so that a pair asked for again isn't read again; 0 for none.

    Raises:
        ConfigurationError: a batch size under 1, or a cache size under 0.
    """

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
            raise ConfigurationError(f"batch_size is {batch_size}: give a whole number of at least 1")
        self._runtime = runtime
        self._name = name
        self._calibration: Calibration = PlattCalibration() if calibration is None else calibration
        self._batch_size = batch_size
        self._cache = ScoreCache(cache_size)

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
        """Load a model by its hub name or folder. Naming a hub model is the consent to download it.

        Args:
            name_or_folder: such as `cross-encoder/ms-marco-MiniLM-L-6-v2`, or a folder.
            backend: `torch`, or `onnx` for a model exported with `export_onnx` (or one that ships onnx/model.onnx).
            calibration: None for the calibration.json in the folder, as `meve calibrate` writes it, and where there is
                none the plain sigmoid.
            max_length: tokens that the model reads at once, special ones included; None for all that it can.
            batch_size: how many pairs the model reads at once; None for 16 of torch, and 4 of ONNX, which reads several
                batches at the same time.
            cache_size: how many raw scores are remembered; 0 for none.
            device: of torch, such as `cpu` or `cuda`; None lets it choose. ONNX runs on the CPU.
            threads: of ONNX, how many batches are read at once; None for as many as there are cores. Torch's are set
                for the whole process by `torch.set_num_threads`.
            local_files_only: never ask a hub, not even for a model that was named.

        Raises:
            MissingExtraError: torch, or sentence-transformers, isn't installed.
            ConfigurationError: an option that the backend doesn't have, or out of range.
            ModelNotFoundError: no model of that name in reach, or no tokenizer or ONNX file in it.
            ModelError: a model with several labels, one that isn't a classifier of pairs, or one that is broken.
            CalibrationError: a calibration.json that can't be used.
        """
        name = str(name_or_folder)
        if not name.strip():
            raise ConfigurationError("the verifier's name is empty: give a model's name or folder")
        runtime: Runtime
        if backend == "onnx":
            if device not in (None, "cpu"):
                raise ConfigurationError(f"device is {device!r}, but the ONNX backend runs on the CPU: leave it out")
            from meve.components.verifiers._onnx_runtime import OnnxRuntime, onnx_folder

            folder = onnx_folder(name, local_files_only=local_files_only)
            runtime = OnnxRuntime.from_folder(folder, max_length=max_length, threads=threads)
        elif backend == "torch":
            if threads is not None:
                raise ConfigurationError(
                    f"threads is {threads}, but torch's are the whole process's: call torch.set_num_threads({threads})"
                )
            from meve.components.verifiers._torch_runtime import TorchRuntime

            folder = Path(name)
            runtime = TorchRuntime.from_name(
                name, max_length=max_length, device=device, local_files_only=local_files_only
            )
        else:
            raise ConfigurationError(f"backend is {backend!r}: choose one of torch, onnx")
        if calibration is None:
            calibration = calibration_beside(folder)
        size = BATCH[backend] if batch_size is None else batch_size
        return cls(runtime, name=name, calibration=calibration, batch_size=size, cache_size=cache_size)

    @property
    def name(self) -> str:
        """What the model is called."""
        return self._name

    @property
    def calibration(self) -> Calibration:
        """How logits become probabilities."""
        return self._calibration

    @property
    def window(self) -> int:
        """How many tokens of query, passage and special ones the model reads at once."""
        return self._runtime.window

    def raw_scores(self, query: str, passages: Sequence[str]) -> FloatArray:
        """The model's logits, shape (n,), in the order given; of a long passage, the best of its stretches.

        Raises:
            QueryError: a query that isn't text, or leaves less than half of the window for the passage.
            PassageError: something among the passages that isn't text.
            ModelError: the model failed, or gave NaN.
        """
        room = self._room(query)
        if isinstance(passages, str) or not all(isinstance(text, str) for text in passages):
            raise PassageError("passages to verify must be a list of texts: put a single one in a list")
        if not len(passages):
            return np.zeros(0, dtype=np.float32)
        known = self._cache.get(query, passages)
        fresh = list(dict.fromkeys(text for text, score in zip(passages, known, strict=True) if score is None))
        if fresh:
            read = self._read(query, fresh, room).tolist()
            self._cache.put(query, fresh, read)
            found = dict(zip(fresh, read, strict=True))
            known = [found[text] if score is None else score for text, score in zip(passages, known, strict=True)]
        return np.asarray(known, dtype=np.float32)

    def _read(self, query: str, passages: Sequence[str], room: int) -> FloatArray:
        """The model's logits; pairs of like length side by side."""
        pieces, lengths, starts = self._pieces(passages, room)
        logits = np.empty(len(pieces), dtype=np.float32)
        order = np.argsort(-np.asarray(lengths), kind="stable")
        batches = [order[at : at + self._batch_size] for at in range(0, len(order), self._batch_size)]
        read = self._runtime.logits([[(query, pieces[i]) for i in batch] for batch in batches])
        for batch, scores in zip(batches, read, strict=True):
            logits[batch] = scores
        if not np.isfinite(logits).all():
            broken = int((~np.isfinite(logits)).sum())
            raise ModelError(
                f"{self._name} gave NaN or infinity for {broken} of {len(pieces)} pairs: check the model's files"
            )
        return np.asarray(np.maximum.reduceat(logits, starts), dtype=np.float32)

    def score(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Calibrated probabilities in [0, 1], shape (n,), in the order given.

        Raises:
            QueryError: a query that isn't text, or leaves less than half of the window for the passage.
            PassageError: something among the passages that isn't text.
            ModelError: the model failed, or gave NaN.
        """
        return self._calibration.apply(self.raw_scores(query, passages))

    def with_calibration(self, calibration: Calibration) -> Self:
        """The same loaded model under another calibration; this one keeps its own."""
        other = copy.copy(self)
        other._calibration = calibration
        return other

    def with_cache(self, size: int) -> Self:
        """The same loaded model with a cache of its own, of that many raw scores; 0 for none."""
        other = copy.copy(self)
        other._cache = ScoreCache(size)
        return other

    def _room(self, query: str) -> int:
        """How many tokens the query leaves for a passage."""
        if not isinstance(query, str):
            raise QueryError(f"a query is {type(query).__name__}: give text")
        windows, window = self._runtime.windows, self._runtime.window
        tokens = windows.count(query)
        room = window - windows.special(pair=True) - tokens
        if room < max(1, int(_LEAST_SHARE * window) - windows.special(pair=True)):
            raise QueryError(
                f"the query has {tokens} tokens and leaves {max(room, 0)} for a passage, of the {window} that "
                f"{self._name} reads: shorten it to about {int((1 - _LEAST_SHARE) * window)} tokens, "
                "or use a verifier with a longer window"
            )
        return room

    def _pieces(self, passages: Sequence[str], room: int) -> tuple[list[str], list[int], list[int]]:
        """Every passage in stretches that fit, the tokens of each, and where each passage's stretches start."""
        windows = self._runtime.windows
        pieces: list[str] = []
        lengths: list[int] = []
        starts: list[int] = []
        for text, count in zip(passages, windows.counts(passages), strict=True):
            starts.append(len(pieces))
            split = windows.split(text, room, overlap=int(_OVERLAP * room)) if count > room else []
            pieces += [window.text for window in split] or [text]
            lengths += [window.tokens for window in split] or [count]
        return pieces, lengths, starts


def calibration_beside(folder: Path) -> Calibration | None:
    """The calibration in a model's folder: as plain data, or as `meve calibrate` writes it, under "calibration".

    Raises:
        CalibrationError: a calibration.json that can't be used.
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
