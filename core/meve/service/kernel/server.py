"""Runs a kernel as a process."""

import contextlib
import logging
import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from meve._extras import require
from meve.errors import ConfigurationError
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
    import uvicorn

    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")  # uvicorn shows only its own log
    if load_keys is not None and hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda *_: _renew_keys(kernel, load_keys))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # uvicorn raises a signal again once it has stopped
    stopped = contextlib.suppress(KeyboardInterrupt)
    with contextlib.closing(kernel), _listen(host, port) as listener, stopped:
        name = f"[{host}]" if listener.family == socket.AF_INET6 else host
        announce(f"http://{name}:{listener.getsockname()[1]}")
        uvicorn.Server(make_config(kernel)).run(sockets=[listener])


def make_config(kernel: GraphKernel) -> "uvicorn.Config":
    """Return how uvicorn serves a kernel."""
    import uvicorn

    from meve.service.kernel._app import make_app
    from meve.service.kernel._protocol import KernelProtocol

    return uvicorn.Config(
        make_app(kernel), http=KernelProtocol, ws="none", lifespan="off", access_log=False, log_level="warning",
        server_header=False, proxy_headers=False, limit_concurrency=512, timeout_keep_alive=60,
        timeout_graceful_shutdown=5, h11_max_incomplete_event_size=16_384,
    )  # fmt: skip


def _renew_keys(kernel: GraphKernel, load_keys: Callable[[], SigningKeys]) -> None:
    try:
        kernel.keys = load_keys()
    except ConfigurationError as error:
        _LOG.error("the keys stay as they are: %s", error)
    else:
        _LOG.warning("signing with key %s from now on", kernel.keys.current)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=512)
    except (OSError, OverflowError) as cause:
        raise ConfigurationError(f"can't listen on {host}:{port}: {cause}") from cause
