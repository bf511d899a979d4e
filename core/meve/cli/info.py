"""`meve info`: prints what an index holds, without loading a model."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from meve.cli._index_place import Collection, is_on_server, open_collection
from meve.cli._memory_options import refuse_password
from meve.cli._render import print_table, table, write_json


def info(
    index: Annotated[
        str,
        typer.Argument(
            metavar="DIR|URL",
            help="The index's folder, or the URL of a server.",
            envvar="MEVE_INDEX",
            callback=refuse_password,
        ),
    ],
    collection: Collection = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Print the contents, models, settings and sizes of an index."""
    is_served = is_on_server(index, collection)
    about = describe_collection(index, str(collection)) if is_served else describe(Path(index))
    if as_json:
        write_json(about)
        return
    grid = table(str(collection) if is_served else index, "property", "value", fold=("value",))
    for name, value in about.items():
        if isinstance(value, dict):
            for key, each in value.items():
                grid.add_row(f"{name}.{key}", _format_value(each))
        else:
            grid.add_row(name, _format_value(value))
    print_table(grid)


def describe_collection(url: str, collection: str) -> dict[str, Any]:
    """Return how many passages a collection has, and the models that it was made with.

    Raises:
        MeveError: as `open_collection`.
    """
    with open_collection(url, collection) as (server, models):
        names = ("dimension", "similarity")
        return {
            "passages": len(server),
            "embedder": {"name": models.embedder, **{name: getattr(models, name) for name in names}},
            "tokens": {"name": models.tokens},
            "dense": {"kind": server.kind},
        }


def describe(path: Path) -> dict[str, Any]:
    """Return the manifest and the record of sources, in the order of the table.

    Raises:
        StorageError: the index is absent or unreadable.
    """
    from meve.retrieval._snapshot import read_manifest

    manifest = read_manifest(path)
    sizes = {name: facts["bytes"] for name, facts in manifest["files"].items()}
    return {
        "passages": manifest.get("passages"),
        **_read_source_record(path / manifest["generation"] / "extra.json"),
        "embedder": manifest.get("embedder"),
        "verifier": manifest.get("verifier"),
        "evidence": _evidence(manifest),
        "sufficiency": _sufficiency(manifest),
        "tokens": manifest.get("tokens"),
        "dense": manifest.get("dense"),
        "lexical": manifest.get("lexical"),
        "config": manifest.get("config"),
        "bytes": {**sizes, "total": sum(sizes.values())},
        "format": manifest["format"],
        "meve_version": manifest.get("meve"),
        "created": manifest.get("created"),
    }


def _read_source_record(extra: Path) -> dict[str, Any]:
    from meve._json_limits import parse_json
    from meve._regular_files import open_regular
    from meve.ingest.report import KEY

    try:
        with open_regular(extra) as file:
            record = parse_json(file.read())[KEY]
        return {"files": len(record["sources"]), "folder": record["root"], "chunking": record["settings"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {"files": None}  # passages that were added by code, or a save in progress


def _evidence(manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the evidence model whose calibration makes the probabilities: the index's own, else the one that ships.

    None if the verifier judges alone, by its own calibration.
    """
    from meve.components._shipped_models import find_fitted_models

    verifier, embedder = manifest.get("verifier") or {}, manifest.get("embedder") or {}
    name, calibration = str(verifier.get("name")), verifier.get("calibration") or {}
    own: Mapping[str, Any] = manifest.get("evidence") or {}
    if own:  # it stays with the index when another verifier is chosen, and holds for its own alone
        return own if own.get("verifier") == name else None
    shipped = find_fitted_models(name, calibration, str(embedder.get("name"))).evidence
    return None if shipped is None else {"name": shipped.name, "calibration": shipped.calibration.to_dict()}


def _sufficiency(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sufficiency estimator and its threshold; None if only verified passages decide."""
    from meve.calibration.probability_maps import calibration_from_dict
    from meve.components._shipped_models import find_estimator
    from meve.components.evidence import EvidenceModel
    from meve.components.verifiers import SHIPPED_VERIFIER

    verifier, config = manifest.get("verifier") or {}, manifest.get("config") or {}
    name, calibration = str(verifier.get("name")), verifier.get("calibration") or {}
    embedder = str((manifest.get("embedder") or {}).get("name"))
    evidence = EvidenceModel.from_dict(manifest["evidence"]) if manifest.get("evidence") else None
    estimator = (
        find_estimator(name, calibration_from_dict(calibration), embedder, evidence)
        if name == SHIPPED_VERIFIER
        else None
    )
    if estimator is None:
        return {"estimator": None, "threshold": None}
    chosen = config.get("sufficiency_threshold")
    return {"estimator": estimator.name, "threshold": estimator.threshold if chosen is None else chosen}


def _format_value(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) and value.isprintable() else json.dumps(value, ensure_ascii=False)
