"""From a folder to an index, and on the next run only what changed."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from meve.clock import Clock, SystemClock
from meve.errors import ConfigurationError, IngestError
from meve.ingest._file_readers import MAX_BYTES, FileText, read_text, state_of
from meve.ingest._file_walk import Found, find_files
from meve.ingest._grammars import grammar
from meve.ingest._passages import cut
from meve.ingest.chunking import Chunker, Chunking
from meve.ingest.report import IngestReport, Record, SkippedFile, SourceRecord
from meve.types import Passage

if TYPE_CHECKING:
    from meve.retrieval.retriever import Retriever

VERSION = 1
"""Of the way in which files are cut; another one makes the next run read everything again."""
FRESH_NS = 2_000_000_000
"""File systems tell times apart no finer than this, at worst (FAT)."""
SHOWN = 20
"""So many lines of one file are complained of one by one."""

Stage: TypeAlias = Literal["reading", "embedding"]
Progress: TypeAlias = Callable[[Stage, int, int], None]
"""Called with the stage, how much is done, and how much there is: files, then passages."""


def ingest(
    path: str | Path,
    retriever: "Retriever",
    *,
    chunking: Chunking | None = None,
    max_bytes: int = MAX_BYTES,
    exclude: Collection[str | Path] = (),
    progress: Progress | None = None,
    clock: Clock | None = None,
) -> IngestReport:
    """Bring a retriever in step with a folder, or with one file, in one atomic change.

    The retriever's extra data remembers what was read. On the next run a file of the same size and time, or the same
    hash, is not read again; passages of files that are gone go too. A file that can't be read loses nothing: others
    are read all the same, and what an earlier run read of it stays.

    Args:
        path: a folder, or a file; on a later run the same one.
        retriever: takes the passages; its `save` keeps the record too.
        chunking: how large passages are; as in the last run, if None. Other values make everything be read again.
        max_bytes: larger files are skipped.
        exclude: folders to pass over, such as one that an index is to be made in.
        progress: told of each file that was read and each batch that was embedded.
        clock: tells how fresh a file is.

    Raises:
        IngestError: nothing is there, nothing of it can be read, or the record of the last run is lost; nothing was
            changed.
        ConfigurationError: another folder than in the last run, or a setting out of range.
    """
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1:
        raise ConfigurationError(f"max_bytes is {max_bytes!r}: give a whole number of at least 1")
    record = Record.from_extra(retriever.extra)
    found = find_files(Path(path), [Path(each) for each in exclude])
    root = _same_root(Path(path), record)
    chunking = chunking or last_chunking(retriever)
    settings = {
        "chunk_tokens": chunking.tokens,
        "chunk_overlap": chunking.overlap,
        "counter": retriever.tokens.name,
        "version": VERSION,
    }
    now = (clock or SystemClock()).now()
    run = _Run(
        record=record,
        again=bool(record.sources) and dict(record.settings) != settings,
        chunker=Chunker(chunking, retriever.tokens.count),
        max_bytes=max_bytes,
        now_ns=int(now.timestamp() * 1e9),
    )
    for number, (source, file) in enumerate(found.files.items(), start=1):
        run.take(source, file)
        if progress is not None:
            progress("reading", number, len(found.files))
    run.look_for_missing(found)
    if not run.sources:
        raise IngestError(_nothing(path, found, run))
    add, remove = run.change(retriever)
    if add or remove:
        told = None if progress is None else partial(progress, "embedding")
        if told is not None:
            told(0, len(add))
        retriever.update(add=add, remove=remove, progress=told)
    retriever.extra.update(Record(root=root, settings=settings, sources=run.sources).to_extra())
    return IngestReport(
        root=root,
        read=tuple(run.read),
        unchanged=run.unchanged,
        removed=tuple(run.removed),
        skipped=tuple(run.skipped),
        passages_added=len(add),
        passages_removed=len(remove),
        warnings=tuple(run.all_warnings()),
    )


class _Run:
    """One pass over the files: what is to be added and removed, and what is to be said of it."""

    def __init__(self, *, record: Record, again: bool, chunker: Chunker, max_bytes: int, now_ns: int) -> None:
        self.record = record
        self.again = again
        self.chunker = chunker
        self.max_bytes = max_bytes
        self.now_ns = now_ns
        self.sources: dict[str, SourceRecord] = {}
        self.added: dict[str, tuple[Passage, ...]] = {}
        self.leaving: list[str] = []
        self.read: list[str] = []
        self.unchanged = 0
        self.removed: list[str] = []
        self.skipped: list[SkippedFile] = []
        self.warnings: list[str] = []
        self.lacked: dict[str, int] = {}

    def take(self, source: str, path: Path) -> None:
        """Look at a file; read it if it isn't as it was."""
        old = self.record.sources.get(source)
        try:
            self._take(source, path, old)
        except IngestError as error:
            self._skip(source, str(error), old)

    def _take(self, source: str, path: Path, old: SourceRecord | None) -> None:
        same = old if old and not self.again and not (old.lacked and grammar(old.lacked)) else None
        if same is not None and same.mtime_ns:
            state = state_of(path)
            if (state.size, state.mtime_ns) == (same.size, same.mtime_ns):
                return self._keep(source, same)
        file = read_text(path, max_bytes=self.max_bytes)
        if same is not None and file.sha256 == same.sha256:
            return self._keep(source, replace(same, mtime_ns=self._settled(file)))
        return self._read(source, file, old)

    def _read(self, source: str, file: FileText, old: SourceRecord | None) -> None:
        taken = cut(file.text, source, self.chunker)
        if old is not None:
            self.leaving += old.passages
        if not taken.passages:
            reason = "holds no letter and no digit" if file.text.strip() else "empty"
            self.skipped.append(SkippedFile(path=source, reason=reason))
            return
        self.read.append(source)
        self.added[source] = taken.passages
        if taken.lacked:
            self.lacked[taken.lacked] = self.lacked.get(taken.lacked, 0) + 1
        self.warnings += [f"{source}: {complaint}" for complaint in taken.complaints[:SHOWN]]
        if (more := len(taken.complaints) - SHOWN) > 0:
            self.warnings.append(f"{source}: {more} more lines were left out")
        self.sources[source] = SourceRecord(
            size=file.size,
            mtime_ns=self._settled(file),
            sha256=file.sha256,
            passages=tuple(passage.id for passage in taken.passages),
            lacked=taken.lacked,
        )

    def look_for_missing(self, found: Found) -> None:
        """Tell files that are gone from those that only can't be seen."""
        for name, reason in found.closed.items():
            inside = [s for s in self.record.sources if s == name or s.startswith(f"{name}/") or name == "."]
            kept = sum(len(self.record.sources[source].passages) for source in inside)
            self.skipped.append(SkippedFile(path=name, reason=reason, kept=kept))
            self.sources |= {source: self.record.sources[source] for source in inside}
        for source, old in self.record.sources.items():
            if source not in found.files and source not in self.sources:
                self.removed.append(source)
                self.leaving += old.passages

    def change(self, retriever: "Retriever") -> tuple[list[Passage], list[str]]:
        """What to add and what to remove.

        An id that is taken already is left out, and said so. One that is made of a file's path goes before one that a
        row of another file brings.

        Raises:
            IngestError: what was read stands in the index already, and no record tells where it came from.
        """
        places = {p.id: source for source, passages in self.added.items() for p in passages if _placed(p.id, source)}
        if not self.record.sources:
            self._refuse_unrecorded(retriever)
        self._make_way(places)
        remove = [i for i in dict.fromkeys(self.leaving) if i in retriever]
        leaving = set(remove)
        taken: set[str] = set()
        add: list[Passage] = []
        for source, passages in self.added.items():
            own = [
                p
                for p in passages
                if p.id not in taken
                and places.get(p.id, source) == source
                and (p.id in leaving or p.id not in retriever)
            ]
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
                    f"this index has no record of what was read, but holds passages of {source} ({passage.id!r} for "
                    "one), so what changed can't be told: index into a new folder"
                )

    def _make_way(self, places: Mapping[str, str]) -> None:
        """Rows of an earlier run leave ids that are made of the path of a file that came since."""
        for source, old in list(self.sources.items()):
            if source in self.added:
                continue
            ceded = [i for i in old.passages if i in places and not _placed(i, source)]
            if ceded:
                self.leaving += ceded
                kept = tuple(i for i in old.passages if i not in ceded)
                self.sources[source] = replace(old, sha256="", mtime_ns=0, passages=kept)
                self.warnings.append(
                    f"{source}: {len(ceded)} passages were removed, since their ids are those of passages of "
                    f"{places[ceded[0]]}, {ceded[0]!r} for one: give each row an id of its own"
                )

    def all_warnings(self) -> list[str]:
        """Everything to be said of the run, most general first."""
        warnings = list(self.warnings)
        for language, count in sorted(self.lacked.items()):
            files = f"{count} {language} {'file was' if count == 1 else 'files were'}"
            warnings.insert(0, f"{files} split as plain text: for its grammar, pip install 'meve[code]'")
        if self.again:
            warnings.insert(0, "passages are cut in another way than in the last run: every file was read again")
        return warnings

    def _keep(self, source: str, old: SourceRecord) -> None:
        self.unchanged += 1
        self.sources[source] = old

    def _skip(self, source: str, reason: str, old: SourceRecord | None) -> None:
        kept = len(old.passages) if old else 0
        self.skipped.append(SkippedFile(path=source, reason=reason, kept=kept))
        if old is not None:
            self.sources[source] = old

    def _settled(self, file: FileText) -> int:
        return file.mtime_ns if self.now_ns - file.mtime_ns > FRESH_NS else 0


def _placed(passage_id: str, source: str) -> bool:
    """Whether an id is made of that file's path, and not one that a row brought."""
    path, _, number = passage_id.rpartition("#")
    return path == source and number.isdecimal()


def _same_root(path: Path, record: Record) -> str:
    root = path.resolve().as_posix()
    if record.root and record.root != root:
        raise ConfigurationError(
            f"this index was made from {record.root}, not from {root}: name that one again, or another folder to "
            "index into; what is to stand in one index must lie under one folder"
        )
    return root


def last_chunking(retriever: "Retriever") -> Chunking:
    """How passages were cut in the last run; the default, if there was none."""
    last = Record.from_extra(retriever.extra).settings
    return Chunking(tokens=last["chunk_tokens"], overlap=last["chunk_overlap"]) if last else Chunking()


def _nothing(path: str | Path, found: Found, run: _Run) -> str:
    if run.record.sources and not found.files:
        return f"every file of the last run is gone from {path}: nothing was changed; is it the right folder?"
    if not run.skipped:
        return f"there are no files in {path}: name a folder that holds text (hidden files are passed over)"
    first = run.skipped[0]
    others = len(run.skipped) - 1
    more = f" (and {others} more)" if others else ""
    return f"nothing in {path} can be read: {first.path}: {first.reason}{more}"
