"""Governed memory: what an agent remembers, for how long, what it may recall, and an account of all of it."""

from meve.memory.memory import GovernedMemory
from meve.memory.policy import ClassRule, Policy
from meve.memory.records import MemoryRecord
from meve.memory.reflecting import Reflected
from meve.memory.search import Recall
from meve.memory.writing import Erased

__all__ = ["ClassRule", "Erased", "GovernedMemory", "MemoryRecord", "Policy", "Recall", "Reflected"]
