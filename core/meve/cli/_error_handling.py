"""How does a command fail? In one line on stderr, with exit status 1."""

import errno
import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import ParamSpec, TextIO

import typer

from meve.errors import MeveError

P = ParamSpec("P")


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """The same command; what MeVe raises on purpose, and output that can't be written, become a message and a status.

    A reader that closed the pipe is no fault: that ends quietly.
    """

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except MeveError as error:
            _fail(str(error), error)
        except KeyboardInterrupt:
            from meve.cli._render import complain

            complain("warning", "interrupted; started again, it goes on from what is saved")
            raise
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise  # click ends quietly then
            why = error.strerror or str(error)
            if error.filename is not None:
                _fail(f"{error.filename}: {why}", error)
            _drop(sys.stdout)
            _fail(f"the output can't be written: {why}", error)

    return run


def any_text_can_be_written() -> None:
    """What stdout or stderr has no character for is written as an escape; one that is closed takes all and keeps none.

    For a whole process: called once, before anything is written.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - as long as the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _fail(message: str, cause: Exception) -> None:
    from meve.cli._render import complain

    complain("error", message)
    raise typer.Exit(1) from cause


def _drop(stream: TextIO) -> None:
    """Let what still waits to be written go nowhere, so that the interpreter doesn't fail on it at its end."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
