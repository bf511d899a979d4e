"""Parts of OpenAPI documents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from meve._version import __version__

COUNT = {"type": "integer", "minimum": 0}
PAGE = {"description": "The page.", "content": {"text/html": {"schema": {"type": "string"}}}}
"""The answer of a path that returns a page."""


@dataclass(frozen=True, slots=True)
class Operations:
    """Describes operations, with the errors that they answer."""

    errors: Mapping[int, str]
    """By status: what it means."""
    always: Sequence[int]
    """The errors of each operation that takes a body."""

    def post(self, summary: str, name: str, *errors: int) -> dict[str, Any]:
        """Return an operation that takes the schema `{name}Request` and returns `{name}Answer`."""
        answers = {"200": json_content(ref(f"{name}Answer"), "Done.")}
        answers |= {str(s): json_content(ref("Error"), self.errors[s]) for s in sorted({*self.always, *errors})}
        body = {"required": True, "content": {"application/json": {"schema": ref(f"{name}Request")}}}
        return {"post": {"summary": summary, "security": [{"bearer": []}], "requestBody": body, "responses": answers}}

    def get(self, summary: str, answer: dict[str, Any], *errors: int) -> dict[str, Any]:
        """Return an operation without a body, for everybody."""
        answers = {"200": answer} | {str(s): json_content(ref("Error"), self.errors[s]) for s in errors}
        return {"get": {"summary": summary, "responses": answers}}

    def get_document_and_page(self, *errors: int) -> dict[str, Any]:
        """Return the paths of the document itself and of its page."""
        document = json_content({"type": "object"}, "This document.")
        return {
            "/openapi.json": self.get("Return this document.", document, *errors),
            "/docs": self.get("Return this document as a page.", PAGE, *errors),
        }


def make_document(title: str, paths: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """Return a document; the schema of errors is added."""
    text = {"type": "string"}
    error = json_object({"error": json_object({"code": text, "message": text})})
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {"Error": error, **schemas},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def json_object(properties: dict[str, Any], *, required: tuple[str, ...] | None = None) -> dict[str, Any]:
    """Return the schema of an object without other properties; all are required unless you name those that are."""
    needed = list(properties if required is None else required)
    kind = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**kind, "required": needed} if needed else kind


def json_list(items: dict[str, Any], **limits: int) -> dict[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "items": items, **limits}


def ref(name: str) -> dict[str, str]:
    """Return a reference to a schema of the document."""
    return {"$ref": f"#/components/schemas/{name}"}


def json_content(schema: dict[str, Any], description: str) -> dict[str, Any]:
    """Return an answer in JSON."""
    return {"description": description, "content": {"application/json": {"schema": schema}}}
