"""The OpenAPI document of `meve serve`."""

from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import models_json_schema

from meve.service._web.openapi import PAGE, Operations, json_content, json_object, make_document, ref
from meve.service.server.operations import Operation

PREFIX = "/v1/"

_ERRORS = {
    400: "The body is no JSON object, or has two kinds of length.",
    401: "No valid bearer token.",
    403: "The bearer token doesn't permit this, a page of another site asks, or the user said what would be changed.",
    404: "The user has no such memory or trace.",
    408: "The body arrived too slowly.",
    409: "The memory is on hold, or its policy forbids this.",
    413: "The body is too large.",
    415: "The body isn't declared as application/json.",
    421: "The server isn't known by the name in Host.",
    422: "Invalid values; the message names them.",
    429: "Too many requests of this user; Retry-After holds seconds.",
    500: "The server failed; its log holds more.",
    503: "The index or the memory can't be used, or is busy.",
}
_OPERATIONS = Operations(_ERRORS, (400, 401, 403, 408, 413, 415, 421, 422, 429, 500, 503))


def _errors_of(operation: Operation) -> tuple[int, ...]:
    return (404, 409) if {"id", "about"} & operation.request.model_fields.keys() else ()


def describe_server(table: Mapping[str, Operation]) -> dict[str, Any]:
    """Return the document of a server with these operations."""
    paths = {
        PREFIX + name: _OPERATIONS.post(
            operation.description, operation.request.__name__.removesuffix("Request"), *_errors_of(operation)
        )
        for name, operation in table.items()
    }
    health = {"status": {"const": "ok"}, "version": {"type": "string"}}
    paths |= {
        "/health": _OPERATIONS.get(
            "Tell whether the server works.", json_content(ref("Health"), "It works."), 403, 421
        ),
        **_OPERATIONS.get_document_and_page(403, 421),
        "/inspector": _OPERATIONS.get("Return the inspector, a page.", PAGE, 403, 421),
    }
    requests = [(operation.request, "validation") for operation in table.values()]
    answers = [(operation.answer, "serialization") for operation in table.values()]
    _, schemas = models_json_schema([*requests, *answers], ref_template="#/components/schemas/{model}")  # type: ignore[list-item]
    return make_document("MeVe", paths, {**schemas["$defs"], "Health": json_object(health)})
