"""Ingests a folder into a collection on a server with the workers of a Ray cluster, shard by shard."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meve._extras import require
from meve.clock import SystemClock
from meve.errors import ConfigurationError, DuplicateIdError, IngestError
from meve.ingest._converter import Converter
from meve.ingest._file_readers import MAX_BYTES
from meve.ingest._file_walk import find_files
from meve.ingest._passage_record import own_passages, read_record
from meve.ingest.chunking import Chunker, Chunking
from meve.ingest.folder import MAX_SECONDS, IngestRun, check_limits, explain_empty, make_settings, read_files
from meve.ingest.report import IngestReport, Record, SkippedFile
from meve.types import StageProgress

if TYPE_CHECKING:
    from meve.retrieval.retriever import Retriever

NEEDS = {"ray": "ray", "pyarrow": "ray"}
SHARD = 32
"""The most files of a shard."""
ATTEMPTS = 5
"""How often a shard is begun again if another one has just taken one of its ids."""

OpenRetriever = Callable[[], "Retriever"]
"""A function that opens a retriever over a server; it is called in each worker."""


def ingest_on_ray(
    path: str | Path,
    open_retriever: OpenRetriever,
    *,
    address: str = "auto",
    chunking: Chunking | None = None,
    max_bytes: int = MAX_BYTES,
    max_seconds: float = MAX_SECONDS,
    progress: StageProgress | None = None,
) -> IngestReport:
    """Bring a collection on a server up to date with a folder, as `ingest` does, by many processes.

    Ray Data hands shards of files to workers, one for each core, which read, split, embed and write them. A shard whose
    worker dies is given to another one, which goes on after the files that are complete; so does a later run. Each
    passage stands in the collection once, by its id.

    Args:
        path: a folder or a file, under the same name on all machines of the cluster.
        open_retriever: opens the collection; each worker calls it once.
        address: of the cluster; `auto` for the one that runs on this machine or that RAY_ADDRESS names, or else the
            cores of this machine.
        chunking: the size of passages; None for the default. Other values make all files be read again.
        max_bytes: the size limit of a file, in bytes; larger files are skipped.
        max_seconds: the time limit of a file, for converting it and for splitting it; slower files are skipped.
        progress: called with `reading` for each shard.

    Raises:
        MissingExtraError: Ray isn't installed.
        ConfigurationError: the retriever isn't on a server that other processes can reach, or a setting is out of
            range.
        IngestError: nothing exists there, nothing can be read, or a worker failed; what was written stays.
    """
    require("indexing on Ray", NEEDS)
    check_limits(max_bytes, max_seconds)
    listing = find_files(Path(path))
    retriever = open_retriever()
    try:
        _check_server(retriever)
        root = Path(path).resolve().as_posix()
        task = _Task(open_retriever, root, chunking or Chunking(), max_bytes, max_seconds)
        run = task.make_run(retriever, read_record(retriever.iterate(), root, task.settings(retriever)))
        if not listing.files:
            raise IngestError(explain_empty(path, listing, run))
        run.find_removed_files(listing)
        run.apply(retriever, root, {}, None)  # first, since their ids may be used again
        names = {source: str(file) for source, file in listing.files.items()}
        with _ray(address):
            for report in _run_shards(task, names, progress):
                _merge(run, report)
        again = {warning.partition(": ")[0] for warning in run.warnings} & names.keys()  # an id may be free by now
        if again:
            _merge(run, asdict(task.ingest(retriever, {source: names[source] for source in again})), repeated=True)
        if not (run.read or run.unchanged):
            raise IngestError(explain_empty(path, listing, run))
        return run.report(root)
    finally:
        retriever.close()


class _Task:
    """What each worker needs to ingest a shard."""

    def __init__(
        self, open_retriever: OpenRetriever, root: str, chunking: Chunking, max_bytes: int, max_seconds: float
    ) -> None:
        self.open_retriever, self.root, self.chunking = open_retriever, root, chunking
        self.max_bytes, self.max_seconds = max_bytes, max_seconds

    def settings(self, retriever: "Retriever") -> dict[str, Any]:
        return make_settings(self.chunking, retriever)

    def make_run(self, retriever: "Retriever", record: Record) -> IngestRun:
        return IngestRun(
            record=record,
            reread_all=False,  # files that were split otherwise have no hash in the record
            chunker=Chunker(self.chunking, retriever.tokens.count, max_seconds=self.max_seconds),
            converter=Converter(self.max_seconds),
            max_bytes=self.max_bytes,
            now_ns=int(SystemClock().now().timestamp() * 1e9),
        )

    def ingest(self, retriever: "Retriever", files: Mapping[str, str]) -> IngestReport:
        """Ingest a shard. What an earlier attempt completed isn't read again."""
        settings = self.settings(retriever)
        for attempt in range(ATTEMPTS):
            stored = retriever.iterate(own_passages(self.root, files))
            run = self.make_run(retriever, read_record(stored, self.root, settings))
            try:
                read_files(run, retriever, self.root, {name: Path(file) for name, file in files.items()}, settings)
                run.apply(retriever, self.root, settings, None)
                return run.report(self.root)
            except DuplicateIdError:  # a row of another shard took an id in between
                if attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError


class _Worker:
    """An actor of Ray Data: holds the models and the connection."""

    def __init__(self, task: _Task) -> None:
        self._task, self._retriever = task, task.open_retriever()

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        report = self._task.ingest(self._retriever, json.loads(row["files"]))
        return {"report": json.dumps(asdict(report))}


@contextmanager
def _ray(address: str) -> Iterator[None]:
    """Connect to a cluster, unless the process has done so."""
    import ray

    if ray.is_initialized():
        yield
        return
    ray.init(None if address == "auto" else address, log_to_driver=False, include_dashboard=False)
    try:
        yield
    finally:
        ray.shutdown()


def _run_shards(task: _Task, names: Mapping[str, str], progress: StageProgress | None) -> Iterator[dict[str, Any]]:
    """Return the reports of all shards, as Ray Data's workers finish them."""
    import ray
    from ray.data import DataContext
    from ray.exceptions import RayError

    context = DataContext.get_current()
    context.enable_progress_bars = False
    cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
    files = list(names.items())
    shards = [dict(files[start : start + SHARD]) for start in range(0, len(files), SHARD)]
    rows = ray.data.from_items([{"files": json.dumps(each)} for each in shards], override_num_blocks=len(shards))
    done = rows.map(_Worker, fn_constructor_args=(task,), concurrency=min(cores, len(shards)), num_cpus=1)
    try:
        for number, row in enumerate(done.iter_rows(), start=1):
            yield json.loads(row["report"])
            if progress is not None:
                progress("reading", number, len(shards))
    except RayError as cause:
        raise IngestError(
            f"a worker failed: {str(cause).strip().splitlines()[-1]}; what it wrote stays: run the command again"
        ) from cause


def _check_server(retriever: "Retriever") -> None:
    if not retriever.is_on_server:
        raise ConfigurationError("indexing on Ray needs a server, such as postgresql://…: workers share no folder")
    if getattr(retriever._corpus.server, "is_local", False):  # type: ignore[union-attr]
        raise ConfigurationError("indexing on Ray needs a Qdrant server: one process at a time opens the local mode")


def _merge(run: IngestRun, report: Mapping[str, Any], *, repeated: bool = False) -> None:
    """Add a shard's report to a run; a repeated one replaces the warnings of the files that were read again."""
    if repeated:
        run.warnings = [each for each in run.warnings if each.partition(": ")[0] not in report["read"]]
    else:
        run.unchanged += report["unchanged"]
        run.skipped += [SkippedFile(**each) for each in report["skipped"]]
    run.read += [each for each in report["read"] if each not in run.read]
    run.count_added += report["passages_added"]
    run.count_removed += report["passages_removed"]
    run.warnings += [each for each in report["warnings"] if each not in run.warnings]
