"""Converts files to text in another process, which is stopped when its time is up."""

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import asdict
from threading import Event, Timer
from typing import IO, Any, Literal, Self

from meve.errors import IngestError, MeveError
from meve.ingest._converted_text import ConvertedText
from meve.ingest._documents import docx_to_markdown, pdf_to_text
from meve.ingest._html import html_to_markdown
from meve.ingest._mail import read_mail
from meve.ingest.chunking import took_too_long

ConvertedKind = Literal["html", "pdf", "docx", "mail"]
MAX_MEMORY = 2 << 30
"""The memory that converting a file may take, in bytes, where the system can limit it (Linux)."""


def convert(data: bytes, kind: ConvertedKind) -> ConvertedText:
    """Return the text of a file.

    Raises:
        MissingExtraError: the package that reads this kind isn't installed.
        IngestError: the file can't be converted.
    """
    if kind == "mail":
        return read_mail(data)
    if kind == "html":
        text, title = html_to_markdown(data.decode())
        return ConvertedText(text=text, title=title)
    if kind == "pdf":
        return ConvertedText(text=pdf_to_text(data), is_markdown=False)
    return ConvertedText(text=docx_to_markdown(data))


class Converter:
    """Converts files in a process of its own, which starts with the first file.

    Args:
        max_seconds: the time limit of a file.
        max_memory: the memory that the process may take for a file, in bytes.
    """

    def __init__(self, max_seconds: float, max_memory: int = MAX_MEMORY) -> None:
        self.max_seconds = max_seconds
        self.max_memory = max_memory
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def convert(self, data: bytes, kind: ConvertedKind) -> ConvertedText:
        """Return what `convert` returns.

        Raises:
            IngestError: the file can't be converted, or takes too long or too much memory, or a package is missing.
        """
        process = self._process = self._process or _start(self.max_memory)
        is_late = Event()

        def stop() -> None:
            is_late.set()
            process.kill()

        timer = Timer(self.max_seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            with contextlib.suppress(OSError):
                _send(process.stdin, {"kind": kind}, data)
            answer, text = _receive(process.stdout)
        except EOFError as cause:
            self.close()
            stopped = f"its reader stopped with status {process.returncode}"
            raise IngestError(took_too_long(self.max_seconds) if is_late.is_set() else stopped) from cause
        finally:
            timer.cancel()
        if "error" in answer:
            raise IngestError(answer["error"])
        del answer["size"]
        return ConvertedText(text=text.decode(), **{**answer, "complaints": tuple(answer["complaints"])})

    def close(self) -> None:
        """Stop the process."""
        process, self._process = self._process, None
        if process is not None:
            _end(process)


def _start(max_memory: int) -> "subprocess.Popen[bytes]":
    command = f"import sys; sys.path[:] = {sys.path!r}; from meve.ingest._converter import serve; serve({max_memory})"
    process = subprocess.Popen(
        [sys.executable, "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        _receive(process.stdout)
    except EOFError as cause:
        _end(process)
        raise IngestError(f"another Python process couldn't be started with {sys.executable}") from cause
    return process


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):  # what it hasn't read can't be sent any more
                stream.close()
    process.wait()


def serve(max_memory: int) -> None:
    """Convert the files that arrive on standard input, until it ends, with at most so many bytes of memory each."""
    source, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a package prints isn't an answer
    _limit_memory(max_memory)
    _send(answers, {}, b"")
    with contextlib.suppress(EOFError, KeyboardInterrupt, BrokenPipeError):
        while True:
            request, data = _receive(source)
            try:
                about = asdict(convert(data, request["kind"]))
                text = about.pop("text")
                _send(answers, about, text.encode("utf-8", "replace"))
            except MeveError as error:
                _send(answers, {"error": str(error)}, b"")
            except MemoryError:
                _send(answers, {"error": f"takes more than {max_memory >> 20:,} MiB of memory; split it"}, b"")


def _limit_memory(size: int) -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + size, used + size))


def _send(stream: IO[bytes] | None, message: dict[str, Any], data: bytes) -> None:
    assert stream is not None
    stream.write(json.dumps({**message, "size": len(data)}).encode() + b"\n" + data)
    stream.flush()


def _receive(stream: IO[bytes] | None) -> tuple[dict[str, Any], bytes]:
    """Return the next message and its data.

    Raises:
        EOFError: the other side has ended.
    """
    assert stream is not None
    line = stream.readline()
    message = json.loads(line) if line.endswith(b"\n") else {"size": 1}
    data = stream.read(message["size"])
    if len(data) < message["size"]:
        raise EOFError
    return message, data
