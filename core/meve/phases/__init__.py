"""The five phases, each a pure function over candidates. They know ports and values, never parts or systems."""

from meve.phases.budget import Composed, budget
from meve.phases.cascade import cascade
from meve.phases.condense import condense
from meve.phases.fallback import fallback, reconsider
from meve.phases.follow import follow
from meve.phases.prioritize import prioritize
from meve.phases.retrieve import retrieve
from meve.phases.verify import judge, verify

__all__ = [
    "Composed",
    "budget",
    "cascade",
    "condense",
    "fallback",
    "follow",
    "judge",
    "prioritize",
    "reconsider",
    "retrieve",
    "verify",
]
