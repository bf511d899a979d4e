"""Verifiers: whether a passage answers a query. Importing this loads no model and no framework."""

from pathlib import Path
from typing import TYPE_CHECKING

from meve.errors import ConfigurationError

if TYPE_CHECKING:
    from meve._extras import Needs
    from meve.ports import Embedder, Verifier

SHIPPED = "meve-verifier-1"
"""The name of the verifier that ships."""

_NEEDED = ("name", "calibration", "raw_scores", "score", "with_calibration")


def resolve_verifier(verifier: "Verifier | str | None", embedder: "Embedder") -> "Verifier":
    """The verifier that was meant.

    Args:
        verifier: None for the cross-encoder that ships; `cosine` for the calibrated cosine of the bundled
            all-MiniLM-L6-v2; another name, or a folder, for that cross-encoder, on ONNX if the folder holds nothing
            else; or an object of your own. The `name` of a verifier made here resolves to it again.
        embedder: whose vectors a cosine is taken of.

    Raises:
        ConfigurationError: no calibration ships for that embedder's cosine; an object without what a verifier needs;
            or an empty name.
        MissingExtraError: the model's packages aren't installed.
        ModelNotFoundError: no model of that name in reach.
        ModelError: a model that can't be loaded, or isn't a cross-encoder with one label.
    """
    if verifier is None or (isinstance(verifier, str) and verifier == SHIPPED):
        from meve.components.verifiers._shipped import shipped_verifier

        return shipped_verifier()
    if isinstance(verifier, str) and verifier == "cosine":
        from meve.components.verifiers.cosine import CosineVerifier

        return CosineVerifier.minilm(embedder)
    if isinstance(verifier, str):
        from meve.components.verifiers.cross_encoder import CrossEncoderVerifier

        return CrossEncoderVerifier.from_name(verifier, backend="onnx" if _only_onnx(Path(verifier)) else "torch")
    missing = [name for name in _NEEDED if not hasattr(verifier, name)]
    if missing or isinstance(verifier, type):
        lack = "is a class, not an object" if isinstance(verifier, type) else f"lacks {', '.join(missing)}"
        raise ConfigurationError(f"verifier {verifier!r} {lack}: see meve.ports.Verifier, or give a model's name")
    return verifier


def load_verifier(verifier: str | None = None) -> "Verifier":
    """A verifier, to score with by itself: `load_verifier().score("query", ["passage", "another"])`.

    Args:
        verifier: None for the cross-encoder that ships; `cosine` for the calibrated cosine of the bundled
            all-MiniLM-L6-v2; another name, or a folder, for that cross-encoder.

    Raises:
        MissingExtraError: the model's packages aren't installed.
        ModelNotFoundError: no model of that name in reach.
        ModelError: a model that can't be loaded, or isn't a cross-encoder with one label.
    """
    from meve.components.embedders import resolve_embedder

    return resolve_verifier(verifier, resolve_embedder("minilm" if verifier == "cosine" else None))


def verifier_needs(name: str | None) -> "Needs":
    """What must be installed for a verifier of that name, as for `resolve_verifier`; its embedder's needs apart.

    >>> verifier_needs(None), verifier_needs("cosine"), verifier_needs("a/model")
    ({}, {}, {'sentence_transformers': 'models'})
    """
    if name is None or name in (SHIPPED, "cosine") or _only_onnx(Path(name)):
        return {}
    return {"sentence_transformers": "models"}


def _only_onnx(folder: Path) -> bool:
    """Whether a folder holds an ONNX graph, and no weights for torch."""
    from meve.components.verifiers._onnx_runtime import FILES

    weights = [*folder.glob("*.safetensors"), *folder.glob("pytorch_model*.bin")]
    return not weights and any((folder / file).exists() for file in FILES)


def export_onnx(folder: str | Path, to: str | Path) -> Path:
    """Make the ONNX graph of a cross-encoder: see `meve.components.verifiers._onnx_export.export_onnx`.

    Raises:
        MissingExtraError: transformers, torch or onnx isn't installed.
        ModelNotFoundError: no model of that name in reach.
        ModelError: not a classifier with one label, can't be exported, or the graph gives other scores.
    """
    from meve.components.verifiers._onnx_export import export_onnx as export

    return export(folder, to)
