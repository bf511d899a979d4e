"""Runs a Starlette application under uvicorn, until the process gets SIGINT or SIGTERM."""

import contextlib
import logging
import signal
import socket
from collections.abc import Callable
from ipaddress import ip_address
from typing import TYPE_CHECKING

from meve.errors import ConfigurationError

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def run_app(make_config: "Callable[[], uvicorn.Config]", host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve an application until the process gets SIGINT or SIGTERM.

    Args:
        make_config: returns how uvicorn serves it; called once the port is open.
        host: the address to listen on.
        port: the port; 0 for any that is free.
        announce: is told the URL once the port is open.

    Raises:
        ConfigurationError: the address can't be listened on.
    """
    import uvicorn

    logging.basicConfig(format=LOG_FORMAT)  # uvicorn shows only its own log
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # uvicorn raises a signal again once it has stopped
    with listen(host, port) as listener, contextlib.suppress(KeyboardInterrupt):
        name = f"[{host}]" if listener.family == socket.AF_INET6 else host
        announce(f"http://{name}:{listener.getsockname()[1]}")
        uvicorn.Server(make_config()).run(sockets=[listener])


def configure(app: "Starlette", *, lifespan: bool = False) -> "uvicorn.Config":
    """Return how uvicorn serves an application: HTTP/1.1 with limits, behind no proxy that it would believe."""
    import uvicorn

    from meve.service._web.protocol import TimedProtocol

    return uvicorn.Config(
        app, http=TimedProtocol, ws="none", lifespan="on" if lifespan else "off", access_log=False,
        log_level="warning", server_header=False, proxy_headers=False, limit_concurrency=512, timeout_keep_alive=60,
        timeout_graceful_shutdown=5, h11_max_incomplete_event_size=16_384,
    )  # fmt: skip


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        ConfigurationError: the address can't be listened on.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=512)
    except (OSError, OverflowError) as cause:
        raise ConfigurationError(f"can't listen on {host}:{port}: {cause}") from cause
