"""Bodies of requests, and answers to errors, with Starlette."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from meve._json_limits import parse_json
from meve._telemetry import count
from meve.errors import DuplicateIdError, PolicyError, StorageError, StoreBusyError, UnknownIdError, ValidationError


class DeniedError(Exception):
    """A request that gets an error as its answer."""

    def __init__(self, status: int, code: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.code, self.headers = status, code, {k.replace("_", "-"): v for k, v in headers.items()}

    def to_response(self) -> Response:
        """Return the answer."""
        error = {"code": self.code, "message": str(self)}
        return JSONResponse({"error": error}, self.status, self.headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorAnswers:
    """Turns errors into answers."""

    server: str
    """How the messages name the server, such as `kernel`."""
    data: str
    """How they name its data, such as `kernel's graph`."""
    log: logging.Logger
    describe: Callable[[Exception], str]
    """What the log tells of an error that isn't expected."""

    def explain(self, error: Exception) -> DeniedError:
        """Return the answer to an error; what isn't expected is logged."""
        if isinstance(error, DeniedError):
            return error
        for kind, status, code in _EXPECTED:
            if isinstance(error, kind):
                return DeniedError(status, code, str(error))
        if isinstance(error, StoreBusyError):
            return DeniedError(503, "busy", f"the {self.data} is busy: try again", Retry_After="1")
        if isinstance(error, ClientDisconnect):
            return DeniedError(400, "no_json", "the client left")
        self.log.error("a request failed: %s", self.describe(error))
        if isinstance(error, StorageError):
            return DeniedError(503, "storage", f"the {self.data} can't be used: see the {self.server}'s log")
        return DeniedError(500, "internal", f"the {self.server} failed: see its log")


_SHED = {429: "rate", 503: "busy"}
"""Kinds of requests that are refused under load."""
_EXPECTED: tuple[tuple[type[Exception], int, str], ...] = (
    (UnknownIdError, 404, "unknown"),
    (DuplicateIdError, 409, "conflict"),
    (PolicyError, 409, "conflict"),
    (ValidationError, 422, "invalid"),
)


async def read_body(request: Request, most: int, seconds: float) -> bytes:
    """Return a request's body.

    Raises:
        DeniedError: too large or too slow.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                body += part
                if len(body) > most:
                    raise DeniedError(413, "too_large", f"a body may have at most {most} bytes", Connection="close")
    except TimeoutError:
        raise DeniedError(408, "slow", f"a body must arrive within {seconds} s", Connection="close") from None
    return bytes(body)


def parse_body(body: bytes) -> Mapping[str, Any]:
    """Return the JSON object of a body.

    Raises:
        DeniedError: no JSON object.
    """
    try:
        data = parse_json(body)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise DeniedError(400, "no_json", "the body must be a JSON object, nested at most 64 deep")
    return data


def check_framing(request: Request) -> None:
    """Check that a request has one kind of length: proxies read others differently.

    Raises:
        DeniedError: it has two.
    """
    if {"content-length", "transfer-encoding"} <= set(request.headers):
        raise DeniedError(400, "framing", "give Content-Length or Transfer-Encoding", Connection="close")


def check_rate(wait: float) -> None:
    """Check that there is nothing to wait for; `wait` is in seconds.

    Raises:
        DeniedError: there is.
    """
    if wait:
        raise DeniedError(429, "rate", f"too many requests: wait {wait:.3f} s", Retry_After=str(int(wait) + 1))


def count_shed(status: int) -> None:
    """Report a request that is refused under load."""
    if status in _SHED:
        count("meve.shed", {"meve.shed.kind": _SHED[status]})


def read_bearer(request: Request) -> str | None:
    """Return the only bearer token of a request; None if there is none, or more than one."""
    given = request.headers.getlist("authorization")
    scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return token if scheme.lower() == "bearer" else None


def refuse_stranger() -> DeniedError:
    """Return the answer to a request without a valid bearer token."""
    return DeniedError(401, "unauthenticated", "give a valid bearer token", WWW_Authenticate="Bearer")


async def answer_http_error(request: Request, error: Exception) -> Response:  # noqa: ARG001 - Starlette's interface
    """Return the answer to an error of Starlette, such as an unknown path."""
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    headers = {k.replace("-", "_"): v for k, v in (error.headers or {}).items()}
    return DeniedError(status, status.name.lower(), status.phrase, **headers).to_response()
