"""Recognises all-MiniLM-L6-v2 in a framework's embeddings, so that a store's vectors serve as MeVe's own."""

import logging
from collections.abc import Callable, Sequence

import numpy as np

from meve._formulas import cosines
from meve.components.embedders.onnx import SHIPPED_MINILM, OnnxEmbedder
from meve.errors import MeveError, ModelError, wrap_errors

_PROBES = ("Water tomatoes twice a week.", "Who signed the treaty of 1648?", "def read(file): return file.read()")
logger = logging.getLogger("meve")
_SHORT = 200
"""The number of characters of which no text has more tokens than MiniLM reads."""
LEAST_COSINE = 0.99
"""The least cosine between two vectors of one text. Published weights and those in eight bits reach 0.999."""


def is_shipped_minilm(
    name: str, embedder: str, embed: Callable[[Sequence[str]], Sequence[Sequence[float]]] | None
) -> bool:
    """Return whether foreign embeddings are the model of an embedder, if that is MeVe's MiniLM; not if they fail.

    Args:
        name: the foreign model's name; one without `minilm` isn't tried.
        embedder: the name of MeVe's embedder.
        embed: embeds texts by the foreign model.
    """
    if embedder != SHIPPED_MINILM or embed is None or "minilm" not in name.lower():
        return False
    try:
        with wrap_errors(ModelError, "embedding by the store's model"):
            foreign = np.array(embed(list(_PROBES)))
    except MeveError as error:
        why = type(error.__cause__ or error).__name__
        logger.warning("the store's vectors aren't used, since its model failed: %s", why)
        return False
    own = OnnxEmbedder.load_shipped().embed_passages(_PROBES)
    if foreign.shape != own.shape:
        return False
    agreement = [cosines(mine, other[np.newaxis])[0] for mine, other in zip(own, foreign, strict=True)]
    return bool(min(agreement) >= LEAST_COSINE)


def is_read_whole(text: str) -> bool:
    """Return whether a text fits MiniLM's window; other classes embed the beginning of a longer one alone."""
    return len(text) <= _SHORT or OnnxEmbedder.load_shipped().fits_window(text)
