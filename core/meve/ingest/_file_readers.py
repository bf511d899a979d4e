"""Reads a file's text, or reports why it can't be read. Encodings are never guessed."""

import codecs
import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from meve._regular_files import find_problem, open_regular
from meve.errors import IngestError

MAX_BYTES = 20_000_000
"""The default size limit of a file, in bytes."""

MAGIC: dict[bytes, str] = {
    b"%PDF-": "a PDF",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"PK\x03\x04": "a ZIP archive, or an Office or EPUB document",
    b"\x1f\x8b": "a gzip archive",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ\x00": "an xz archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"\x7fELF": "an ELF program",
    b"MZ\x90\x00": "a Windows program",
    b"SQLite format 3\x00": "an SQLite database",
}
"""The first bytes of well-known binary files."""

_DOCTYPE = r"<!DOCTYPE[^>\[]*+(?:\[[^\]]*+\])?[^>]*+>"
SVG = re.compile(rf"\ufeff?(?:(?><\?xml.*?\?>)|{_DOCTYPE}|(?><!--.*?-->)|\s)*+<svg[\s>]", re.DOTALL | re.IGNORECASE)
"""The beginning of an SVG drawing, whatever its file name. No part can be matched in two ways."""
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileText:
    """The text of a file, with size, time and hash."""

    text: str
    """The text, without byte order mark, newlines as line feeds; offsets count its characters."""
    size: int
    """The size in bytes."""
    mtime_ns: int
    """The modification time in nanoseconds, taken before the file was read."""
    sha256: str
    """The digest of the bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileData:
    """The bytes of a file, with its time and hash."""

    data: bytes
    mtime_ns: int
    """The modification time in nanoseconds, taken before the file was read."""
    sha256: str
    """The digest of the bytes."""


def read_text(path: Path, *, max_bytes: int = MAX_BYTES) -> FileText:
    """Read a UTF-8 file.

    Raises:
        IngestError: the file is missing, a broken link, not a regular file, forbidden, larger than `max_bytes`, binary,
            or not UTF-8.
    """
    file = read_data(path, max_bytes=max_bytes)
    return FileText(text=decode(file.data), size=len(file.data), mtime_ns=file.mtime_ns, sha256=file.sha256)


def read_data(path: Path, *, max_bytes: int = MAX_BYTES) -> FileData:
    """Read a file of any kind.

    Raises:
        IngestError: the file is missing, a broken link, not a regular file, forbidden, or larger than `max_bytes`.
    """
    info = read_status(path)
    if info.st_size > max_bytes:
        raise IngestError(_too_large(f"{info.st_size:,}", max_bytes))
    try:
        with open_regular(path) as file:
            data = file.read(max_bytes + 1)
    except OSError as cause:
        raise IngestError(_describe_error(cause)) from cause
    if len(data) > max_bytes:
        raise IngestError(_too_large(f"more than {max_bytes:,}", max_bytes))
    return FileData(data=data, mtime_ns=info.st_mtime_ns, sha256=hashlib.sha256(data).hexdigest())


def read_status(path: Path) -> os.stat_result:
    """Return the file system's status of a regular file; links are followed.

    Raises:
        IngestError: the file is missing, a broken link, not a regular file, or forbidden.
    """
    try:
        info = path.stat()
    except FileNotFoundError as cause:
        reason = f"a broken link, to {path.readlink()}" if path.is_symlink() else "there is no such file"
        raise IngestError(reason) from cause
    except (OSError, ValueError) as cause:
        raise IngestError(_describe_error(cause)) from cause
    if problem := find_problem(info):
        raise IngestError(problem)
    return info


def decode(data: bytes) -> str:
    """Decode UTF-8, with or without a byte order mark; all newlines become line feeds.

    Raises:
        IngestError: binary, SVG, or not UTF-8; the message names the byte.
    """
    for magic, name in MAGIC.items():
        if data.startswith(magic):
            raise IngestError(f"binary: {name}; convert it to text first")
    if data.startswith(UTF_16):
        raise IngestError("not UTF-8: it begins with the byte order mark of UTF-16; save it as UTF-8")
    if (nul := data.find(b"\0")) >= 0:
        raise IngestError(f"binary: a NUL byte at offset {nul}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as cause:
        wrong = f"byte 0x{data[cause.start]:02x} at offset {cause.start}"
        raise IngestError(f"not UTF-8: {wrong}; save it as UTF-8") from cause
    if SVG.match(text[:10_000]):
        raise IngestError("a picture: SVG holds drawing commands, not text")
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _too_large(size: str, max_bytes: int) -> str:
    return f"too large: {size} bytes, over the limit of {max_bytes:,}; split it, or allow more with max_bytes"


def _describe_error(cause: Exception) -> str:
    if isinstance(cause, PermissionError):
        return "permission denied"
    return (getattr(cause, "strerror", None) or str(cause)).lower()
