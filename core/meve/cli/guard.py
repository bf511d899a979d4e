"""How does a command fail? In one line on stderr, with exit status 1."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import typer

from meve.errors import MeveError

P = ParamSpec("P")


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """The same command; what MeVe raises on purpose becomes a message and an exit status."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except MeveError as error:
            from meve.cli.render import complain

            complain("error", str(error))
            raise typer.Exit(1) from error

    return run
