"""`meve index`: files into an index, and on the next run only what changed."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated

import typer

from meve.cli._render import UNPRINTABLE, complain, err, progress_bar, say, show_table, table
from meve.errors import ConfigurationError
from meve.retrieval._snapshot import MANIFEST, check_index_folder, read_manifest

if TYPE_CHECKING:
    from rich.table import Table

    from meve.components.dense import DenseKind
    from meve.ingest import Chunking, IngestReport, SkippedFile
    from meve.retrieval.retriever import Retriever

SHOWN = 3
"""So many files that were skipped for one reason, of one kind, are named; then their number."""


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
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Name every file that was skipped.")] = False,
) -> None:
    """Make an index, or bring it up to date.

    Reads text, Markdown, HTML, reStructuredText, source code and JSONL; on later runs only what changed. Files that
    can't be read are skipped and listed, a few of each kind; the exit status is 0 as long as something stands in the
    index.
    """
    from meve.ingest import Chunking, find_files, ingest

    find_files(path)  # what can be refused is refused before the models load
    Chunking(tokens=chunk_tokens or Chunking().tokens)
    check_index_folder(to)
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
        show_report(report, retriever, to, kept=True, verbose=verbose)
        return
    retriever.save(to)
    show_report(report, retriever, to, verbose=verbose)


def _opened(to: Path, embedder: str | None, verifier: str | None, dense: str | None) -> "Retriever":
    from typing import cast

    from meve.retrieval.retriever import Retriever

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


def show_report(
    report: "IngestReport", retriever: "Retriever", to: Path, *, kept: bool = False, verbose: bool = False
) -> None:
    """Print what was done, what was left out, and why.

    Args:
        report: of the run.
        retriever: what it made.
        to: where that is.
        kept: whether the index is the one that was there.
        verbose: whether every file that was skipped is named.
    """
    console = err()
    for warning in report.warnings:
        complain("warning", warning)
    if report.skipped:
        show_table(skipped_table(report.skipped, most=None if verbose else SHOWN), to=console)
    gone, skipped_files = len(report.removed), len(report.skipped)
    files = f"{len(report.read)} read, {report.unchanged} unchanged, {gone} gone, {skipped_files} skipped"
    passages = f"{report.passages_added} added, {report.passages_removed} removed, {len(retriever)} in all"
    say(f"files: {files}", to=console)
    say(f"passages: {passages}", to=console)
    say(f"index: {to}{' (nothing changed)' if kept else ''}", to=console)


def skipped_table(skipped: "Sequence[SkippedFile]", most: int | None) -> "Table":
    """The files that were skipped, those of one kind and one reason together.

    Args:
        skipped: which, and why.
        most: so many of a kind and a reason are named, then their number; all, if None.
    """
    groups: dict[tuple[str, str], list[SkippedFile]] = {}
    for each in skipped:
        groups.setdefault((_ending(each.path), _in_general(each.reason)), []).append(each)
    named = {group: len(files) if most is None else most for group, files in groups.items()}
    cut = any(len(files) > named[group] for group, files in groups.items())
    title = "skipped (--verbose names all)" if cut else "skipped"
    made = table(title, "file", "reason", "passages kept", right=("passages kept",), fold=("file", "reason"))
    for group, files in groups.items():
        for each in files[: named[group]]:
            made.add_row(each.path.translate(UNPRINTABLE), each.reason.translate(UNPRINTABLE), str(each.kept or ""))
        if more := files[named[group] :]:
            ending, why = group
            told = f"… {len(more):,} more {ending}".rstrip()
            made.add_row(told, why, str(sum(each.kept for each in more) or ""), style="dim")
    return made


def _ending(path: str) -> str:
    return PurePosixPath(path).suffix.lower().translate(UNPRINTABLE)


def _in_general(reason: str) -> str:
    """What a reason shares with that of other files, such as without an offset.

    >>> _in_general("not UTF-8: byte 0xe9 at offset 3; save it as UTF-8")
    'not UTF-8'
    """
    return reason.partition(":")[0].partition(";")[0].partition(",")[0]
