"""Conservation metrics of a set of turns: magnitude, energy and information, and a simulation of their drift.

Source: RAG++ (Diomande 2026), section 4.5. The weights α sum to 1 here. For vectors of length 1 the magnitude is then
1, and the energy lies in [0, 1/2], not in [0, 1] as printed. The information lies in [0, log n]: it grows with each
turn if all weigh the same, and may fall if one turn gains weight.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meve._formulas import normalize
from meve.conversation.coordinates import DIMENSIONS, Coordinates
from meve.conversation.outcomes import OutcomeStatistics
from meve.errors import ConservationError, ValidationError

_COMPLEXITY, _REPLIES = DIMENSIONS.index("complexity"), DIMENSIONS.index("replies")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConservationMetrics:
    """The metrics of n weighted vectors."""

    magnitude: float
    """Σ α_i ‖e_i‖: 1 for vectors of length 1."""
    energy: float
    """½ Σ Σ α_i α_j cos(e_i, e_j), in [0, 1/2]: 1/2 if all vectors point the same way."""
    information: float
    """-Σ α_i log α_i in nats, in [0, log n]."""


def find_salience(coordinates: Coordinates, outcomes: Sequence[OutcomeStatistics] = ()) -> npt.NDArray[np.float64]:
    """Return how much each of n turns weighs, shape (n,), positive and with the sum 1.

    Turns with many components, many replies and good outcomes weigh more, at most four times as much as others.

    Args:
        coordinates: of the turns.
        outcomes: one for each turn; none recorded by default.
    """
    expected = np.array([each.expected for each in outcomes]) if len(outcomes) else 0.5
    raw = 1.0 + coordinates.values[:, _COMPLEXITY].astype(np.float64) + coordinates.values[:, _REPLIES] + expected
    return np.asarray(raw / raw.sum()) if raw.size else np.zeros(0)


def measure_conservation(vectors: npt.NDArray[np.floating], salience: npt.NDArray[np.floating]) -> ConservationMetrics:
    """Return the metrics of weighted vectors.

    Args:
        vectors: shape (n, d), n at least 1.
        salience: α, shape (n,), not negative; scaled to the sum 1.

    Raises:
        ValidationError: shapes that don't fit, or weights that are negative, not finite or all 0.
    """
    vectors, alpha = np.asarray(vectors, dtype=np.float64), np.asarray(salience, dtype=np.float64)
    if vectors.ndim != 2 or alpha.shape != vectors.shape[:1] or not len(vectors):
        raise ValidationError(
            f"salience must have one weight per vector: got shape {alpha.shape} for vectors of shape {vectors.shape}"
        )
    if not np.isfinite(alpha).all() or alpha.min() < 0 or not alpha.sum():
        raise ValidationError("salience must be finite, at least 0, and not all 0")
    alpha = alpha / alpha.sum()
    mean = alpha @ normalize(vectors)  # |Σ α_i u_i|² is the double sum, without n² cosines
    return ConservationMetrics(
        magnitude=float(alpha @ np.linalg.norm(vectors, axis=1)),
        energy=float(mean @ mean) / 2,
        information=float(-np.sum(alpha * np.log(alpha, out=np.zeros_like(alpha), where=alpha > 0))),
    )


def check_conservation(before: ConservationMetrics, after: ConservationMetrics, threshold: float = 0.05) -> None:
    """Check that a change of the memory kept its magnitude.

    The magnitude of vectors of length 1 is always 1, so this finds vectors of other lengths, not lost or repeated ones.

    Args:
        before: the metrics before the change.
        after: those after it.
        threshold: the greatest relative change, at least 0; 0.05 is published.

    Raises:
        ConservationError: the magnitude changed by more.
    """
    change = abs(after.magnitude - before.magnitude) / max(abs(before.magnitude), 1e-12)
    if change > threshold:
        raise ConservationError(
            f"the magnitude changed by {change:.2%}, from {before.magnitude:.4g} to {after.magnitude:.4g}: at most "
            f"{threshold:.2%} is allowed; look for vectors of another length than 1, and normalise them"
        )


def simulate_drift(
    days: int = 30, *, first: int = 200, per_day: int = 20, dimension: int = 64, topics: int = 8, seed: int = 0
) -> list[ConservationMetrics]:
    """Return the metrics of a growing memory, one for its first state and one after each day.

    Each day adds turns around a fixed number of topics and changes the weights at random.

    Args:
        days: how long the simulation lasts, at least 0.
        first: the number of turns at the start, at least 1.
        per_day: the number of turns that each day adds, at least 0.
        dimension: the length of the vectors, of which each has the norm 1.
        topics: the number of directions around which turns lie.
        seed: of the random numbers.
    """
    random = np.random.default_rng(seed)
    centres = random.normal(size=(topics, dimension))
    vectors, weights = np.zeros((0, dimension)), np.zeros(0)
    states = []
    for day in range(days + 1):
        count = first if day == 0 else per_day
        new = centres[random.integers(topics, size=count)] + random.normal(size=(count, dimension))
        vectors = np.concatenate([vectors, normalize(new)])
        weights = np.concatenate([weights, np.full(count, 2.5)]) * random.uniform(0.95, 1.05, len(weights) + count)
        states.append(measure_conservation(vectors, weights))
    return states
