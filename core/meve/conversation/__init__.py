"""Turns of a conversation and the windows of important turns, for memories and dialogues alike."""

from meve.conversation.turn import Turn

__all__ = ["Turn"]
