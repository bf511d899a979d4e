"""MeVe decides what text may enter a language model's prompt, and accounts for every decision."""

from meve.config import RetrieverConfig
from meve.context import Context
from meve.errors import MeveError
from meve.parts.verifiers import load_verifier
from meve.retriever import Retriever
from meve.trace import Trace
from meve.types import ContextPassage, LabelledPair, Passage
from meve.version import __version__

__all__ = [
    "Context",
    "ContextPassage",
    "LabelledPair",
    "MeveError",
    "Passage",
    "Retriever",
    "RetrieverConfig",
    "Trace",
    "__version__",
    "load_verifier",
]
