"""Retrieve verified context for language models, and explain every decision."""

import logging as _logging

from meve._version import __version__
from meve.components.verifiers import load_verifier
from meve.errors import MeveError
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.context import Context
from meve.pipeline.trace import Trace
from meve.retrieval.retriever import Retriever
from meve.types import ContextPassage, LabelledPair, Passage

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

_logging.getLogger("meve").addHandler(_logging.NullHandler())
