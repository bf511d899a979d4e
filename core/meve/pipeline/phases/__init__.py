"""Implement each phase as a pure function over candidates, without knowing components or systems."""
