"""Write and read a folder that holds exactly one complete generation of files.

    DIR/meve.json        the manifest: names the generation, and every file in it with size and SHA-256
    DIR/g-<16 hex>/      its files

A save writes a new generation folder, syncs it to disk, and renames the new manifest over the old one. Only then it
deletes the old generation. A process killed at any moment leaves a manifest with complete files; the next save deletes
what was left half-written.
"""

import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from meve._json_limits import parse_json
from meve._regular_files import open_regular
from meve.errors import (
    IndexBusyError,
    IndexCorruptError,
    IndexMismatchError,
    IndexNotFoundError,
    MeveError,
    StorageError,
)

FORMAT = 1
MANIFEST = "meve.json"
MAX_MANIFEST, MAX_FILES = 16 << 20, 64
"""The most bytes of a manifest (a calibration may hold thousands of points), and files in it."""

GENERATION = re.compile(r"g-[0-9a-f]{16}")

SnapshotWriter = Callable[[Path], None]
T = TypeVar("T")


def write_snapshot(
    folder: Path, writers: Mapping[str, SnapshotWriter], about: Mapping[str, Any], *, replacing: str | None = None
) -> str:
    """Replace the contents of a folder by a new generation.

    Args:
        folder: created if missing.
        writers: by file name, the function that writes that file.
        about: JSON data for the manifest.
        replacing: the only generation that may be replaced; None for any.

    Returns:
        The name of the new generation.

    Raises:
        IndexBusyError: another process is saving there, or has saved since `replacing` was read.
        StorageError: the folder holds something else, or can't be written; its contents are kept.
    """
    try:
        check_index_folder(folder)  # before a lock file is made in a folder of something else
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock", timeout=60):
            check_index_folder(folder)
            current = _current(folder)
            if replacing is not None and current not in (None, replacing):
                raise IndexBusyError(
                    f"the index at {folder} was saved by another process since it was loaded: load it again and repeat "
                    "the change, or save to another folder; nothing was written"
                )
            generation = folder / f"g-{secrets.token_hex(8)}"
            generation.mkdir()
            try:
                manifest = _write_generation(generation, writers, about)
                _activate(folder, manifest)
            except BaseException:
                if _current(folder) != generation.name:
                    shutil.rmtree(generation, ignore_errors=True)
                raise
            _delete_others(folder, keep=generation.name)
            return generation.name
    except MeveError:
        raise
    except Timeout as cause:
        raise IndexBusyError(f"another process is saving to {folder}: wait, and try again") from cause
    except (OSError, ValueError) as cause:
        raise StorageError(f"the index at {folder} can't be written: {cause}; its contents are kept") from cause


def _check_shape(manifest: Mapping[str, Any]) -> None:
    files = manifest["files"]
    if (
        not GENERATION.fullmatch(manifest["generation"])
        or not isinstance(files, dict)
        or not 0 < len(files) <= MAX_FILES
    ):
        raise ValueError("no valid generation of files")
    for name, facts in files.items():
        if Path(name).name != name or not (isinstance(facts["bytes"], int) and isinstance(facts["sha256"], str)):
            raise ValueError(f"invalid entry for file {name!r}")


def check_index_folder(folder: Path) -> None:
    """Check that a path can take an index: a new or empty folder, or one that holds an index.

    Raises:
        StorageError: a file, or a folder with other files, which are never overwritten or deleted.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise StorageError(f"{folder} is a file: give a folder for the index")
    names = [p.name for p in folder.iterdir()]
    if any(GENERATION.fullmatch(name) for name in names) or _current(folder) is not None:
        return
    others = [name for name in names if name not in (".lock", f"{MANIFEST}.new")]
    if others:
        raise StorageError(
            f"{folder} holds other files ({sorted(others)[0]!r}, …) and no index: give an empty or a new folder"
        )


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """Return the manifest of an index folder.

    Raises:
        IndexNotFoundError: no index there.
        IndexCorruptError: the manifest can't be read.
        IndexMismatchError: a format that this version can't read.
    """
    path = Path(folder) / MANIFEST
    try:
        with open_regular(path) as file:
            text = file.read(MAX_MANIFEST + 1)
        if len(text) > MAX_MANIFEST:
            raise ValueError(f"it has more than {MAX_MANIFEST:,} bytes")
        manifest = parse_json(text)
        version = manifest["format"]
        if version == FORMAT:
            _check_shape(manifest)
    except (FileNotFoundError, NotADirectoryError) as cause:
        raise IndexNotFoundError(f"there is no index at {folder}: make one with 'meve index PATH --to {folder}'") from (
            cause
        )
    except (OSError, ValueError, KeyError, TypeError) as cause:
        raise IndexCorruptError(f"the manifest {path} can't be read ({cause}): index the texts again") from cause
    if version != FORMAT:
        raise IndexMismatchError(
            f"the index at {folder} has format {version!r}, this version of meve reads {FORMAT}: "
            "read it with the version that wrote it, or index the texts again"
        )
    return dict(manifest)


def read_snapshot(folder: str | Path, read: Callable[[Path, dict[str, Any]], T]) -> T:
    """Check the files of the current generation and return what `read` makes of its folder and manifest.

    Takes no lock: if a save replaces the generation meanwhile, the new one is read instead.

    Raises:
        IndexNotFoundError: no index there.
        IndexCorruptError: a file is missing, cut short or altered.
        IndexMismatchError: a format that this version can't read.
    """
    root = Path(folder)
    while True:
        manifest = read_manifest(root)
        try:
            generation = root / manifest["generation"]
            for name, facts in manifest["files"].items():
                _check_file(generation / name, facts)
            return read(generation, manifest)
        except (StorageError, OSError, LookupError, TypeError, ValueError, OverflowError) as fault:
            if read_manifest(root)["generation"] != manifest["generation"]:
                continue
            if isinstance(fault, MeveError):
                raise
            raise IndexCorruptError(f"the index at {root} can't be read ({fault!r}): index the texts again") from fault


def _write_generation(
    generation: Path, writers: Mapping[str, SnapshotWriter], about: Mapping[str, Any]
) -> dict[str, Any]:
    files = {}
    for name, write in writers.items():
        path = generation / name
        write(path)
        _fsync(path)
        files[name] = {"bytes": path.stat().st_size, "sha256": _digest(path)}
    _fsync(generation)
    return {"format": FORMAT, "generation": generation.name, **about, "files": files}


def _activate(folder: Path, manifest: Mapping[str, Any]) -> None:
    new = folder / f"{MANIFEST}.new"
    new.unlink(missing_ok=True)  # it may be a link in an index from elsewhere, and lead the writer to another file
    with new.open("x", encoding="utf-8") as file:
        file.write(json.dumps(manifest, indent=1, ensure_ascii=False))
    _fsync(new)
    os.replace(new, folder / MANIFEST)
    _fsync(folder)


def _current(folder: Path) -> str | None:
    with suppress(StorageError):
        return str(read_manifest(folder)["generation"])
    return None


def _delete_others(folder: Path, keep: str) -> None:
    for path in folder.iterdir():
        if GENERATION.fullmatch(path.name) and path.name != keep:
            shutil.rmtree(path, ignore_errors=True)
    with suppress(FileNotFoundError):
        (folder / f"{MANIFEST}.new").unlink()


def _check_file(path: Path, facts: Mapping[str, Any]) -> None:
    try:
        size = path.stat().st_size
        if size != facts["bytes"]:
            raise IndexCorruptError(
                f"{path} has {size} bytes, not the {facts['bytes']} that were saved: index the texts again"
            )
        if _digest(path) != facts["sha256"]:
            raise IndexCorruptError(f"{path} was altered since it was saved: index the texts again")
    except FileNotFoundError as cause:
        raise IndexCorruptError(f"{path} is missing: index the texts again") from cause
    except OSError as cause:
        raise IndexCorruptError(f"{path} can't be read ({cause}): index the texts again") from cause


def _digest(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fsync(path: Path) -> None:
    if os.name == "nt" and path.is_dir():  # Windows can't open a folder, and doesn't need to
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
