"""Evaluation of retrieval and memory: what reaches a prompt, at how many tokens, with confidence intervals.

`datasets` reads questions over passages, `systems` answers them, `measures` scores the answers, and `experiments` runs
them. On the command line: `meve bench`.
"""

from meve.evaluation.types import (
    EvaluationSet,
    Evidence,
    GoldSentence,
    Peer,
    Question,
    QuestionOutcome,
    SharedComponents,
    System,
    SystemOutput,
)

__all__ = [
    "EvaluationSet",
    "Evidence",
    "GoldSentence",
    "Peer",
    "Question",
    "QuestionOutcome",
    "SharedComponents",
    "System",
    "SystemOutput",
]
