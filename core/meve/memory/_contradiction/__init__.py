"""Detect contradictions between statements."""
