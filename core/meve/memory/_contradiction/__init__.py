"""Detects contradictions between statements, by rules or by a model."""
