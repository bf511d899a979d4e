"""Measures of a system's decision to answer or to abstain, and of its probabilities.

A system that reports no sufficiency answers whenever it returns text. A system that raised is wrong either way.
"""

from collections.abc import Sequence

import numpy as np

from meve._formulas import expected_calibration_error
from meve.evaluation.measures._measure import Contribution, SetMeasure
from meve.evaluation.types import Question, QuestionOutcome

RAISED = -1.0
ANSWERABLE, DECIDED = 0, 1
"""The positions of a decision's two numbers."""


def decision(question: Question, outcome: QuestionOutcome) -> Contribution:
    """Return whether the question is answerable, and whether the system would answer it: 1, 0 or `RAISED`."""
    sufficient = outcome.output.sufficient
    answers = bool(outcome.ids) if sufficient is None else sufficient
    return float(question.answerable), RAISED if outcome.error else float(answers)


def _decision_measure(name: str, meaning: str, source: str, *, given: int, answering: bool) -> SetMeasure:
    """Return a precision or a recall of answering, or of abstaining.

    Args:
        name: the measure's name.
        meaning: the meaning, in one sentence.
        source: the publication that defines it.
        given: `DECIDED` for the precision, `ANSWERABLE` for the recall.
        answering: whether answering is measured, rather than abstaining.
    """

    def counts(decision: Contribution) -> bool:
        return decision[given] == answering

    def total(decisions: Sequence[Contribution]) -> float | None:
        if len({decision[ANSWERABLE] for decision in decisions}) < 2:
            return None
        right = [decision[1 - given] == answering for decision in decisions if counts(decision)]
        return sum(right) / len(right) if right else 0.0

    return SetMeasure(name=name, meaning=meaning, source=source, contribution=decision, total=total, counts=counts)


def labelled_probabilities(question: Question, outcome: QuestionOutcome) -> Contribution:
    """Return pairs of a passage's probability, rounded to six digits, and its label: 1 if gold, otherwise 0.

    Questions without gold count too. A passage that answers without being labelled gold counts as wrong.
    """
    pairs = ((round(p, 6), float(i in question.gold)) for i, p in outcome.output.probabilities.items())
    return tuple(number for pair in pairs for number in pair)


def calibration_error(contributions: Sequence[Contribution]) -> float | None:
    """Return the expected calibration error in 15 bins; None without probabilities."""
    flat = np.array([number for contribution in contributions for number in contribution])
    return expected_calibration_error(flat[::2], flat[1::2].astype(bool)) if len(flat) else None


_SUFFICIENCY = (
    "sufficiency of a context: Joren et al., Sufficient Context (2025); precision and recall of its being called so"
)
_REJECTION = (
    "negative rejection: Chen et al., Benchmarking Large Language Models in Retrieval-Augmented Generation (2024), "
    "section 3; precision and recall of it"
)

MEASURES = (
    _decision_measure(
        "answering precision",
        "share of the answerable questions among those that the system would answer",
        _SUFFICIENCY,
        given=DECIDED,
        answering=True,
    ),
    _decision_measure(
        "answering recall",
        "share of the answerable questions that the system would answer",
        _SUFFICIENCY,
        given=ANSWERABLE,
        answering=True,
    ),
    _decision_measure(
        "abstention precision",
        "share of the unanswerable questions among those that the system would not answer",
        _REJECTION,
        given=DECIDED,
        answering=False,
    ),
    _decision_measure(
        "abstention recall",
        "share of the unanswerable questions that the system would not answer",
        _REJECTION,
        given=ANSWERABLE,
        answering=False,
    ),
    SetMeasure(
        name="calibration error",
        meaning="expected gap between a passage's probability and how often such passages are gold",
        source="Guo et al., On Calibration of Modern Neural Networks (2017), equation 3",
        better="lower",
        contribution=labelled_probabilities,
        total=calibration_error,
    ),
)
