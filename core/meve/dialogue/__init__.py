"""Small contexts: the few turns of a long dialogue that a model with a small window needs to answer a question."""

from meve.conversation import Turn
from meve.dialogue._cache import DialogueCache
from meve.dialogue._components import DialogueOptions
from meve.dialogue._turn_passages import TurnPassage
from meve.dialogue.dialogue import Dialogue
from meve.dialogue.result import SmallContext, SmallTrace
from meve.dialogue.sessions import DialogueSessions
from meve.dialogue.small_context import SmallContextOptions, build_small_context

__all__ = [
    "Dialogue", "DialogueCache", "DialogueOptions", "DialogueSessions", "SmallContext", "SmallContextOptions",
    "SmallTrace", "Turn", "TurnPassage", "build_small_context",
]  # fmt: skip
