"""Turns of a conversation: their graph, what a question may reach from one of them, and windows of important turns."""

from meve.conversation.conversation import Conversation, ConversationOptions
from meve.conversation.graph import PlacedTurn, TurnGraph
from meve.conversation.ranking import Ranking
from meve.conversation.slices import SlicePolicy
from meve.conversation.turn import Turn

__all__ = [
    "Conversation", "ConversationOptions", "PlacedTurn", "Ranking", "SlicePolicy", "Turn", "TurnGraph",
]  # fmt: skip
