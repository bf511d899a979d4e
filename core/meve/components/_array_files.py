"""Index files: named arrays and a header of plain data, in NumPy's checksummed `.npz` format."""

import json
import math
import mmap
import struct
import zipfile
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from meve._json_limits import parse_json
from meve.errors import IndexCorruptError, IndexMismatchError, IndexNotFoundError, StorageError, wrap_errors

FORMAT = 1
"""The version of the file layout; readers refuse other versions."""
MAX_ARRAYS, MAX_HEADER = 32, 1 << 20
"""The most arrays of a file, and bytes of its header."""
_BLOCK = 1 << 20

Arrays = dict[str, npt.NDArray[Any]]


def write_arrays(path: Path, kind: str, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays and a header to one new file. The caller makes this atomic, by renaming a temporary file.

    Raises:
        StorageError: the file can't be written.
    """
    about = json.dumps({"meve": kind, "format": FORMAT, **header}).encode()
    try:
        with open(path, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays, header=np.frombuffer(about, dtype=np.uint8))
    except OSError as cause:
        raise StorageError(f"{path} can't be written: {cause}") from cause


def read_arrays(path: Path, kind: str, *, mapped: Collection[str] = ()) -> tuple[dict[str, Any], Arrays]:
    """Read the header and the arrays, and check the checksums.

    Args:
        path: the file.
        kind: the kind of index that it must hold.
        mapped: the names of arrays that are checked and then mapped into memory, not read.

    Raises:
        IndexNotFoundError: the file doesn't exist.
        IndexCorruptError: the file is truncated, altered or not an index file, or an array is larger than its bytes.
        IndexMismatchError: an index of another kind, or of a later format.
    """
    with report_corruption(path):
        try:
            with open(path, "rb") as file:
                _check_sizes(file, path)
                arrays: Arrays = _map_arrays(file, mapped) if mapped else {}
                file.seek(0)
                with np.load(file, allow_pickle=False) as archive:
                    arrays |= {name: archive[name] for name in archive.files if name not in arrays}
        except FileNotFoundError as cause:
            raise IndexNotFoundError(f"no index at {path}") from cause
        header: dict[str, Any] = parse_json(arrays.pop("header").tobytes())
        stored_kind, stored_format = header.pop("meve"), header.pop("format")
    if stored_kind != kind:
        raise IndexMismatchError(f"{path} holds an index of kind {stored_kind!r}, expected {kind!r}")
    if stored_format != FORMAT:
        raise IndexMismatchError(
            f"{path} has format {stored_format!r}; this version of MeVe reads {FORMAT}: upgrade or rebuild"
        )
    return header, arrays


def _check_sizes(file: BinaryIO, path: Path) -> None:
    """Check that no array takes more memory than the file has bytes, before NumPy reserves it."""
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if len(members) > MAX_ARRAYS:
            raise IndexCorruptError(f"{path} is damaged: it holds {len(members)} arrays, and {MAX_ARRAYS} are allowed")
        for member in members:
            with archive.open(member) as stream:
                version = np.lib.format.read_magic(stream)
                if version != (1, 0):
                    raise IndexCorruptError(f"{path} is damaged: array {member.filename!r} has format {version}")
                shape, _, kind = np.lib.format.read_array_header_1_0(stream)
            size, is_stored = math.prod(shape) * kind.itemsize, member.compress_type == zipfile.ZIP_STORED
            most = MAX_HEADER if member.filename == "header.npy" else member.file_size
            if not is_stored or size > min(most, member.compress_size):
                raise IndexCorruptError(f"{path} is damaged: array {member.filename!r} is larger than its bytes")
    file.seek(0)


def _map_arrays(file: BinaryIO, names: Collection[str]) -> Arrays:
    """Map arrays, shape (n, d), after checking their checksums. Their bytes stand in the file as they are."""
    whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    arrays: Arrays = {}
    with zipfile.ZipFile(file) as archive:
        for name in names:
            member = archive.getinfo(f"{name}.npy")
            with archive.open(member) as stream:
                np.lib.format.read_magic(stream)
                shape, is_transposed, kind = np.lib.format.read_array_header_1_0(stream)
                start = stream.tell()
                while stream.read(_BLOCK):  # compares the checksum at its end
                    pass
            if is_transposed or kind.hasobject:
                raise ValueError(f"array {name!r} has another layout")
            lengths = struct.unpack_from("<HH", whole, member.header_offset + 26)  # of its name and of extra fields
            offset = member.header_offset + 30 + sum(lengths) + start
            arrays[name] = np.frombuffer(whole, kind, math.prod(shape), offset).reshape(shape)
    return arrays


def report_corruption(path: Path) -> AbstractContextManager[None]:
    """Raise any error of the block as an `IndexCorruptError` that names the file; errors of MeVe pass unchanged."""
    return wrap_errors(IndexCorruptError, f"{path} is damaged or not an index: reading it")
