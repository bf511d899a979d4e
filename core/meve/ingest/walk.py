"""Which files of a folder are looked at?"""

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from meve.errors import IngestError

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

    Links to files are followed, links to folders aren't.

    Args:
        path: a folder or a file.
        exclude: folders to pass over, such as that of the index itself.

    Raises:
        IngestError: nothing is there.
    """
    root = Path(os.path.abspath(path))
    if not root.exists() and not root.is_symlink():
        raise IngestError(f"there is nothing at {path}: name a folder or a file that exists")
    if not root.is_dir():
        return Found(root=root.parent, files={root.name: root}, closed={})
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
            if entry.name not in PASSED_OVER and path.resolve() not in exclude:
                yield from _walk(path, f"{source}/", exclude)
        elif entry.is_symlink() and path.is_dir():
            yield source, path, "a link to a folder; name that folder itself"
        else:
            yield source, path, ""


def _is_utf8(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
