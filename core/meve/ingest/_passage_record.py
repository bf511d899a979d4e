"""Keep the record of a run in the metadata of the passages, where a server keeps them.

A passage tells the hash of its file, how the file was split and how many passages it has. So a run that was stopped
leaves no record that contradicts the passages: the next one reads those files again that lack passages.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from meve.ingest.report import Record, SourceRecord
from meve.types import Passage

ROOT, PATH, SHA256, SPLIT, COUNT = "meve.root", "meve.path", "meve.sha256", "meve.split", "meve.passages"
"""The names in the metadata."""


def mark_passages(
    passages: Sequence[Passage], root: str, path: str, settings: Mapping[str, Any], source: SourceRecord, count: int
) -> list[Passage]:
    """Return the passages of a file with what the next run needs to know.

    Args:
        passages: those that are added.
        root: the folder of the run, absolute.
        path: the file's path in the folder.
        settings: the settings of the splitting.
        source: the state of the file.
        count: how many passages the file has.
    """
    split = _digest(settings, source.missing_grammar)
    marks = {ROOT: root, PATH: path, SHA256: source.sha256, SPLIT: split, COUNT: count}
    return [replace(each, metadata={**each.metadata, **marks}) for each in passages]


def own_passages(root: str, sources: Collection[str]) -> dict[str, Any]:
    """Return the filter of the passages of files in a folder."""
    return {ROOT: root, PATH: list(sources)}


def read_record(passages: Iterable[Passage], root: str, settings: Mapping[str, Any]) -> Record:
    """Return the record of the runs over a folder, from all passages; files that must be read again have no hash."""
    ids: dict[str, list[str]] = {}
    marks: dict[str, set[tuple[Any, ...]]] = {}
    for passage in passages:
        if passage.metadata.get(ROOT) == root:
            source = str(passage.metadata[PATH])
            ids.setdefault(source, []).append(passage.id)
            marks.setdefault(source, set()).add(tuple(passage.metadata.get(name) for name in (SHA256, SPLIT, COUNT)))
    sources = {}
    for source, own in ids.items():
        sha256, split, count = next(iter(marks[source]))
        is_complete = len(marks[source]) == 1 and len(own) == count and split == _digest(settings, "")
        sources[source] = SourceRecord(size=0, mtime_ns=0, sha256=sha256 if is_complete else "", passages=tuple(own))
    return Record(root=root, settings=settings, sources=sources)


def _digest(settings: Mapping[str, Any], missing_grammar: str) -> str:
    text = json.dumps([dict(settings), missing_grammar], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
