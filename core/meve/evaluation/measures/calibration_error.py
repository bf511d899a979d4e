"""Do a system's probabilities come true? Over every passage that it gave one to, also those it turned down."""

from collections.abc import Sequence

import numpy as np

from meve._formulas import expected_calibration_error
from meve.evaluation.measures.base import Part, SetMeasure
from meve.evaluation.outcome import Outcome
from meve.evaluation.types import Question


def probabilities(question: Question, outcome: Outcome) -> Part:
    """Of each passage that got one, the probability to six digits, then 1 if it is gold, otherwise 0.

    Questions without gold count too: there, nothing should get a high one. A passage that answers without being
    labelled gold counts as wrong.
    """
    pairs = ((round(p, 6), float(i in question.gold)) for i, p in outcome.handed.judged.items())
    return tuple(number for pair in pairs for number in pair)


def error(parts: Sequence[Part]) -> float | None:
    """The expected calibration error against gold labels, in 15 bins; None where no probability was given."""
    flat = np.array([number for part in parts for number in part])
    return expected_calibration_error(flat[::2], flat[1::2].astype(bool)) if len(flat) else None


CALIBRATION_ERROR = SetMeasure(
    name="calibration error",
    meaning="expected gap between a passage's probability and how often such passages are gold",
    source="Guo et al., On Calibration of Modern Neural Networks (2017), equation 3",
    better="lower",
    part=probabilities,
    total=error,
)
