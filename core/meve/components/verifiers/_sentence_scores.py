"""Rates the sentences of a passage by the logits of their tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meve.types import FloatArray, RowArray, TextSpans


@dataclass(frozen=True, slots=True)
class TokenReading:
    """The tokens of a passage, or of a piece of it, with the logits of one reading."""

    spans: RowArray
    """The start and end of each token in the passage, in characters, shape (t, 2)."""
    logits: FloatArray
    """Shape (t,)."""


def place_readings(
    passages: Sequence[str], pieces: Sequence[str], starts: Sequence[int], readings: Sequence[TokenReading | None]
) -> list[list[TokenReading]]:
    """Return for each passage the readings of its read pieces, with spans in the passage.

    Args:
        passages: whole texts.
        pieces: the pieces of all passages, in order.
        starts: the index of the first piece of each passage.
        readings: of each piece, with spans in the piece; None for an unread piece.
    """
    placed: list[list[TokenReading]] = []
    for text, first, last in zip(passages, starts, [*starts[1:], len(pieces)], strict=True):
        own, at = [], -1
        for piece, reading in zip(pieces[first:last], readings[first:last], strict=True):
            at = text.index(piece, at + 1)
            if reading is not None:
                own.append(TokenReading(reading.spans + at, reading.logits))
        placed.append(own)
    return placed


def rate_sentences(readings: Sequence[TokenReading], sentences: TextSpans) -> FloatArray:
    """Return the mean logit of each sentence's tokens, shape (s,).

    A sentence in several pieces of the passage gets the best mean of the pieces that hold the most of its tokens. A
    sentence without tokens gets the lowest number.

    Args:
        readings: of each read piece of the passage, with spans in the whole passage.
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
