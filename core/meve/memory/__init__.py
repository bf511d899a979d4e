"""Governed memory: what an agent remembers, for how long, what it may recall, and an account of all of it."""

from meve.memory._feedback.reflector import Reflected
from meve.memory._recall.searcher import Recall
from meve.memory._write.writer import Erased
from meve.memory.memory import GovernedMemory
from meve.memory.policy import ClassRule, Policy
from meve.memory.records import MemoryRecord

__all__ = ["ClassRule", "Erased", "GovernedMemory", "MemoryRecord", "Policy", "Recall", "Reflected"]
