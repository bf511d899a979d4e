"""Evaluation: how much of the right text a retriever puts into a prompt, at how many tokens, and how sure that is.

Sets of questions over passages (`datasets`), systems that answer them (`systems`), measures (`measures`), experiments
that run the one on the other (`experiments`), and reports. On the command line: `meve bench`.
"""

from meve.evaluation.outcome import Outcome
from meve.evaluation.types import EvaluationSet, Evidence, GoldSentence, Handed, Parts, Peer, Question, System

__all__ = ["EvaluationSet", "Evidence", "GoldSentence", "Handed", "Outcome", "Parts", "Peer", "Question", "System"]
