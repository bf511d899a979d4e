"""Rates the sentences of a passage by the logits of their tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from meve.types import FloatArray, RowArray, TextSpans

if TYPE_CHECKING:
    from tokenizers import Encoding


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenHead:
    """The weights of a token's logit: Σ hidden_state·weights + relevance·logit + bias, where `logit` is the pair's."""

    weights: Mapping[int, FloatArray]
    """By layer, from 1, one weight per unit of its hidden state."""
    relevance: float
    bias: float


@dataclass(frozen=True, slots=True)
class TokenReading:
    """The tokens of a passage, or of a piece of it, with the logits of one reading."""

    spans: RowArray
    """The start and end of each token in the passage, in characters, shape (t, 2)."""
    logits: FloatArray
    """Shape (t,)."""


def read_tokens(encoding: "Encoding", logits: FloatArray) -> TokenReading:
    """Return the passage's tokens in a pair, given the logits of all tokens of the pair."""
    rows, spans = read_spans(encoding)
    return TokenReading(spans, logits[rows])


def read_spans(encoding: "Encoding") -> tuple[RowArray, RowArray]:
    """Return the passage's tokens in a pair, shape (t,), and the start and end of each in the passage, shape (t, 2)."""
    rows = [n for n, sequence in enumerate(encoding.sequence_ids) if sequence == 1]
    offsets = encoding.offsets  # each access makes a new list
    spans = np.array([offsets[n] for n in rows], dtype=np.int64).reshape(-1, 2)
    return np.array(rows, dtype=np.int64), spans


def locate_pieces(text: str, pieces: Sequence[str]) -> list[int]:
    """Return where each piece of a text begins, in characters; the pieces in order."""
    starts: list[int] = []
    at = -1
    for piece in pieces:
        at = text.index(piece, at + 1)
        starts.append(at)
    return starts


def rate_sentences(readings: Sequence[TokenReading], sentences: TextSpans) -> FloatArray:
    """Return the mean logit of each sentence's tokens, shape (s,).

    A sentence in several pieces of the passage gets the best mean of the pieces that hold the most of its tokens. A
    sentence without tokens gets the lowest number.

    Args:
        readings: of each piece of the passage, with spans in the whole passage.
        sentences: the start and end of each sentence in the passage, in characters.
    """
    least = float(np.finfo(np.float32).min)
    rated = []
    for start, end in sentences:
        found = [reading.logits[are_within(reading.spans, start, end)] for reading in readings]
        rated.append(max(((len(own), float(own.mean())) for own in found if len(own)), default=(0, least))[1])
    return np.array(rated, dtype=np.float32)


def are_within(spans: RowArray, start: int, end: int) -> npt.NDArray[np.bool_]:
    """Return which tokens lie between two characters of the passage, shape (t,)."""
    within: npt.NDArray[np.bool_] = (spans[:, 0] >= start) & (spans[:, 1] <= end) & (spans[:, 1] > spans[:, 0])
    return within
