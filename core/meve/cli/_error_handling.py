"""Error handling of commands: one line on stderr, and exit status 1."""

import errno
import io
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, ParamSpec, TextIO

import typer
from typer.core import TyperCommand

from meve.errors import ConfigurationError, InsufficientContextError, MeveError
from meve.pipeline.config import check_option_names

P = ParamSpec("P")


def handle_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Wrap a command so that MeVe's errors and unwritable output become a message and exit status 1.

    A closed pipe ends the command without a message.
    """

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except InsufficientContextError as error:
            reason = error.context.trace.sufficiency["reason"]
            _fail(f"the context isn't sufficient: {reason} (--when-insufficient raise)", error)
        except MeveError as error:
            _fail(str(error), error)
        except KeyboardInterrupt:
            from meve.cli._render import print_message

            print_message("warning", "interrupted; run the command again to resume from what is saved")
            raise
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise  # click exits without a message
            reason = error.strerror or str(error)
            if error.filename is not None:
                _fail(f"{error.filename}: {reason}", error)
            _discard(sys.stdout)
            _fail(f"the output can't be written: {reason}", error)

    return run


def refuse_ignored(context: typer.Context, by: str, *names: str) -> None:
    """Raise BadParameter if the command line gives one of these parameters, which the option `by` ignores."""
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            parameter = next(each for each in context.command.params if each.name == name)
            raise typer.BadParameter(f"{parameter.opts[0]} doesn't go with {by}: leave out one of them")


class Command(TyperCommand):
    """A command whose error for an unknown option names the nearest one, and all that the command has."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer's own context
        """Parse the arguments.

        Raises:
            UsageError: invalid arguments.
        """
        try:
            return super().parse_args(ctx, args)
        except Exception as error:  # typer doesn't export the class of this error
            if not (given := getattr(error, "option_name", "") or "").startswith("--"):
                raise
            known = [
                name.removeprefix("--") for parameter in self.params for name in parameter.opts if name[:2] == "--"
            ]
            try:
                check_option_names([given.removeprefix("--").replace("_", "-")], known)
            except ConfigurationError as explained:
                message = re.sub("(option|mean) '", r"\1 '--", str(explained))
                vars(error).update(message=message, possibilities=None)
            raise


def escape_unencodable_output() -> None:
    """Make stdout and stderr escape characters that they can't encode; a closed stream is replaced by os.devnull.

    Called once a process, before anything is written.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - as long as the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _fail(message: str, cause: Exception) -> None:
    from meve.cli._render import print_message

    print_message("error", message)
    raise typer.Exit(1) from cause


def _discard(stream: TextIO) -> None:
    """Discard unwritten output, so that the interpreter doesn't fail on it at exit."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
