"""Which files of a folder are looked at?"""

import json
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from meve.errors import IngestError
from meve.retrieval._snapshot import MANIFEST

PASSED_OVER = frozenset({"__pycache__", "node_modules", "venv", "site-packages"})
"""Folders that hold no documents. Hidden files and folders (`.git`, `.venv`, …) are passed over too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a folder holds."""

    root: Path
    """The folder, or the folder of the single file; absolute."""
    files: dict[str, Path]
    """Path by relative path, with forward slashes, in order."""
    closed: dict[str, str]
    """Folders, and names, that couldn't be looked into, with the reason."""

    def hides(self, source: str) -> bool:
        """Whether a file may still be there, in a folder that couldn't be looked into."""
        return any(source.startswith(f"{folder}/") for folder in self.closed)


def find_files(path: Path, exclude: Collection[Path] = ()) -> Found:
    """The files under a folder, sorted by relative path; or the one file that the path names.

    Links to files are followed, links to folders aren't. Folders that hold an index of MeVe are passed over.

    Args:
        path: a folder or a file.
        exclude: more folders to pass over, such as one that an index is to be made in.

    Raises:
        IngestError: nothing is there, or an index of MeVe is.
    """
    root = Path(os.path.abspath(path))
    if not root.exists() and not root.is_symlink():
        raise IngestError(f"there is nothing at {path}: name a folder or a file that exists")
    if not root.is_dir():
        return Found(root=root.parent, files={root.name: root}, closed={})
    if holds_index(root):
        raise IngestError(f"{path} is an index that meve made: name the folder of the texts instead")
    files: dict[str, Path] = {}
    closed: dict[str, str] = {}
    for source, entry, reason in _walk(root, "", frozenset(Path(os.path.realpath(each)) for each in exclude)):
        if reason:
            closed[source] = reason
        else:
            files[source] = entry
    return Found(root=root, files=dict(sorted(files.items())), closed=closed)


def _walk(folder: Path, prefix: str, exclude: Collection[Path]) -> Iterator[tuple[str, Path, str]]:
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as cause:
        yield (
            prefix.rstrip("/") or ".",
            folder,
            f"a folder that can't be listed: {(cause.strerror or str(cause)).lower()}",
        )
        return
    for entry in entries:
        source, path = prefix + entry.name, Path(entry.path)
        if entry.name.startswith("."):
            continue
        if not _is_utf8(source):
            shown = source.encode("utf-8", "backslashreplace").decode("utf-8")
            yield shown, path, "its name is not UTF-8; rename it"
        elif entry.is_dir(follow_symlinks=False):
            if entry.name not in PASSED_OVER and path.resolve() not in exclude and not holds_index(path):
                yield from _walk(path, f"{source}/", exclude)
        elif entry.is_symlink() and path.is_dir():
            yield source, path, "a link to a folder; name that folder itself"
        else:
            yield source, path, ""


def holds_index(folder: Path) -> bool:
    """Whether a folder's manifest is one of MeVe; its files are copies of texts that stand elsewhere."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(manifest, dict) and {"generation", "files"} <= manifest.keys()


def _is_utf8(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
