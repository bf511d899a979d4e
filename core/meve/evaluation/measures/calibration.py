"""The measure of calibration, over every passage with a probability, rejected ones included."""

from collections.abc import Sequence

import numpy as np

from meve._formulas import expected_calibration_error
from meve.evaluation.measures._measure import Contribution, SetMeasure
from meve.evaluation.types import Outcome, Question


def labelled_probabilities(question: Question, outcome: Outcome) -> Contribution:
    """Return pairs of a passage's probability, rounded to six digits, and its label: 1 if gold, otherwise 0.

    Questions without gold count too. A passage that answers without being labelled gold counts as wrong.
    """
    pairs = ((round(p, 6), float(i in question.gold)) for i, p in outcome.output.probabilities.items())
    return tuple(number for pair in pairs for number in pair)


def calibration_error(contributions: Sequence[Contribution]) -> float | None:
    """Return the expected calibration error in 15 bins; None without probabilities."""
    flat = np.array([number for contribution in contributions for number in contribution])
    return expected_calibration_error(flat[::2], flat[1::2].astype(bool)) if len(flat) else None


CALIBRATION_ERROR = SetMeasure(
    name="calibration error",
    meaning="expected gap between a passage's probability and how often such passages are gold",
    source="Guo et al., On Calibration of Modern Neural Networks (2017), equation 3",
    better="lower",
    contribution=labelled_probabilities,
    total=calibration_error,
)
