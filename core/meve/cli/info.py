"""`meve info`: what an index holds, told without loading a model."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from meve.cli._render import show_table, table, write_json


def info(
    index: Annotated[Path, typer.Argument(metavar="DIR", help="The index's folder.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else.")] = False,
) -> None:
    """Print what an index holds.

    Counts, models, formats, settings and sizes on disk; no model is loaded.
    """
    about = describe(index)
    if as_json:
        write_json(about)
        return
    made = table(str(index), "what", "value", fold=("value",))
    for name, value in about.items():
        if isinstance(value, dict):
            for key, each in value.items():
                made.add_row(f"{name}.{key}", _shown(each))
        else:
            made.add_row(name, _shown(value))
    show_table(made)


def describe(path: Path) -> dict[str, Any]:
    """The manifest and the record of what was read, in a reader's order.

    Raises:
        StorageError: no index there, or one that can't be read.
    """
    from meve.retrieval._snapshot import read_manifest

    manifest = read_manifest(path)
    sizes = {name: facts["bytes"] for name, facts in manifest["files"].items()}
    return {
        "passages": manifest.get("passages"),
        **_ingested(path / manifest["generation"] / "extra.json"),
        "embedder": manifest.get("embedder"),
        "verifier": manifest.get("verifier"),
        "sufficiency": _sufficiency(manifest),
        "tokens": manifest.get("tokens"),
        "dense": manifest.get("dense"),
        "lexical": manifest.get("lexical"),
        "config": manifest.get("config"),
        "bytes": {**sizes, "total": sum(sizes.values())},
        "format": manifest["format"],
        "meve": manifest.get("meve"),
        "created": manifest.get("created"),
    }


def _ingested(extra: Path) -> dict[str, Any]:
    from meve.ingest.report import KEY

    try:
        record = json.loads(extra.read_text(encoding="utf-8"))[KEY]
        return {"files": len(record["sources"]), "from": record["root"], "cut": record["settings"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {"files": None}  # passages that came by code, or a save under way


def _sufficiency(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What a context is called sufficient by; without an estimator, what is verified decides."""
    from meve.components._shipped_models import estimator_for

    verifier, config = manifest.get("verifier") or {}, manifest.get("config") or {}
    found = estimator_for(str(verifier.get("name")), verifier.get("calibration") or {})
    if found is None:
        return {"estimator": None, "threshold": None}
    chosen = config.get("sufficiency_threshold")
    return {"estimator": found.name, "threshold": found.threshold if chosen is None else chosen}


def _shown(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) and value.isprintable() else json.dumps(value, ensure_ascii=False)
