"""The HTTP face of `meve serve`: REST and MCP, as a Starlette application."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from meve._version import __version__
from meve.service._web.answers import DeniedError, answer_http_error, count_shed, parse_body
from meve.service._web.page import HEADERS, make_page
from meve.service.server._guard import Gate, HostGuard
from meve.service.server._inspector_page import make_inspector_routes
from meve.service.server._mcp import make_endpoint
from meve.service.server._openapi import PREFIX, describe_server
from meve.service.server._workers import ERRORS, Workers
from meve.service.server.inspection import Inspection
from meve.service.server.limits import ServerLimits
from meve.service.server.operations import Caller, NotPermittedError, Operations, OperationTable
from meve.service.server.tokens import TokenFile

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


def make_app(
    operations: Operations,
    workers: Workers,
    *,
    local: Caller,
    tokens: TokenFile | None,
    hosts: Collection[str],
    limits: ServerLimits,
    elapsed: Callable[[], float] = time.monotonic,
) -> Starlette:
    """Return the application.

    Args:
        operations: what it serves.
        workers: runs them.
        local: as whom requests act if there are no tokens.
        tokens: whose tokens requests need.
        hosts: the host names that requests may name.
        limits: what a request and a user may take.
        elapsed: counts seconds for the limits of rates.
    """
    inspection = Inspection(retriever=operations.retriever, memory=operations.memory)
    doors = _Doors((operations, inspection), workers, Gate.make(tokens, local, limits, elapsed))
    mcp, run_mcp = make_endpoint(operations, workers)
    gets = {"/health": doors.health, "/openapi.json": doors.show_document, "/docs": doors.show_page}
    routes = [Route(path, endpoint, methods=["GET"]) for path, endpoint in gets.items()]
    routes += [Route(PREFIX + name, endpoint, methods=["POST"]) for name, endpoint in doors.operations()]
    routes += make_inspector_routes()
    routes.append(Route("/mcp", _GatedApp(doors.gate, mcp), methods=["POST"]))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:  # noqa: ARG001 - Starlette's interface
        async with run_mcp():
            yield

    app = Starlette(
        routes=routes,
        middleware=[Middleware(HostGuard, hosts=hosts)],
        exception_handlers={HTTPException: answer_http_error},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # it would redirect to whatever Host a request names
    return app


class _Doors:
    """What the server answers at each path but that of MCP."""

    def __init__(self, tables: Sequence[OperationTable[Any]], workers: Workers, gate: Gate) -> None:
        self.tables, self.workers, self.gate = tables, workers, gate
        self._document = describe_server({name: each for table in tables for name, each in table.table.items()})
        self._page = make_page(self._document)

    def operations(self) -> Iterator[tuple[str, Endpoint]]:
        """Yield what answers each operation, by name."""
        for table in self.tables:
            for name in table.table:
                yield name, self._serve(table, name)

    def _serve(self, table: OperationTable[Any], name: str) -> Endpoint:
        async def respond(request: Request) -> Response:
            try:
                caller, body = await self.gate.admit(request)
                data = parse_body(body)
                answer = await self.workers.run(lambda: table.run(name, caller, data))
                return Response(answer.model_dump_json(), media_type="application/json")
            except NotPermittedError as error:
                return DeniedError(403, "forbidden", str(error)).to_response()
            except Exception as error:
                return refuse(error)

        return respond

    async def health(self, request: Request) -> Response:  # noqa: ARG002 - Starlette's interface
        return JSONResponse({"status": "ok", "version": __version__})

    async def show_document(self, request: Request) -> Response:  # noqa: ARG002
        return JSONResponse(self._document)

    async def show_page(self, request: Request) -> Response:  # noqa: ARG002
        return HTMLResponse(self._page, headers=HEADERS)


def refuse(error: Exception) -> Response:
    """Return the answer to an error."""
    denied = ERRORS.explain(error)
    count_shed(denied.status)
    return denied.to_response()


class _GatedApp:
    """Admits a request as the operations do, and hands it on with its caller and its whole body."""

    def __init__(self, gate: Gate, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._gate, self._app = gate, app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            caller, body = await self._gate.admit(Request(scope, receive))
        except Exception as error:
            await refuse(error)(scope, receive, send)
            return
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return waiting.pop() if waiting else await receive()

        scope["meve.caller"] = caller
        await self._app(scope, replay, send)
