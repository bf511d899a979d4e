"""`meve index`: files into an index, and on the next run only what changed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meve.cli.render import complain, err, progress_bar, say, table
from meve.errors import ConfigurationError
from meve.snapshot import MANIFEST, check_place, read_manifest

if TYPE_CHECKING:
    from meve.ingest import Chunking, IngestReport
    from meve.parts.dense import DenseKind
    from meve.retriever import Retriever


def index(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A folder, or a file.")],
    to: Annotated[Path, typer.Option("--to", help="The index's folder.", metavar="DIR")],
    chunk_tokens: Annotated[
        int | None, typer.Option(help="Most tokens of a passage: 200, or as in the last run.", show_default=False)
    ] = None,
    chunk_overlap: Annotated[
        int | None, typer.Option(help="Tokens that neighbours may share: 0, or as in the last run.", show_default=False)
    ] = None,
    embedder: Annotated[
        str | None,
        typer.Option(help="A sentence-transformers model or its folder, or minilm; else the static one that ships."),
    ] = None,
    verifier: Annotated[
        str | None, typer.Option(help="A cross-encoder or its folder, or cosine; else the one that ships.")
    ] = None,
    dense: Annotated[
        str | None,
        typer.Option(help="The vector index of a new index: by size, if not given.", metavar="auto|flat|hnsw|ivf"),
    ] = None,
    max_bytes: Annotated[int, typer.Option(help="Skip larger files.")] = 20_000_000,
) -> None:
    """Make an index, or bring it up to date.

    Reads text, Markdown, HTML, reStructuredText, source code and JSONL; on later runs only what changed. Files that
    can't be read are skipped and listed; the exit status is 0 as long as something stands in the index.
    """
    from meve.ingest import Chunking, find_files, ingest

    find_files(path)  # what can be refused is refused before the models load
    Chunking(tokens=chunk_tokens or Chunking().tokens)
    check_place(to)
    retriever = _opened(to, embedder, verifier, dense)
    before = dict(retriever.extra)
    with progress_bar() as advance:
        report = ingest(
            path,
            retriever,
            chunking=_chunking(retriever, chunk_tokens, chunk_overlap),
            max_bytes=max_bytes,
            exclude=[to],
            progress=lambda stage, done, total: advance(
                f"{stage} {'files' if stage == 'reading' else 'passages'}", done, total
            ),
        )
    if not report.changed and retriever.extra == before and _as_saved(retriever, to):
        show_report(report, retriever, to, kept=True)
        return
    retriever.save(to)
    show_report(report, retriever, to)


def _opened(to: Path, embedder: str | None, verifier: str | None, dense: str | None) -> "Retriever":
    from typing import cast

    from meve.retriever import Retriever

    if (to / MANIFEST).exists():
        if dense not in (None, "auto"):
            kind = read_manifest(to)["dense"]["kind"]
            if dense != kind:
                raise ConfigurationError(
                    f"--dense is {dense!r}, but the index at {to} is {kind!r}: leave it out, or index into a new folder"
                )
        return Retriever.load(to, embedder=embedder, verifier=verifier)
    return Retriever.empty(embedder=embedder, verifier=verifier, dense=cast("DenseKind", dense or "auto"))


def _as_saved(retriever: "Retriever", to: Path) -> bool:
    """Whether the index there names the same models."""
    manifest = read_manifest(to) if (to / MANIFEST).exists() else {}
    models = {"embedder": retriever.embedder.name, "verifier": retriever.verifier.name}
    return all(manifest.get(part, {}).get("name") == name for part, name in models.items())


def _chunking(retriever: "Retriever", tokens: int | None, overlap: int | None) -> "Chunking | None":
    from meve.ingest import Chunking, last_chunking

    if tokens is None and overlap is None:
        return None
    last = last_chunking(retriever)
    return Chunking(
        tokens=last.tokens if tokens is None else tokens, overlap=last.overlap if overlap is None else overlap
    )


def show_report(report: "IngestReport", retriever: "Retriever", to: Path, *, kept: bool = False) -> None:
    """Print what was done, what was left out, and why; `kept`, if the index is the one that was there."""
    console = err()
    for warning in report.warnings:
        complain("warning", warning)
    if report.skipped:
        skipped = table("skipped", "file", "reason", "passages kept", right=("passages kept",), fold=("file", "reason"))
        for each in report.skipped:
            skipped.add_row(each.path, each.reason, str(each.kept or ""))
        console.print(skipped)
    gone, skipped_files = len(report.removed), len(report.skipped)
    files = f"{len(report.read)} read, {report.unchanged} unchanged, {gone} gone, {skipped_files} skipped"
    passages = f"{report.passages_added} added, {report.passages_removed} removed, {len(retriever)} in all"
    say(f"files: {files}", to=console)
    say(f"passages: {passages}", to=console)
    say(f"index: {to}{' (nothing changed)' if kept else ''}", to=console)
