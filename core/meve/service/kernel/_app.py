"""The HTTP face of a kernel, as a Starlette application."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias, TypeVar

from meve._extras import require_imports
from meve._version import __version__
from meve.errors import MeveError, ValidationError
from meve.service._web.page import HEADERS, make_page
from meve.service._web.rates import RateLimiter
from meve.service.kernel._metrics import Metrics
from meve.service.kernel._openapi import describe_kernel
from meve.service.kernel._store import Grant
from meve.service.kernel.kernel import GraphKernel
from meve.service.kernel.records import TurnEntry, check_name, read_policy
from meve.service.kernel.server import NEEDS
from meve.service.kernel.tokens import check_nonce

with require_imports("meve kernel serve", NEEDS):
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
    from starlette.routing import Route

    from meve.service._web.answers import (
        DeniedError,
        ErrorAnswers,
        answer_http_error,
        check_framing,
        check_rate,
        count_shed,
        parse_body,
        read_bearer,
        read_body,
        refuse_stranger,
    )

_LOG = logging.getLogger("meve.kernel")
_READERS = 40
"""The most requests that read the graph at once."""
_WRITERS = 8
"""The most that change it at once. Writers wait for each other, and must leave threads and connections to readers."""

T = TypeVar("T")

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]
Work: TypeAlias = Callable[[Grant, Mapping[str, Any]], str]
"""Returns the answer to a request as JSON."""


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if isinstance(error, MeveError) else str(type(error))


_ERRORS = ErrorAnswers(server="kernel", data="kernel's graph", log=_LOG, describe=_describe)


def make_app(kernel: GraphKernel, elapsed: Callable[[], float] = time.monotonic) -> Starlette:
    """Return the application of a kernel; `elapsed` counts seconds for the limits of rates."""
    doors = _Doors(kernel, elapsed)
    endpoints = {
        ("/slice", "POST"): doors.serve(doors.cut),
        ("/turns", "POST"): doors.serve(doors.add, changes=True),
        ("/forget", "POST"): doors.serve(doors.forget, changes=True),
        ("/health", "GET"): doors.health,
        ("/metrics", "GET"): doors.show_metrics,
        ("/openapi.json", "GET"): doors.show_document,
        ("/docs", "GET"): doors.show_page,
    }
    routes = [
        Route(path, doors.counted(path, endpoint), methods=[method]) for (path, method), endpoint in endpoints.items()
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: answer_http_error})
    app.router.redirect_slashes = False  # it would redirect to whatever Host a request names
    return app


class _Doors:
    """What the kernel answers at each path."""

    def __init__(self, kernel: GraphKernel, elapsed: Callable[[], float]) -> None:
        self.kernel, self.metrics, self.limits = kernel, Metrics(), kernel.limits
        self._limiter = RateLimiter(self.limits.requests_per_second, self.limits.burst, elapsed)
        self._document = describe_kernel(self.limits)
        self._page = make_page(self._document)
        self._readers = ThreadPoolExecutor(_READERS, "meve-kernel")
        self._writers = ThreadPoolExecutor(_WRITERS, "meve-kernel-writer")

    def cut(self, grant: Grant, data: Mapping[str, Any]) -> str:
        begin = time.perf_counter()
        check_fields(data, "conversation", "anchor", optional=("policy", "nonce"))
        policy = read_policy(data.get("policy", {}))
        conversation, anchor = check_name(data["conversation"], "conversation"), check_name(data["anchor"], "anchor")
        found = self.kernel.cut(grant.tenant, conversation, anchor, policy, check_nonce(data.get("nonce", "")))
        self.metrics.count_slice(time.perf_counter() - begin, is_cached=found.is_cached)
        rest = json.dumps({"version": found.version, "token": found.token})
        return f'{{"turns":{found.turns_json},"closed":{found.closed_json},{rest[1:-1]}}}'

    def add(self, grant: Grant, data: Mapping[str, Any]) -> str:
        check_fields(data, "conversation", "turns")
        if not isinstance(data["turns"], list):
            raise ValidationError("turns must be a list")
        entries = [_read_entry(row, n) for n, row in enumerate(data["turns"])]
        added, turns, version = self.kernel.add(grant.tenant, data["conversation"], entries)
        self.metrics.count_turns(added)
        return json.dumps({"added": added, "turns": turns, "version": version})

    def forget(self, grant: Grant, data: Mapping[str, Any]) -> str:
        check_fields(data, "conversation")
        erased = self.kernel.forget(grant.tenant, check_name(data["conversation"], "conversation"))
        return json.dumps({"erased": erased})

    async def health(self, request: Request) -> Response:  # noqa: ARG002 - Starlette's interface
        await self._run(self.kernel.store.check)
        key = self.kernel.keys.signing
        return JSONResponse({"status": "ok", "key": key.id, "algorithm": key.algorithm, "version": __version__})

    async def show_metrics(self, request: Request) -> Response:  # noqa: ARG002
        return PlainTextResponse(self.metrics.to_text(), media_type="text/plain; version=0.0.4")

    async def show_document(self, request: Request) -> Response:  # noqa: ARG002
        return JSONResponse(self._document)

    async def show_page(self, request: Request) -> Response:  # noqa: ARG002
        return HTMLResponse(self._page, headers=HEADERS)

    def serve(self, work: Work, *, changes: bool = False) -> Endpoint:
        async def respond(request: Request) -> Response:
            grant = await self._authenticate(request)
            check_rate(self._limiter.take(grant.tenant))
            if changes and not grant.may_add:
                raise DeniedError(403, "forbidden", "this bearer token may only ask for slices")
            body = await read_body(request, self.limits.body_bytes, self.limits.body_seconds)
            answer = await self._run(lambda: work(grant, parse_body(body)), changes=changes)
            return Response(answer, media_type="application/json")

        return respond

    def counted(self, path: str, endpoint: Endpoint) -> Endpoint:
        async def respond(request: Request) -> Response:
            try:
                check_framing(request)
                response = await endpoint(request)
            except Exception as error:
                response = _ERRORS.explain(error).to_response()
            self.metrics.count_request(path, response.status_code)
            count_shed(response.status_code)
            return response

        return respond

    async def _run(self, work: Callable[[], T], *, changes: bool = False) -> T:
        threads = self._writers if changes else self._readers  # Starlette's way takes longer
        return await asyncio.get_running_loop().run_in_executor(threads, work)

    async def _authenticate(self, request: Request) -> Grant:
        token, store, grant = read_bearer(request), self.kernel.store, None
        if token is not None:  # a thread takes longer than a file, but a server may not answer
            grant = (
                await self._run(lambda: store.authenticate(token))
                if store.database.is_remote
                else store.authenticate(token)
            )
        if grant is None:
            raise refuse_stranger()
        return grant


def check_fields(data: Mapping[str, Any], *needed: str, optional: tuple[str, ...] = ()) -> None:
    """Check the names in a request.

    Raises:
        ValidationError: one is missing or unknown.
    """
    if not set(needed) <= set(data) <= {*needed, *optional}:
        known = ", ".join([*needed, *(f"{name} (optional)" for name in optional)])
        raise ValidationError(f"the body must hold {known}, got {', '.join(map(ascii, data)) or 'nothing':.200}")


def _read_entry(row: object, n: int) -> TurnEntry:
    if not isinstance(row, dict):
        raise ValidationError(f"turn {n} must be an object, got {row!r:.80}")
    check_fields(row, "id", "content", optional=("parents", "phase", "time"))
    parents = row.get("parents", [])
    if not isinstance(parents, list):
        raise ValidationError(f"the parents of turn {n} must be a list, got {parents!r:.80}")
    return TurnEntry(**{**row, "parents": tuple(parents)})
