"""Lists the files of a folder to ingest."""

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from meve._json_limits import parse_json
from meve._regular_files import open_regular
from meve.errors import IngestError
from meve.retrieval._snapshot import MANIFEST, MAX_MANIFEST

PASSED_OVER = frozenset({"__pycache__", "node_modules", "venv", "site-packages"})
"""Folders without documents. Hidden files and folders (`.git`, `.venv`, …) are skipped too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderListing:
    """The files found in a folder."""

    root: Path
    """The folder, or the parent folder of a single file; absolute."""
    files: dict[str, Path]
    """The path of each file by its relative path, with forward slashes, sorted."""
    unreadable: dict[str, str]
    """Folders and names that couldn't be read, with the reason."""


def find_files(path: Path, exclude: Collection[Path] = ()) -> FolderListing:
    """List the files under a folder, sorted by relative path; or the one file at the path.

    Links to files in the folder are followed; links to folders, or to files outside, aren't. Folders that hold an index
    of MeVe are skipped.

    Args:
        path: a folder or a file.
        exclude: further folders to skip, such as the one for the new index.

    Raises:
        IngestError: nothing exists at the path, it is an index of MeVe, or it isn't UTF-8.
    """
    root = Path(os.path.abspath(path))
    if not root.exists() and not root.is_symlink():
        raise IngestError(f"there is nothing at {path}: give an existing folder or file")
    for place in (root, root.resolve()):
        if (shown := str(place).encode("utf-8", "backslashreplace").decode("utf-8")) != str(place):
            raise IngestError(f"the path {shown} is not UTF-8, so an index can't name it: rename it")
    if not root.is_dir():
        return FolderListing(root=root.parent, files={root.name: root}, unreadable={})
    if holds_index(root):
        raise IngestError(f"{path} is an index of MeVe: give the folder of the texts instead")
    files: dict[str, Path] = {}
    unreadable: dict[str, str] = {}
    for source, entry, reason in _walk(root, "", _Limits(root, exclude)):
        if reason:
            unreadable[source] = reason
        else:
            files[source] = entry
    return FolderListing(root=root, files=dict(sorted(files.items())), unreadable=unreadable)


class _Limits:
    """Files and folders that aren't listed."""

    def __init__(self, root: Path, exclude: Collection[Path]) -> None:
        self.root = Path(os.path.realpath(root))
        self.exclude = frozenset(Path(os.path.realpath(each)) for each in exclude)

    def is_outside(self, link: Path) -> bool:
        """Return whether a link leads out of the folder."""
        return not Path(os.path.realpath(link)).is_relative_to(self.root)


def _walk(folder: Path, prefix: str, limits: _Limits) -> Iterator[tuple[str, Path, str]]:
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as cause:
        reason = f"a folder that can't be listed: {(cause.strerror or str(cause)).lower()}"
        yield prefix.rstrip("/") or ".", folder, reason
        return
    for entry in entries:
        source, path = prefix + entry.name, Path(entry.path)
        if entry.name.startswith("."):
            continue
        shown = source.encode("utf-8", "backslashreplace").decode("utf-8")
        if shown != source:
            yield shown, path, "its name is not UTF-8; rename it"
        elif entry.is_dir(follow_symlinks=False):
            if entry.name not in PASSED_OVER and path.resolve() not in limits.exclude and not holds_index(path):
                yield from _walk(path, f"{source}/", limits)
        elif entry.is_symlink() and path.is_dir():
            yield source, path, "a link to a folder; give that folder itself"
        elif entry.is_symlink() and path.exists() and limits.is_outside(path):
            yield source, path, f"a link that leaves the folder, to {path.readlink()}; give that file itself"
        else:
            yield source, path, ""


def holds_index(folder: Path) -> bool:
    """Return whether a folder holds an index of MeVe, whose files are copies of other texts."""
    try:
        with open_regular(folder / MANIFEST) as file:
            manifest = parse_json(file.read(MAX_MANIFEST + 1))
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and {"generation", "files"} <= manifest.keys()
