"""Runs `meve serve` as a process."""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from meve._extras import require
from meve.errors import ConfigurationError
from meve.service._web.running import LOG_FORMAT, configure, is_loopback, run_app
from meve.service.server.limits import ServerLimits
from meve.service.server.operations import Caller, Operations
from meve.service.server.tokens import TokenFile

if TYPE_CHECKING:
    import uvicorn

    from meve.service.server._workers import Workers

NEEDS = {"starlette": "serve", "uvicorn": "serve", "mcp": "serve"}
DEFAULT_PORT = 8322


def check_address(host: str, tokens: TokenFile | None, allowed: Collection[str] = ()) -> Collection[str]:
    """Return the host names that requests may name.

    Raises:
        ConfigurationError: the address is open to other machines, and there are no tokens, or no host name.
    """
    if tokens is None and not is_loopback(host):
        raise ConfigurationError(
            f"{host} is open to other machines: give --tokens, which `meve serve grant` makes, or listen on 127.0.0.1"
        )
    from meve.service.server._guard import allowed_hosts

    return allowed_hosts(host, allowed)


def serve_http(
    operations: Operations,
    host: str,
    port: int,
    *,
    local: Caller,
    tokens: TokenFile | None = None,
    allowed: Collection[str] = (),
    limits: ServerLimits | None = None,
    announce: Callable[[str], None] = lambda url: None,  # noqa: ARG005
) -> None:
    """Serve REST and MCP over HTTP until the process gets SIGINT or SIGTERM. Work that runs then is carried out.

    Args:
        operations: what it serves.
        host: the address to listen on.
        port: the port; 0 for any that is free.
        local: as whom requests act without `tokens`.
        tokens: whose tokens requests need; needed for another address than one of loopback.
        allowed: more host names that requests may name.
        limits: what a request and a user may take.
        announce: is told the URL once the port is open.

    Raises:
        ConfigurationError: the address can't be listened on, or is open to others without tokens.
        MissingExtraError: a package of the extra `serve` isn't installed.
    """
    require("meve serve", NEEDS)
    hosts = check_address(host, tokens, allowed)
    limits = limits or ServerLimits()
    with _working(limits) as workers:

        def make() -> "uvicorn.Config":
            config = make_config(operations, workers, local, tokens, hosts, limits)
            hide_messages("", "uvicorn")
            return config

        run_app(make, host, port, announce)


def make_config(
    operations: Operations,
    workers: "Workers",
    local: Caller,
    tokens: TokenFile | None,
    hosts: Collection[str],
    limits: ServerLimits,
) -> "uvicorn.Config":
    """Return how uvicorn serves the operations."""
    from meve.service.server._app import make_app

    return configure(
        make_app(operations, workers, local=local, tokens=tokens, hosts=hosts, limits=limits), lifespan=True
    )


def serve_stdio(operations: Operations, caller: Caller, on_signal: Callable[[], None]) -> None:
    """Serve MCP to one client over standard input and output, until it closes them or the process gets SIGTERM.

    Args:
        operations: what it serves.
        caller: as whom the client acts.
        on_signal: closes what the operations use; called before SIGTERM, SIGINT or a client that leaves before its
            answer end the process.

    Raises:
        MissingExtraError: a package of the extra `serve` isn't installed.
    """
    require("meve serve", NEEDS)
    from meve.service.server._mcp import run_stdio

    logging.basicConfig(format=LOG_FORMAT)  # to standard error
    hide_messages("")
    with _working(ServerLimits()) as workers:

        def stop(*_: object) -> None:
            workers.close()
            on_signal()
            os._exit(0)  # a thread waits for standard input, and can't be interrupted

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        try:
            asyncio.run(run_stdio(operations, workers, caller))
        except* BrokenPipeError:  # the client left before its answer, of which Python 3.13 would complain at its end
            stop()


@contextlib.contextmanager
def _working(limits: ServerLimits) -> Iterator["Workers"]:
    from meve.service.server._workers import Workers

    workers = Workers(limits.threads)
    try:
        yield workers
    finally:
        workers.close()


class _TypesOnly(logging.Filter):
    """Leaves of an exception its type, since its message may quote what was asked or stored."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[0] is not None:
            record.msg, record.args = f"{record.getMessage()} ({record.exc_info[0].__name__})", ()
            record.exc_info = record.exc_text = None
        return True


def hide_messages(*loggers: str) -> None:
    """Let the handlers of loggers leave of exceptions their types."""
    for name in loggers:
        for handler in logging.getLogger(name).handlers:
            handler.addFilter(_TypesOnly())
