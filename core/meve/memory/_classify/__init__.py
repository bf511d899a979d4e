"""Classifies text: tags of memories, and the facts that a turn states."""
