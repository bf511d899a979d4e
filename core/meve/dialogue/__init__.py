"""Small contexts of long dialogues: what a model with a small window needs to answer, and an account of it."""

from meve.dialogue._cache import Kept
from meve.dialogue.context import SmallContext, SmallTrace
from meve.dialogue.dialogue import Dialogue
from meve.dialogue.sessions import Sessions
from meve.dialogue.small_context import small_context
from meve.dialogue.turns import Turn

__all__ = ["Dialogue", "Kept", "Sessions", "SmallContext", "SmallTrace", "Turn", "small_context"]
