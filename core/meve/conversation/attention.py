"""Attention of turns to each other: causal (RCP), inverse (IRCP), by trajectory (TPO), and the three together.

Source: RAG++ (Diomande 2026), section 4.2. Its two rings are one, since reversing the order of the turns changes no
distance between them. Here RCP lets a turn attend to itself and earlier turns, IRCP to itself and later ones.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from meve.errors import ConfigurationError
from meve.types import FloatArray

Direction: TypeAlias = Literal["causal", "inverse"]

_Floats: TypeAlias = npt.NDArray[np.float64]
_LOWEST = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionConfig:
    """The settings of attention; the defaults are published.

    Raises:
        ConfigurationError: a value that isn't a number or is out of range.
    """

    decay: float = 0.5
    """λ: how fast the attention fades with the distance, at least 0."""
    temperature: float = 0.1
    """T: a lower one attends to fewer turns; at least 0.001."""
    causal: float = 0.4
    """The weight of RCP, at least 0."""
    inverse: float = 0.4
    """The weight of IRCP, at least 0."""
    trajectory: float = 0.2
    """The weight of TPO, at least 0."""

    def __post_init__(self) -> None:
        for name in ("decay", "temperature", "causal", "inverse", "trajectory"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
                raise ConfigurationError(f"{name} must be a number of at least 0, got {value!r:.40}")
        if self.temperature < _LOWEST:
            raise ConfigurationError(f"temperature must be at least {_LOWEST}, got {self.temperature!r:.40}")


def ring_attention(cosines: npt.NDArray[np.floating], direction: Direction, config: AttentionConfig) -> FloatArray:
    """Return RCP or IRCP of n turns in their order, shape (n, n); each row sums to 1.

    Args:
        cosines: of each turn with each other, shape (n, n).
        direction: `causal` for RCP, `inverse` for IRCP.
        config: λ and T.
    """
    steps = np.subtract.outer(np.arange(len(cosines)), np.arange(len(cosines)))
    steps = steps if direction == "causal" else -steps
    return _attend(np.exp(-config.decay * np.maximum(steps, 0)), cosines, steps >= 0, config)


def printed_ring_attention(
    cosines: npt.NDArray[np.floating], direction: Direction, config: AttentionConfig
) -> FloatArray:
    """Return the attention over the rings as they are printed, shape (n, n): the same in both directions."""
    n = len(cosines)
    order = np.arange(n) if direction == "causal" else np.arange(n)[::-1]
    gaps = np.abs(np.subtract.outer(order, order))
    everything = np.ones((n, n), dtype=np.bool_)
    return _attend(np.exp(-config.decay * np.minimum(gaps, n - gaps)), cosines, everything, config)


def trajectory_attention(
    cosines: npt.NDArray[np.floating], distances: npt.NDArray[np.floating], config: AttentionConfig
) -> FloatArray:
    """Return TPO, shape (n, n): the nearness of two turns is e^-D of their trajectory distance.

    Args:
        cosines: of each turn with each other, shape (n, n).
        distances: of each turn to each other, shape (n, n).
        config: T.
    """
    return _attend(np.exp(-np.asarray(distances, dtype=np.float64)), cosines, np.ones(cosines.shape, np.bool_), config)


def unified_attention(
    cosines: npt.NDArray[np.floating], distances: npt.NDArray[np.floating], config: AttentionConfig
) -> FloatArray:
    """Return the weighted sum of RCP, IRCP and TPO, shape (n, n); each row sums to the sum of the weights."""
    causal, inverse = ring_attention(cosines, "causal", config), ring_attention(cosines, "inverse", config)
    trajectory = trajectory_attention(cosines, distances, config)
    return np.asarray(config.causal * causal + config.inverse * inverse + config.trajectory * trajectory)


def question_attention(
    cosines: npt.NDArray[np.floating],
    steps: npt.NDArray[np.integer],
    distances: npt.NDArray[np.floating],
    config: AttentionConfig,
) -> FloatArray:
    """Return the unified attention of one question to n turns, shape (n,), in [0, sum of the weights].

    This is the row of the question in the matrix of all, at a cost that grows with n and not with n². A direction
    without turns adds nothing.

    Args:
        cosines: of the question with each turn, shape (n,).
        steps: how many turns after each turn the question is asked, shape (n,); negative for later turns.
        distances: trajectory distance of each turn from the turn at which the question is asked, shape (n,).
        config: weights, λ and T.
    """
    if not len(cosines):
        return np.zeros(0, dtype=np.float32)
    row, at, gaps = cosines[None, :], np.asarray(steps)[None, :], np.asarray(distances, dtype=np.float64)[None, :]
    near = np.exp(-config.decay * np.abs(at))
    causal = _attend(near, row, at >= 0, config)
    inverse = _attend(near, row, at < 0, config)
    trajectory = _attend(np.exp(-gaps), row, np.ones(row.shape, np.bool_), config)
    return np.asarray((config.causal * causal + config.inverse * inverse + config.trajectory * trajectory)[0])


def _attend(
    nearness: _Floats, cosines: npt.NDArray[np.floating], allowed: npt.NDArray[np.bool_], config: AttentionConfig
) -> FloatArray:
    """Return softmax(nearness · (1 + cos) / 2 / T) over the allowed columns; a row without any is 0."""
    logits = np.where(allowed, nearness * (1 + np.asarray(cosines, dtype=np.float64)) / 2 / config.temperature, -np.inf)
    highest = logits.max(axis=-1, keepdims=True)
    weights = np.exp(logits - np.where(np.isfinite(highest), highest, 0.0))
    sums = weights.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0), dtype=np.float32)
