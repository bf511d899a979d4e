"""Governed memory: what an agent remembers, for how long, what it may recall, and an account of all of it."""

from meve.memory.policy import ClassRule, Policy

__all__ = ["ClassRule", "Policy"]
