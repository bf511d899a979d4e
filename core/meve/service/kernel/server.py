"""Runs a kernel as a process."""

import contextlib
import logging
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

from meve._extras import require
from meve.errors import ConfigurationError
from meve.service._web.running import configure, run_app
from meve.service.kernel.kernel import GraphKernel
from meve.signing_keys import SigningKeys

if TYPE_CHECKING:
    import uvicorn

_LOG = logging.getLogger("meve.kernel")

NEEDS = {"starlette": "kernel", "uvicorn": "kernel"}
DEFAULT_PORT = 8321


def run_server(
    kernel: GraphKernel,
    host: str,
    port: int,
    announce: Callable[[str], None] = lambda url: None,  # noqa: ARG005
    load_keys: Callable[[], SigningKeys] | None = None,
) -> None:
    """Serve a kernel until the process gets SIGINT or SIGTERM, then close it.

    Args:
        kernel: the kernel.
        host: the address to listen on.
        port: the port; 0 for any that is free.
        announce: is told the URL once the port is open.
        load_keys: called at SIGHUP, to sign with what it returns from then on.

    Raises:
        ConfigurationError: the address can't be listened on.
        MissingExtraError: Starlette or uvicorn isn't installed.
    """
    require("meve kernel serve", NEEDS)
    if load_keys is not None and hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda *_: _renew_keys(kernel, load_keys))
    with contextlib.closing(kernel):
        run_app(lambda: make_config(kernel), host, port, announce)


def make_config(kernel: GraphKernel) -> "uvicorn.Config":
    """Return how uvicorn serves a kernel."""
    from meve.service.kernel._app import make_app

    return configure(make_app(kernel))


def _renew_keys(kernel: GraphKernel, load_keys: Callable[[], SigningKeys]) -> None:
    try:
        kernel.keys = load_keys()
    except ConfigurationError as error:
        _LOG.error("the keys stay as they are: %s", error)
    else:
        _LOG.warning("signing with key %s from now on", kernel.keys.current)
