"""Requests to a kernel over kept connections, each with one deadline for the whole exchange."""

import http.client
import io
import json
import os
import socket
import ssl
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from meve._fork_safety import ForkSafeLock
from meve._json_limits import parse_json
from meve.errors import AdmissibilityError, ConfigurationError
from meve.service._web.running import is_loopback

MAX_ANSWER = 16 << 20
"""The most bytes of an answer."""


_BUFFER = 1 << 16
"""Bytes that are read at once; most answers fit."""


class RefusalError(Exception):
    """An answer of the kernel that is an error."""


class KernelConnection:
    """Sends requests to a kernel. Safe to share between threads; a forked process opens connections of its own.

    Raises:
        ConfigurationError: an invalid argument.
    """

    def __init__(self, url: str, *, bearer: str, timeout: float, plain_http: bool) -> None:
        try:
            parts = urlsplit(url)
            self._port, host = parts.port, parts.hostname
        except (ValueError, AttributeError, TypeError):
            parts, host = urlsplit(""), None
        if parts.scheme not in ("http", "https") or not host or parts.username or parts.query or parts.fragment:
            raise ConfigurationError(f"url must be like http://127.0.0.1:8321, got {url!r:.80}")
        if parts.scheme == "http" and not plain_http and not is_loopback(host):
            raise ConfigurationError(
                f"http:// to {host} would show the bearer token to the network: use https, or permit it with plain_http"
            )
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < 1e6:
            raise ConfigurationError(f"timeout must be seconds above 0, got {timeout!r:.40}")
        if (
            not isinstance(bearer, str)
            or not bearer.isascii()
            or not bearer.isprintable()
            or " " in bearer
            or not bearer
        ):
            raise ConfigurationError("bearer must be a token of `meve kernel grant`")
        self._url, self._host, self._path, self._timeout = url, host, parts.path.rstrip("/"), timeout
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._headers = {"Authorization": f"Bearer {bearer}", "Content-Type": "application/json"}
        self._idle: list[_Connection] = []
        self._process = os.getpid()
        self._lock = ForkSafeLock()

    def close(self) -> None:
        """Close all connections that no request uses."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def post(self, path: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the kernel's answer.

        Raises:
            RefusalError: the kernel answered with an error.
            AdmissibilityError: no answer in time, or another one than JSON.
        """
        body = json.dumps(request).encode()
        until = time.monotonic() + self._timeout
        try:
            status, answer = self._exchange(path, body, until)
        except TimeoutError as cause:
            raise AdmissibilityError(
                f"the graph kernel at {self._url} gave no answer in {self._timeout:g} s: nothing was searched"
            ) from cause
        except (OSError, http.client.HTTPException) as cause:
            raise AdmissibilityError(
                f"the graph kernel at {self._url} can't be reached ({type(cause).__name__}: {cause!s:.200}): nothing "
                "was searched; start it with `meve kernel serve`"
            ) from cause
        try:
            data = parse_json(answer)
        except ValueError:
            data = None
        if not isinstance(data, dict):
            raise AdmissibilityError(f"the answer of {self._url}, status {status}, is no JSON object: is it a kernel?")
        if status != 200:
            error = data.get("error")
            reason = error.get("message") if isinstance(error, dict) else None
            text = "".join(each if each.isprintable() else " " for each in str(reason or "no reason given")[:400])
            raise RefusalError(f"{text} (status {status})")
        return data

    def _exchange(self, path: str, body: bytes, until: float) -> tuple[int, bytes]:
        with self._lock:
            if self._process != os.getpid():  # two processes on one connection would get each other's answers
                self._idle, self._process = [], os.getpid()
            connection = self._idle.pop() if self._idle else None
        if connection is not None:
            try:
                return self._send(connection, path, body, until)
            except TimeoutError:
                raise
            except (OSError, http.client.HTTPException):
                pass  # a kept connection, which the kernel closed meanwhile: every request may be sent again
        return self._send(_Connection(self._host, self._port, self._tls), path, body, until)

    def _send(self, connection: "_Connection", path: str, body: bytes, until: float) -> tuple[int, bytes]:
        try:
            connection.until = until
            connection.request("POST", self._path + path, body=body, headers=self._headers)
            response = connection.getresponse()
            answer = response.read(MAX_ANSWER + 1)
            if len(answer) > MAX_ANSWER:
                raise http.client.HTTPException(f"an answer of more than {MAX_ANSWER} bytes")
            is_kept = not response.will_close and response.isclosed()
        except BaseException:
            connection.close()
            raise
        with self._lock:
            if is_kept and len(self._idle) < 16:
                self._idle.append(connection)
                return response.status, answer
        connection.close()
        return response.status, answer


class _Connection(http.client.HTTPConnection):
    """A connection whose requests end at a moment, however slowly bytes arrive."""

    until = 0.0

    def __init__(self, host: str, port: int | None, tls: ssl.SSLContext | None) -> None:
        super().__init__(host, port or (443 if tls else 80))
        self._tls = tls

    def connect(self) -> None:
        """Open the connection."""
        plain = socket.create_connection((self.host, self.port), timeout=left(self.until))
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                plain = self._tls.wrap_socket(plain, server_hostname=self.host)
        except BaseException:
            plain.close()
            raise
        self.sock: Any = _TimedSocket(plain, self)


class _TimedSocket:
    """The part of a socket that `http.client` uses, with a deadline."""

    def __init__(self, inner: socket.socket, connection: _Connection) -> None:
        self._inner, self._connection = inner, connection
        self._unsent = bytearray()

    def sendall(self, data: bytes) -> None:
        self._unsent += data  # headers and body are sent together, since the kernel would wake up for each

    def makefile(self, mode: str) -> io.BufferedReader:  # noqa: ARG002 - as of a socket
        """Send the request, and return a reader of the answer."""
        self._inner.settimeout(left(self._connection.until))
        self._inner.sendall(self._unsent)
        self._unsent.clear()
        return io.BufferedReader(_TimedReader(self._inner, self._connection), _BUFFER)

    def close(self) -> None:
        self._inner.close()


class _TimedReader(io.RawIOBase):
    def __init__(self, inner: socket.socket, connection: _Connection) -> None:
        self._inner, self._connection = inner, connection
        self._raw = inner.makefile("rb", buffering=0)  # keeps the socket open until this is closed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:  # noqa: ANN401 - any buffer
        self._inner.settimeout(left(self._connection.until))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def left(until: float) -> float:
    """Return the seconds until a moment.

    Raises:
        TimeoutError: it has passed.
    """
    seconds = until - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds
