"""Do a system's probabilities come true? Over every passage that it gave one to, also those it turned down.

Source: Guo et al., On Calibration of Modern Neural Networks (2017), eq. 3.
"""

from collections.abc import Sequence

import numpy as np

from meve.evaluation.measures.base import Judged, SetMeasure
from meve.formulas import expected_calibration_error


def error(judged: Sequence[Judged]) -> float | None:
    """The expected calibration error against gold labels, in 15 bins; None where no probability was given.

    Questions without gold count too: there, nothing should get a high one. A passage that answers without being
    labelled gold counts as wrong.
    """
    pairs = [(p, i in question.gold) for question, outcome in judged for i, p in outcome.handed.judged.items()]
    if not pairs:
        return None
    probabilities, relevant = zip(*pairs, strict=True)
    return expected_calibration_error(np.array(probabilities), np.array(relevant))


CALIBRATION_ERROR = SetMeasure(
    name="calibration error",
    meaning="expected gap between a passage's probability and how often such passages are gold",
    better="lower",
    value=error,
)
