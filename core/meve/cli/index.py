"""`meve index`: indexes files, and on later runs only those that changed."""

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, cast

import typer

from meve._extras import require
from meve.cli._index_place import Collection, IndexPlace, is_on_server
from meve.cli._render import (
    UNPRINTABLE,
    get_console,
    print_line,
    print_message,
    print_table,
    printed_log,
    progress_bar,
    table,
)
from meve.errors import ConfigurationError
from meve.retrieval._snapshot import MANIFEST, check_index_folder, read_manifest

if TYPE_CHECKING:
    from rich.table import Table

    from meve.components.dense import DenseKind
    from meve.ingest import Chunking, IngestReport, SkippedFile
    from meve.retrieval.retriever import Retriever

MAX_SKIPPED = 3
"""The maximum number of skipped files listed for one kind and reason."""


def index(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A folder, or a file.")],
    to: IndexPlace,
    collection: Collection = None,
    chunk_tokens: Annotated[
        int | None,
        typer.Option(
            help="Maximum tokens of a passage; 200, or as in the last run. On a server, give the same each time.",
            show_default=False,
        ),
    ] = None,
    chunk_overlap: Annotated[
        int | None,
        typer.Option(help="Tokens shared by adjacent passages; 0, or as in the last run.", show_default=False),
    ] = None,
    embedder: Annotated[
        str | None,
        typer.Option(
            help="minilm or static (built in; faster, finds less), or a sentence-transformers model; default: minilm."
        ),
    ] = None,
    verifier: Annotated[
        str | None,
        typer.Option(help="A cross-encoder or its folder, or cosine; by default the built-in one. Not for a server."),
    ] = None,
    dense: Annotated[
        str | None,
        typer.Option(
            help="The vector index of a new index; auto chooses by size.", metavar="auto|flat|hnsw|ivf|rabitq"
        ),
    ] = None,
    max_bytes: Annotated[int, typer.Option(help="Skip files with more bytes.")] = 20_000_000,
    max_seconds: Annotated[float, typer.Option(help="Skip files that take longer to read.")] = 120.0,
    moved: Annotated[
        bool, typer.Option("--moved", help="The folder of the last run is at PATH now: moved, renamed or cloned again.")
    ] = False,
    ray: Annotated[
        str | None,
        typer.Option(
            help="Spread the work over a Ray cluster, for a server: its address, or auto for the one of this machine, "
            "or else its cores.",
            metavar="auto|ADDRESS",
            show_default=False,
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Name every skipped file.")] = False,
) -> None:
    """Create or update an index.

    Reads text, Markdown, HTML, reStructuredText, source code, notebooks, mails (.eml), CSV and JSONL, and with the
    extra `files` PDF and Word; on later runs only changed files. Unreadable files are skipped and listed. The exit
    status is 0 unless the index is empty.
    """
    from meve.ingest import Chunking, find_files, ingest, last_chunking

    find_files(path)  # fails before the models load
    checked = Chunking(tokens=Chunking().tokens if chunk_tokens is None else chunk_tokens)
    if moved and is_on_server(to, collection):
        raise ConfigurationError("--moved is for an index in a folder; passages on a server are known by their folder")
    if ray is not None:
        _index_on_ray(
            ray, path, to, collection, verbose=verbose, embedder=embedder, verifier=verifier, dense=dense,
            chunking=Chunking(tokens=checked.tokens, overlap=chunk_overlap or 0),
            max_bytes=max_bytes, max_seconds=max_seconds,
        )  # fmt: skip
        return
    retriever = _open(to, collection, embedder, verifier, dense)
    before = dict(retriever.extra)
    last = last_chunking(retriever)
    chunking = Chunking(
        tokens=last.tokens if chunk_tokens is None else chunk_tokens,
        overlap=last.overlap if chunk_overlap is None else chunk_overlap,
    )
    exclude = () if retriever.is_on_server else (to,)
    with progress_bar() as advance, printed_log():
        report = ingest(
            path, retriever, chunking=chunking, max_bytes=max_bytes, max_seconds=max_seconds, exclude=exclude,
            moved=moved,
            progress=lambda stage, *done: advance(f"{stage} {'files' if stage == 'reading' else 'passages'}", *done),
        )  # fmt: skip
    kept = not report.changed and retriever.extra == before
    if not retriever.is_on_server:
        kept = kept and _names_same_models(retriever, Path(to))
        if not kept:
            retriever.save(to)
    print_report(report, retriever, f"collection {collection}" if collection else to, kept=kept, verbose=verbose)


def _index_on_ray(
    address: str, path: Path, to: str, collection: str | None, *, verbose: bool, embedder: str | None,
    verifier: str | None, dense: str | None, chunking: "Chunking", max_bytes: int, max_seconds: float,
) -> None:  # fmt: skip
    from meve.ingest import ingest_on_ray
    from meve.ingest.ray_shards import NEEDS

    require("meve index", NEEDS)
    if not is_on_server(to, collection):
        raise ConfigurationError(f"--ray needs the URL of a server in --to, got {to!r}: processes share no folder")
    open_retriever = partial(_open, to, collection, embedder, verifier, dense)
    with progress_bar() as advance, printed_log():
        report = ingest_on_ray(
            path, open_retriever, address=address, chunking=chunking, max_bytes=max_bytes, max_seconds=max_seconds,
            progress=lambda stage, *done: advance(f"{stage} shards", *done),
        )  # fmt: skip
    with closing(open_retriever()) as retriever:
        print_report(report, retriever, f"collection {collection}", kept=not report.changed, verbose=verbose)


def _open(
    to: str, collection: str | None, embedder: str | None, verifier: str | None, dense: str | None
) -> "Retriever":
    """Return the retriever over a folder or a server.

    Raises:
        ConfigurationError: options that don't go together.
    """
    from meve.retrieval.retriever import Retriever

    if not is_on_server(to, collection):
        check_index_folder(Path(to))
        return _open_index(Path(to), embedder, verifier, dense)
    if dense is not None:
        raise ConfigurationError(f"--dense must be left out for a server, which has its own index; got {dense!r}")
    if verifier is not None:
        raise ConfigurationError(
            f"--verifier must be left out for a server, which keeps no settings, got {verifier!r}: give it to "
            "Retriever.over"
        )
    return Retriever.over(to, collection=str(collection), embedder=embedder)


def _open_index(to: Path, embedder: str | None, verifier: str | None, dense: str | None) -> "Retriever":
    from meve.retrieval.retriever import Retriever

    if (to / MANIFEST).exists():
        if dense not in (None, "auto"):
            kind = read_manifest(to)["dense"]["kind"]
            if dense != kind:
                raise ConfigurationError(
                    f"--dense is {dense!r}, but the index at {to} is {kind!r}: omit --dense, or choose a new folder"
                )
        return Retriever.load(to, embedder=embedder, verifier=verifier)
    return Retriever.empty(embedder=embedder, verifier=verifier, dense=cast("DenseKind", dense or "auto"))


def _names_same_models(retriever: "Retriever", to: Path) -> bool:
    manifest = read_manifest(to) if (to / MANIFEST).exists() else {}
    models = {"embedder": retriever.embedder.name, "verifier": retriever.verifier.name}
    return all(manifest.get(part, {}).get("name") == name for part, name in models.items())


def print_report(report: "IngestReport", retriever: "Retriever", to: str, *, kept: bool, verbose: bool) -> None:
    """Print what was indexed, and which files were skipped and why; `kept` says that the index is unchanged."""
    console = get_console(stderr=True)
    for warning in report.warnings:
        print_message("warning", warning)
    if report.skipped:
        print_table(_skipped_table(report.skipped, most=None if verbose else MAX_SKIPPED), to=console)
    files = f"{len(report.read)} read, {report.unchanged} unchanged, {len(report.removed)} removed"
    passages = f"{report.passages_added} added, {report.passages_removed} removed, {len(retriever)} in total"
    print_line(f"files: {files}, {len(report.skipped)} skipped", to=console)
    print_line(f"passages: {passages}", to=console)
    print_line(f"index: {to}{' (nothing changed)' if kept else ''}", to=console)


def _skipped_table(skipped: "Sequence[SkippedFile]", most: int | None) -> "Table":
    """Return a table of the skipped files; at most `most` of the same suffix and reason."""
    groups: dict[tuple[str, str], list[SkippedFile]] = {}
    for each in skipped:
        suffix = PurePosixPath(each.path).suffix.lower().translate(UNPRINTABLE)
        groups.setdefault((suffix, _general_reason(each.reason)), []).append(each)
    is_complete = most is None or all(len(files) <= most for files in groups.values())
    title = "skipped" if is_complete else "skipped (--verbose names all)"
    grid = table(title, "file", "reason", "passages kept", right=("passages kept",), fold=("file", "reason"))
    for (suffix, reason), files in groups.items():
        for each in files[:most]:
            grid.add_row(each.path.translate(UNPRINTABLE), each.reason.translate(UNPRINTABLE), str(each.kept or ""))
        if more := [] if most is None else files[most:]:
            kept = sum(each.kept for each in more)
            grid.add_row(f"… {len(more):,} more {suffix}".rstrip(), reason, str(kept or ""), style="dim")
    return grid


def _general_reason(reason: str) -> str:
    """Return a reason without details such as an offset, to group files by.

    >>> _general_reason("not UTF-8: byte 0xe9 at offset 3; save it as UTF-8")
    'not UTF-8'
    """
    return reason.partition(":")[0].partition(";")[0].partition(",")[0]
