"""The page of the inspector: static files of this package. The page asks for the token; it needs none itself."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

FOLDER = Path(__file__).with_name("inspector")
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
"""Let a browser load the page's own files and nothing else, run no script in text, and show it in no frame."""


def make_inspector_routes() -> list[Route]:
    """Return the page at `/inspector`, to which `/` leads, and its scripts and style below."""
    files = sorted(file for file in FOLDER.iterdir() if file.suffix in _KINDS and file.name != "index.html")
    routes = [Route("/inspector", _serve(FOLDER / "index.html"), methods=["GET"])]
    routes.append(Route("/", _lead_to_page, methods=["GET"]))
    return routes + [Route(f"/inspector/{file.name}", _serve(file), methods=["GET"]) for file in files]


async def _lead_to_page(request: Request) -> Response:  # noqa: ARG001 - Starlette's interface
    return RedirectResponse("inspector", 307, HEADERS)  # relative, so that Host isn't repeated


def _serve(file: Path) -> Callable[[Request], Awaitable[Response]]:
    content, kind = file.read_bytes(), _KINDS[file.suffix]

    async def respond(request: Request) -> Response:  # noqa: ARG001 - Starlette's interface
        return Response(content, media_type=kind, headers=HEADERS)

    return respond
