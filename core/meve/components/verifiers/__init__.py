"""Verifiers estimate whether a passage answers a query. Importing this package loads no model and no framework."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias

from meve._extras import Needs
from meve.components._bundled_names import refuse_typo
from meve.errors import ConfigurationError
from meve.ports import Embedder, Verifier

SHIPPED_VERIFIER = "meve-verifier-1"
"""The name of the verifier that ships."""


VerifierLike: TypeAlias = Verifier | str | Callable[[str, list[str]], Any]
"""A verifier object, a model's name or folder, or a function that scores a list of passages for a query; objects of
other kinds that `meve.components.verifiers.own.adapt_verifier` knows fit too."""


def resolve_verifier(
    verifier: VerifierLike | None,
    embedder: Embedder,
    *,
    max_length: int | None = None,
    local_files_only: bool = False,
) -> Verifier:
    """Return the verifier for a setting.

    Args:
        verifier: None for the bundled cross-encoder; `cosine` for the calibrated cosine of all-MiniLM-L6-v2; another
            name or folder for that cross-encoder, on ONNX if the folder holds no torch weights; or an object or
            function of your own, as `meve.components.verifiers.own.adapt_verifier` takes it. A verifier's `name`
            resolves to the same verifier.
        embedder: the embedder whose vectors `cosine` compares.
        max_length: tokens that a cross-encoder of yours reads at once; None for its maximum.
        local_files_only: whether to never contact a hub.

    Raises:
        ConfigurationError: no calibration ships for that embedder's cosine, the object can't be used as a verifier,
            or the name is empty or nearly a bundled one.
        MissingExtraError: the model's packages aren't installed.
        ModelNotFoundError: no such model on this machine or on the hub.
        ModelError: the model can't be loaded, or isn't a cross-encoder with one label.
    """
    if verifier is not None and not isinstance(verifier, str):
        from meve.components.verifiers.own import adapt_verifier

        return adapt_verifier(verifier)
    if verifier == "cosine":
        from meve.components.verifiers.cosine import CosineVerifier

        return CosineVerifier.for_minilm(embedder)
    return _load_cross_encoder(verifier, max_length=max_length, local_files_only=local_files_only)


def load_verifier(verifier: str | None = None, *, device: str | None = None) -> Verifier:
    """Load a verifier by itself, or for a GPU: `load_verifier(device="cuda").score("query", ["passage", "another"])`.

    Args:
        verifier: None for the bundled cross-encoder; `cosine` for the calibrated cosine of all-MiniLM-L6-v2; another
            name or folder for that cross-encoder.
        device: such as `cpu`, `cuda` or `cuda:1`. The bundled cross-encoder runs on ONNX Runtime for None and `cpu`,
            and on torch for others, which needs `pip install 'meve[onnx]'` and rounds less (docs/retrieval-models.md).
            For another cross-encoder, None lets torch choose. `cosine` takes None only.

    Raises:
        ConfigurationError: the device can't be used.
        MissingExtraError: the model's packages aren't installed.
        ModelNotFoundError: no such model on this machine or on the hub.
        ModelError: the model can't be loaded, or isn't a cross-encoder with one label.
    """
    if verifier != "cosine":
        return _load_cross_encoder(verifier, device)
    if device is not None:
        raise ConfigurationError(f"device must be left out for 'cosine', whose embedder is on the CPU, got {device!r}")
    from meve.components.embedders import resolve_embedder

    return resolve_verifier("cosine", resolve_embedder("minilm"))


def _load_cross_encoder(
    name: str | None, device: str | None = None, *, max_length: int | None = None, local_files_only: bool = False
) -> Verifier:
    if name is not None and not isinstance(name, str | Path):
        raise ConfigurationError(f"verifier must be a model's name or folder, got {name!r:.80}")
    device = None if device is None else str(device)
    if name not in (None, SHIPPED_VERIFIER):
        refuse_typo("verifier", str(name), (SHIPPED_VERIFIER, "cosine"), "a folder, and the name of a cross-encoder")
        from meve.components.verifiers.cross_encoder import CrossEncoderVerifier

        backend: Literal["onnx", "torch"] = "onnx" if _only_onnx(Path(name)) else "torch"
        return CrossEncoderVerifier.from_name(
            name, backend=backend, max_length=max_length, device=device, local_files_only=local_files_only
        )
    from meve.components.verifiers._shipped import load_shipped_verifier, load_shipped_verifier_in_torch

    return load_shipped_verifier() if device in (None, "cpu") else load_shipped_verifier_in_torch(device)


def verifier_needs(name: str | None) -> Needs:
    """Return the packages that `resolve_verifier` requires for a name, without those of its embedder.

    >>> verifier_needs(None), verifier_needs("cosine"), verifier_needs("a/model")
    ({}, {}, {'sentence_transformers': 'models'})
    """
    if name is None or name in (SHIPPED_VERIFIER, "cosine") or _only_onnx(Path(name)):
        return {}
    return {"sentence_transformers": "models"}


def _only_onnx(folder: Path) -> bool:
    from meve.components.verifiers._onnx_runtime import FILES

    weights = [*folder.glob("*.safetensors"), *folder.glob("pytorch_model*.bin")]
    return not weights and any((folder / file).exists() for file in FILES)


def export_onnx(folder: str | Path, to: str | Path) -> Path:
    """Export a cross-encoder to ONNX: see `meve.components.verifiers._onnx_export.export_onnx`.

    Raises:
        MissingExtraError: transformers, torch or onnx isn't installed.
        ModelNotFoundError: no such model on this machine or on the hub.
        ModelError: not a classifier with one label, the export failed, or the graph's scores differ.
    """
    from meve.components.verifiers._onnx_export import export_onnx as export

    return export(folder, to)
