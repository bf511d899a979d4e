"""Adjusts the scores of memories after an answer."""
