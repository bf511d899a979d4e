"""What came of reading files: the account of one run, and the record that the next run compares with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from meve.errors import IngestError

KEY = "meve.ingest"
"""Where the record stands in a retriever's extra data; every other key is the user's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedFile:
    """A file that couldn't be read."""

    path: str
    """Relative, with forward slashes."""
    reason: str
    kept: int = 0
    """Passages of an earlier run that stay in the index, since nothing newer could be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport:
    """What one run did."""

    root: str
    """The folder, absolute."""
    read: tuple[str, ...]
    """Files that were new or changed, and were read."""
    unchanged: int
    """How many files were as they were in the last run."""
    removed: tuple[str, ...]
    """Files of the last run that are gone."""
    skipped: tuple[SkippedFile, ...]
    passages_added: int
    passages_removed: int
    warnings: tuple[str, ...]
    """What a user should know: lines that were left out, a grammar that isn't installed, changed settings."""

    @property
    def changed(self) -> bool:
        """Whether the index is another one than before."""
        return bool(self.passages_added or self.passages_removed)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """What is remembered of a file."""

    size: int
    mtime_ns: int
    """0 where it was so fresh that a later change might bear the same time; then the hash decides."""
    sha256: str
    passages: tuple[str, ...]
    """Ids."""
    lacked: str = ""
    """The grammar that wasn't installed when it was read."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, JSON-ready."""
        data = {"size": self.size, "mtime_ns": self.mtime_ns, "sha256": self.sha256, "passages": list(self.passages)}
        return {**data, "lacked": self.lacked} if self.lacked else data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "SourceRecord":
        """Read what `to_dict` wrote."""
        return cls(
            size=int(data["size"]),
            mtime_ns=int(data["mtime_ns"]),
            sha256=str(data["sha256"]),
            passages=tuple(map(str, data["passages"])),
            lacked=str(data.get("lacked", "")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is remembered of a run."""

    root: str
    """The folder or file that was indexed, absolute; empty when nothing was."""
    settings: Mapping[str, Any]
    """How passages were cut."""
    sources: Mapping[str, SourceRecord]

    def to_extra(self) -> dict[str, Any]:
        """As it stands in a retriever's extra data."""
        sources = {name: record.to_dict() for name, record in self.sources.items()}
        return {KEY: {"root": self.root, "settings": dict(self.settings), "sources": sources}}

    @classmethod
    def from_extra(cls, extra: Mapping[str, Any]) -> "Record":
        """Read what `to_extra` wrote; an empty record where there is none.

        Raises:
            IngestError: something else stands there.
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
                f"the index's extra data hold something else under {KEY!r} than the record of what was read "
                f"({type(cause).__name__}: {cause}): that key is MeVe's own; index into a new folder"
            ) from cause
        return cls(root=root, settings=settings, sources=sources)
