"""Adjust scores after an answer."""
