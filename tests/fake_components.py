"""Make components with predictable results, and dialogues that use them."""

from meve.dialogue import Dialogue
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder


def make_components(**changed):
    return {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter(), **changed}


def make_dialogue(turns, **components):
    return Dialogue.from_turns(turns, **{"embedder": WordEmbedder(), "tokens": WordCounter(), **components})
