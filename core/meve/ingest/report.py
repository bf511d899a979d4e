"""The report of an ingest run, and the record that the next run compares with."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from meve.errors import IngestError

KEY = "meve.ingest"
"""The key of the record in a retriever's extra data; all other keys belong to the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedFile:
    """A file that couldn't be read."""

    path: str
    """The relative path, with forward slashes."""
    reason: str
    kept: int = 0
    """The number of passages of an earlier run that stay in the index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport:
    """The result of an ingest run."""

    root: str
    """The folder, absolute."""
    read: tuple[str, ...]
    """The new or changed files, which were read."""
    unchanged: int
    """The number of files that haven't changed since the last run."""
    removed: tuple[str, ...]
    """Files of the last run that no longer exist."""
    skipped: tuple[SkippedFile, ...]
    passages_added: int
    passages_removed: int
    warnings: tuple[str, ...]
    """Warnings for the user: invalid lines, a missing grammar, changed settings."""

    @property
    def changed(self) -> bool:
        """Whether the index changed."""
        return bool(self.passages_added or self.passages_removed)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """The stored state of a file."""

    size: int
    mtime_ns: int
    """0 if the file was so fresh that a later change could have the same time; the hash is compared then."""
    sha256: str
    passages: tuple[str, ...]
    """The ids of its passages."""
    missing_grammar: str = ""
    """The grammar that wasn't installed when it was read."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, JSON-ready."""
        data = {"size": self.size, "mtime_ns": self.mtime_ns, "sha256": self.sha256, "passages": list(self.passages)}
        return {**data, "lacked": self.missing_grammar} if self.missing_grammar else data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "SourceRecord":
        """Read what `to_dict` wrote."""
        return cls(
            size=int(data["size"]),
            mtime_ns=int(data["mtime_ns"]),
            sha256=str(data["sha256"]),
            passages=tuple(map(str, data["passages"])),
            missing_grammar=str(data.get("lacked", "")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The stored state of a run."""

    root: str
    """The folder or file that was indexed, absolute; empty if there was no run."""
    settings: Mapping[str, Any]
    """The settings of the splitting."""
    sources: Mapping[str, SourceRecord]

    def without_hashes(self) -> "Record":
        """Return the record without hashes, so that each file is read again: in this run, or else in a later one."""
        sources = {name: replace(record, sha256="", mtime_ns=0) for name, record in self.sources.items()}
        return replace(self, sources=sources)

    def to_extra(self) -> dict[str, Any]:
        """Return the record in the form of a retriever's extra data."""
        sources = {name: record.to_dict() for name, record in self.sources.items()}
        return {KEY: {"root": self.root, "settings": dict(self.settings), "sources": sources}}

    @classmethod
    def from_extra(cls, extra: Mapping[str, Any]) -> "Record":
        """Read what `to_extra` wrote; an empty record if there is none.

        Raises:
            IngestError: the value under `KEY` isn't such a record.
        """
        if KEY not in extra:
            return cls(root="", settings={}, sources={})
        try:
            about = extra[KEY]
            root, settings = about["root"], dict(about["settings"])
            settings |= {name: int(settings[name]) for name in ("chunk_tokens", "chunk_overlap")}
            sources = {name: SourceRecord.from_dict(data) for name, data in about["sources"].items()}
            if not isinstance(root, str):
                raise TypeError(f"root is {root!r:.80}")
        except (AttributeError, KeyError, TypeError, ValueError) as cause:
            raise IngestError(
                f"the index's extra data hold something else than an ingest record under {KEY!r} "
                f"({type(cause).__name__}: {cause}): this key is reserved; index into a new folder"
            ) from cause
        return cls(root=root, settings=settings, sources=sources)
