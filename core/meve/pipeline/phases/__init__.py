"""Implement each phase as a pure function over candidates, without knowing components or systems."""

from meve.pipeline.phases.budget import Composed, budget
from meve.pipeline.phases.cascade import cascade
from meve.pipeline.phases.condense import condense
from meve.pipeline.phases.fallback import fallback, reconsider
from meve.pipeline.phases.follow import follow
from meve.pipeline.phases.prioritize import prioritize
from meve.pipeline.phases.retrieve import retrieve
from meve.pipeline.phases.verify import score_candidates, verify

__all__ = [
    "Composed",
    "budget",
    "cascade",
    "condense",
    "fallback",
    "follow",
    "prioritize",
    "reconsider",
    "retrieve",
    "score_candidates",
    "verify",
]
