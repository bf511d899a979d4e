"""One file an index: named arrays and a header of plain data, in NumPy's own `.npz` format, checksummed."""

import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from meve.errors import IndexCorruptError, IndexMismatchError, IndexNotFoundError, MeveError, StorageError

FORMAT = 1
"""Counts the layouts of these files; a reader refuses those that it doesn't know."""

Arrays = dict[str, npt.NDArray[Any]]


def write_arrays(path: Path, kind: str, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write one new file. Writing under another name first, and renaming, is the caller's business.

    Raises:
        StorageError: the file can't be written.
    """
    about = json.dumps({"meve": kind, "format": FORMAT, **header}).encode()
    try:
        with open(path, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays, header=np.frombuffer(about, dtype=np.uint8))
    except OSError as cause:
        raise StorageError(f"{path} can't be written: {cause}") from cause


def read_arrays(path: Path, kind: str) -> tuple[dict[str, Any], Arrays]:
    """Read the header and the arrays back, checksums checked.

    Raises:
        IndexNotFoundError: no such file.
        IndexCorruptError: a file that is cut short, altered, or no such file at all.
        IndexMismatchError: an index of another kind, or of a later format.
    """
    with corrupt(path):
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
                arrays: Arrays = {name: archive[name] for name in archive.files}
        except FileNotFoundError as cause:
            raise IndexNotFoundError(f"no index at {path}") from cause
        header: dict[str, Any] = json.loads(arrays.pop("header").tobytes())
        found, layout = header.pop("meve"), header.pop("format")
    if found != kind:
        raise IndexMismatchError(f"{path} holds an index of kind {found!r}, and not {kind!r}")
    if layout != FORMAT:
        raise IndexMismatchError(
            f"{path} has format {layout!r}; this version of MeVe reads {FORMAT}: upgrade or rebuild"
        )
    return header, arrays


@contextmanager
def corrupt(path: Path) -> Iterator[None]:
    """Name the file in whatever goes wrong while its content is taken apart."""
    try:
        yield
    except MeveError:
        raise
    except (Exception, zipfile.BadZipFile) as cause:
        raise IndexCorruptError(f"{path} is damaged or no index of MeVe ({type(cause).__name__}: {cause})") from cause
