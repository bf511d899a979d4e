"""Ingests a folder into an index, and on later runs only what changed."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meve.clock import Clock, SystemClock
from meve.errors import ConfigurationError, IngestError
from meve.ingest._converted_text import ConvertedText
from meve.ingest._converter import Converter
from meve.ingest._file_kinds import find_kind
from meve.ingest._file_readers import MAX_BYTES, FileData, decode, read_data, read_status
from meve.ingest._file_walk import FolderListing, find_files
from meve.ingest._grammars import load_grammar
from meve.ingest._passage_record import mark_passages, read_record
from meve.ingest._passages import explain_lack, split_text
from meve.ingest.chunking import Chunker, Chunking
from meve.ingest.report import IngestReport, Record, SkippedFile, SourceRecord
from meve.types import Passage, StageProgress

if TYPE_CHECKING:
    from meve.retrieval.retriever import Retriever

logger = getLogger("meve.ingest")

VERSION = 9
"""The version of the splitting rules; a new version makes the next run read all files again."""
FRESH_NS = 2_000_000_000
"""The coarsest time resolution of a file system (FAT), in nanoseconds."""
MAX_SECONDS = 120.0
"""The default time limit of a file, in seconds."""
BATCH = 1_000
"""So many passages are added to a server at once; a run that is stopped goes on after them."""
SHOWN = 20
"""The maximum number of invalid lines listed per file."""


def ingest(
    path: str | Path,
    retriever: "Retriever",
    *,
    chunking: Chunking | None = None,
    max_bytes: int = MAX_BYTES,
    max_seconds: float = MAX_SECONDS,
    exclude: Collection[str | Path] = (),
    moved: bool = False,
    progress: StageProgress | None = None,
    clock: Clock | None = None,
) -> IngestReport:
    """Bring a retriever up to date with a folder, or with one file, in one atomic change.

    The retriever's extra data stores what was read. Files with the same size and time, or the same hash, aren't read
    again; passages of deleted files are removed. A file that can't be read doesn't stop the others, and its earlier
    passages stay.

    Passages on a server are changed in steps of some 1,000. Their metadata stores what was read, under names that
    begin with `meve.`, so that a run that was stopped goes on where it ended.

    Args:
        path: a folder or a file; the same one on later runs.
        retriever: receives the passages; its `save` stores the record too.
        chunking: the size of passages; None for that of the last run, or, on a server, for the default. Other values
            make all files be read again.
        max_bytes: the size limit of a file, in bytes; larger files are skipped.
        max_seconds: the time limit of a file, for converting it and for splitting it; slower files are skipped.
        exclude: folders to skip, such as the one for the new index.
        moved: whether the folder of the last run stands at `path` now; files with the same content aren't read again.
        progress: called with `reading` for each file, and with `embedding` for each batch of passages.
        clock: the time source, to judge how fresh a file is.

    Raises:
        IngestError: nothing exists there, nothing can be read, or the record of the last run is lost; nothing is
            changed.
        ConfigurationError: another folder than in the last run, `moved` for passages on a server or for a folder
            without any file of the last run, or a setting is out of range.
    """
    if moved and retriever.is_on_server:
        raise ConfigurationError("moved must be False for passages on a server, which are known by their folder")
    check_limits(max_bytes, max_seconds)
    record = Record.from_extra(retriever.extra)
    listing = find_files(Path(path), [Path(each) for each in exclude])
    root = _find_root(Path(path), record, listing, moved=moved)
    chunking = chunking or last_chunking(retriever)
    settings = make_settings(chunking, retriever)
    if retriever.is_on_server:
        record = read_record(retriever.iterate(), root, settings)
    run = IngestRun(
        record=record,
        reread_all=bool(record.sources) and dict(record.settings) != settings,
        chunker=Chunker(chunking, retriever.tokens.count, max_seconds=max_seconds),
        converter=Converter(max_seconds),
        max_bytes=max_bytes,
        now_ns=int((clock or SystemClock()).now().timestamp() * 1e9),
    )
    read_files(run, retriever, root, listing.files, settings, progress)
    run.find_removed_files(listing)
    if not run.sources:
        raise IngestError(explain_empty(path, listing, run))
    run.apply(retriever, root, settings, progress)
    if not retriever.is_on_server:
        retriever.extra.update(Record(root=root, settings=settings, sources=run.sources).to_extra())
    logger.info(
        "files: %d read, %d unchanged, %d removed, %d skipped",
        len(run.read), run.unchanged, len(run.removed), len(run.skipped),
    )  # fmt: skip
    for each in run.skipped:
        logger.debug("skipped %r", each.path)  # the reason may quote the file
    return run.report(root)


def check_limits(max_bytes: int, max_seconds: float) -> None:
    """Check the limits of a file.

    Raises:
        ConfigurationError: a limit is out of range.
    """
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1:
        raise ConfigurationError(f"max_bytes must be a whole number of at least 1, got {max_bytes!r}")
    if isinstance(max_seconds, bool) or not isinstance(max_seconds, int | float) or not 0 < max_seconds < 1e6:
        raise ConfigurationError(f"max_seconds must be a number in (0, 1,000,000), got {max_seconds!r}")


def make_settings(chunking: Chunking, retriever: "Retriever") -> dict[str, Any]:
    """Return what decides how files are split; other settings make all files be read again."""
    return {
        "chunk_tokens": chunking.tokens,
        "chunk_overlap": chunking.overlap,
        "counter": retriever.tokens.name,
        "version": VERSION,
    }


def read_files(
    run: "IngestRun",
    retriever: "Retriever",
    root: str,
    files: Mapping[str, Path],
    settings: Mapping[str, Any],
    progress: StageProgress | None = None,
) -> None:
    """Read files that have changed; on a server, change the retriever in steps."""
    with run.converter:
        for number, (source, file) in enumerate(files.items(), start=1):
            run.process(source, file)
            if progress is not None:
                progress("reading", number, len(files))
            if retriever.is_on_server and sum(map(len, run.added.values())) >= BATCH:
                run.apply(retriever, root, settings, progress)


class IngestRun:
    """One run over the files: the passages to add and to remove, and the warnings."""

    def __init__(
        self,
        *,
        record: Record,
        reread_all: bool,
        chunker: Chunker,
        converter: Converter,
        max_bytes: int,
        now_ns: int,
    ) -> None:
        self.record = record.without_hashes() if reread_all else record
        self.reread_all = reread_all
        self.chunker = chunker
        self.converter = converter
        self.max_bytes = max_bytes
        self.now_ns = now_ns
        self.sources: dict[str, SourceRecord] = {}
        self.added: dict[str, tuple[Passage, ...]] = {}
        self.removals: list[str] = []
        self.read: list[str] = []
        self.unchanged = 0
        self.removed: list[str] = []
        self.skipped: list[SkippedFile] = []
        self.warnings: list[str] = []
        self.count_added = self.count_removed = 0
        self.missing_grammar = Counter[str]()

    def process(self, source: str, path: Path) -> None:
        """Check a file, and read it if it has changed."""
        old = self.record.sources.get(source)
        try:
            self._process(source, path, old)
        except IngestError as error:
            self.skipped.append(SkippedFile(path=source, reason=str(error), kept=len(old.passages) if old else 0))
            if old is not None:
                self.sources[source] = old

    def _process(self, source: str, path: Path, old: SourceRecord | None) -> None:
        grammar_installed = old is not None and old.missing_grammar and load_grammar(old.missing_grammar)
        same = old if old and not grammar_installed else None
        if same is not None and same.mtime_ns:
            status = read_status(path)
            if (status.st_size, status.st_mtime_ns) == (same.size, same.mtime_ns):
                return self._keep(source, same)
        file = read_data(path, max_bytes=self.max_bytes)
        if same is not None and file.sha256 == same.sha256:
            return self._keep(source, replace(same, mtime_ns=self._stable_mtime(file)))
        return self._read(source, file, old)

    def _read(self, source: str, file: FileData, old: SourceRecord | None) -> None:
        kind = find_kind(source)
        if kind == "pdf" or kind == "docx" or kind == "mail":
            converted = self.converter.convert(file.data, kind)
        else:
            text = decode(file.data)
            is_page = kind == "html"
            converted = self.converter.convert(text.encode(), "html") if is_page else ConvertedText(text=text)
        split = split_text(converted, source, self.chunker)
        if old is not None:
            self.removals += old.passages
        if not split.passages:
            self.skipped.append(SkippedFile(path=source, reason=explain_lack(converted.text, kind)))
            return
        self.read.append(source)
        self.added[source] = split.passages
        if split.missing_grammar:
            self.missing_grammar[split.missing_grammar] += 1
        self.warnings += [f"{source}: {complaint}" for complaint in split.complaints[:SHOWN]]
        if (more := len(split.complaints) - SHOWN) > 0:
            self.warnings.append(f"{source}: {more} more lines were left out")
        self.sources[source] = SourceRecord(
            size=len(file.data),
            mtime_ns=self._stable_mtime(file),
            sha256=file.sha256,
            passages=tuple(passage.id for passage in split.passages),
            missing_grammar=split.missing_grammar,
        )

    def find_removed_files(self, listing: FolderListing) -> None:
        """Tell deleted files from those in folders that couldn't be read."""
        for name, reason in listing.unreadable.items():
            inside = [s for s in self.record.sources if s == name or s.startswith(f"{name}/") or name == "."]
            kept = sum(len(self.record.sources[source].passages) for source in inside)
            self.skipped.append(SkippedFile(path=name, reason=reason, kept=kept))
            self.sources |= {source: self.record.sources[source] for source in inside}
        for source, old in self.record.sources.items():
            if source not in listing.files and source not in self.sources:
                self.removed.append(source)
                self.removals += old.passages

    def apply(
        self, retriever: "Retriever", root: str, settings: Mapping[str, Any], progress: StageProgress | None
    ) -> None:
        """Change the retriever by what was read since the last time."""
        add, remove = self.plan_changes(retriever)
        if add or remove:
            report_progress = None
            if progress is not None:
                report_progress = partial(progress, "embedding")
                report_progress(0, len(add))
            if retriever.is_on_server:
                taken = {passage.id for passage in add}
                add = []
                for source, passages in self.added.items():
                    own = [p for p in passages if p.id in taken]
                    taken.difference_update(p.id for p in own)
                    add += mark_passages(own, root, source, settings, self.sources[source], len(passages))
            retriever.update(add=add, remove=remove, progress=report_progress)
        self.count_added += len(add)
        self.count_removed += len(remove)
        self.added.clear()
        self.removals.clear()

    def plan_changes(self, retriever: "Retriever") -> tuple[list[Passage], list[str]]:
        """Return the passages to add and the ids to remove.

        Passages whose id exists already are left out, with a warning. An id made from a file's path takes precedence
        over the same id in a row of another file.

        Raises:
            IngestError: the index holds passages of a file, and no record says where they came from.
        """
        added = [(p.id, source) for source, passages in self.added.items() for p in passages]
        places = {id: source for id, source in added if _is_path_id(id, source)}
        if not self.record.sources:
            self._refuse_unrecorded(retriever)
        self._free_path_ids(places)
        known = retriever.known([*self.removals, *(p.id for passages in self.added.values() for p in passages)])
        remove = [i for i in dict.fromkeys(self.removals) if i in known]
        removals = set(remove)
        taken: set[str] = set()
        add: list[Passage] = []
        for source, passages in self.added.items():
            free = [p for p in passages if p.id in removals or p.id not in known]
            own = [p for p in free if p.id not in taken and places.get(p.id, source) == source]
            if len(own) < len(passages):
                ids = tuple(p.id for p in own)
                twice = next(p.id for p in passages if p.id not in ids)
                self.warnings.append(
                    f"{source}: {len(passages) - len(own)} passages were left out, since their ids are taken, "
                    f"{twice!r} for one: give each row an id of its own"
                )
                self.sources[source] = replace(self.sources[source], sha256="", mtime_ns=0, passages=ids)
            add += own
            taken.update(p.id for p in own)
        return add, remove

    def _refuse_unrecorded(self, retriever: "Retriever") -> None:
        for passage in chain.from_iterable(self.added.values()):
            source = passage.metadata["source"]
            if passage.id in retriever and retriever.get(passage.id).metadata.get("source") == source:
                raise IngestError(
                    f"this index has no record of the files read, but holds passages of {source} ({passage.id!r} for "
                    "one), so changes can't be detected: index into a new folder"
                )

    def _free_path_ids(self, places: Mapping[str, str]) -> None:
        """Remove earlier rows whose ids are needed by a new file with that path."""
        for source, old in list(self.sources.items()):
            if source in self.added:
                continue
            ceded = [i for i in old.passages if i in places and not _is_path_id(i, source)]
            if ceded:
                self.removals += ceded
                kept = tuple(i for i in old.passages if i not in ceded)
                self.sources[source] = replace(old, sha256="", mtime_ns=0, passages=kept)
                self.warnings.append(
                    f"{source}: {len(ceded)} passages were removed, since their ids are those of passages of "
                    f"{places[ceded[0]]}, {ceded[0]!r} for one: give each row an id of its own"
                )

    def all_warnings(self) -> list[str]:
        """Return all warnings of the run, most general first."""
        warnings = list(self.warnings)
        for language, count in sorted(self.missing_grammar.items()):
            files = f"{count} {language} {'file was' if count == 1 else 'files were'}"
            warnings.insert(0, f"{files} split as plain text: for its grammar, pip install 'meve[code]'")
        if self.reread_all:
            warnings.insert(0, "passages are split differently from the last run: every file was read again")
        return warnings

    def report(self, root: str) -> IngestReport:
        """Return the report of a run over a folder, absolute."""
        return IngestReport(
            root=root,
            read=tuple(self.read),
            unchanged=self.unchanged,
            removed=tuple(self.removed),
            skipped=tuple(self.skipped),
            passages_added=self.count_added,
            passages_removed=self.count_removed,
            warnings=tuple(self.all_warnings()),
        )

    def _keep(self, source: str, old: SourceRecord) -> None:
        self.unchanged += 1
        self.sources[source] = old

    def _stable_mtime(self, file: FileData) -> int:
        return file.mtime_ns if self.now_ns - file.mtime_ns > FRESH_NS else 0


def _is_path_id(passage_id: str, source: str) -> bool:
    """Return whether an id was made from that file's path, and not set by a row."""
    path, _, number = passage_id.rpartition("#")
    return path == source and number.isdecimal()


def _find_root(path: Path, record: Record, listing: FolderListing, *, moved: bool) -> str:
    root = path.resolve().as_posix()
    is_elsewhere = record.root not in {"", root}
    if is_elsewhere and not moved:
        raise ConfigurationError(
            f"this index was made from {record.root}, not from {root}: if the folder was moved or copied there, give "
            "--moved (moved=True in Python); else give that folder again, or a new index folder; one index covers one "
            "folder"
        )
    if is_elsewhere and record.sources and record.sources.keys().isdisjoint(listing.files):
        raise ConfigurationError(
            f"{root} holds none of the {len(record.sources)} files read from {record.root}, {min(record.sources)!r} "
            "for one: nothing was changed; give the folder that was moved, or a new index folder"
        )
    return root


def last_chunking(retriever: "Retriever") -> Chunking:
    """Return the chunking of the last run; the default, if there was none."""
    last = Record.from_extra(retriever.extra).settings
    return Chunking(tokens=last["chunk_tokens"], overlap=last["chunk_overlap"]) if last else Chunking()


def explain_empty(path: str | Path, listing: FolderListing, run: IngestRun) -> str:
    """Return why nothing was read."""
    if run.record.sources and not listing.files:
        return f"every file of the last run is gone from {path}: nothing was changed; check the folder"
    if not run.skipped:
        return f"there are no files in {path}: give a folder with text files (hidden files are skipped)"
    first = run.skipped[0]
    others = len(run.skipped) - 1
    more = f" (and {others} more)" if others else ""
    return f"nothing in {path} can be read: {first.path}: {first.reason}{more}"
