"""Judges whether statements contradict each other, say the same, or replace each other, by rules or by a model."""
