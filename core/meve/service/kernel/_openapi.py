"""The OpenAPI document of a kernel."""

import sys
from typing import Any

from meve._version import __version__
from meve.service.kernel.limits import KernelLimits
from meve.service.kernel.records import MAX_ID, MAX_PARENTS, MAX_PHASES, NAME_PATTERN
from meve.service.kernel.tokens import MAX_TOKEN, NONCE

_ERRORS = {
    400: "The body is no JSON object, or has two kinds of length.",
    401: "No valid bearer token.",
    403: "The bearer token may only ask for slices.",
    404: "No such conversation of this tenant, no such turn in it, or no such parent.",
    408: "The body arrived too slowly.",
    409: "A turn is there already, and differs.",
    413: "The body is too large.",
    422: "Invalid values; the message names them.",
    429: "Too many requests of this tenant; Retry-After holds seconds.",
    500: "The kernel failed; its log holds more.",
    503: "The kernel's graph can't be used, or is busy.",
}
_ALWAYS = (400, 401, 408, 413, 422, 429, 500, 503)
_NAME = {"type": "string", "minLength": 1, "maxLength": MAX_ID, "pattern": f"^{NAME_PATTERN}$"}
_PHASE = {"type": "string", "maxLength": MAX_ID, "pattern": f"^({NAME_PATTERN})?$"}
_HASH = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_COUNT = {"type": "integer", "minimum": 0}


def _object(properties: dict[str, Any], *, required: tuple[str, ...] | None = None) -> dict[str, Any]:
    needed = list(properties if required is None else required)
    kind = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**kind, "required": needed} if needed else kind


def _list(items: dict[str, Any], **limits: int) -> dict[str, Any]:
    return {"type": "array", "items": items, **limits}


def _row(columns: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the schema of a list that holds one value for each column, in order."""
    items = [{"title": name, **schema} for name, schema in columns.items()]
    return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _post(summary: str, name: str, *errors: int) -> dict[str, Any]:
    answers = {"200": _json(_ref(f"{name}Answer"), "Done.")}
    answers |= {str(status): _json(_ref("Error"), _ERRORS[status]) for status in sorted((*_ALWAYS, *errors))}
    body = {"required": True, "content": {"application/json": {"schema": _ref(f"{name}Request")}}}
    return {"post": {"summary": summary, "security": [{"bearer": []}], "requestBody": body, "responses": answers}}


def _get(summary: str, answer: dict[str, Any], *errors: int) -> dict[str, Any]:
    answers = {"200": answer} | {str(status): _json(_ref("Error"), _ERRORS[status]) for status in errors}
    return {"get": {"summary": summary, "responses": answers}}


def make_document(limits: KernelLimits) -> dict[str, Any]:
    """Return the document of a kernel with these limits."""
    text = {"type": "string"}
    nonce = {"type": "string", "pattern": f"^{NONCE.pattern}$"}
    policy = {name: _SHARE for name in ("parent", "child", "sibling")} | {
        "phases": {
            "type": "object",
            "additionalProperties": _SHARE,
            "propertyNames": _PHASE,
            "maxProperties": MAX_PHASES,
        },
        "min_priority": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        "max_turns": {"type": ["integer", "null"], "minimum": 1},
    }
    entry = {
        "id": _NAME,
        "parents": _list(_NAME, maxItems=MAX_PARENTS, uniqueItems=True),
        "phase": _PHASE,
        "time": {"type": ["number", "null"], "minimum": -sys.float_info.max, "maximum": sys.float_info.max},
        "content": _HASH,
    }
    turn = {"id": _NAME, "digest": _HASH, "priority": _SHARE}
    closed = {
        "turn": _NAME,
        "beside": _NAME,
        "edge": {"enum": ["parent", "child", "sibling"]},
        "reason": {"enum": ["edge", "priority", "max_turns"]},
        "priority": _SHARE,
        "turns": _COUNT,
    }
    answer = {
        "turns": _list(_row(turn), maxItems=limits.slice_turns),
        "closed": _list(_row(closed)),
        "version": _HASH,
        "token": {"type": "string", "maxLength": MAX_TOKEN},
    }
    schemas = {
        "Error": _object({"error": _object({"code": text, "message": text})}),
        "Policy": _object(policy, required=()),
        "SliceRequest": _object(
            {"conversation": _NAME, "anchor": _NAME, "policy": _ref("Policy"), "nonce": nonce},
            required=("conversation", "anchor"),
        ),
        "SliceAnswer": _object(answer),
        "Turn": _object(entry, required=("id", "content")),
        "TurnsRequest": _object({"conversation": _NAME, "turns": _list(_ref("Turn"), maxItems=limits.batch_turns)}),
        "TurnsAnswer": _object({"added": _COUNT, "turns": _COUNT, "version": _HASH}),
        "ForgetRequest": _object({"conversation": _NAME}),
        "ForgetAnswer": _object({"erased": _COUNT}),
        "Health": _object({"status": {"const": "ok"}, "key": text, "algorithm": text, "version": text}),
    }
    metrics = {
        "description": "Counters, in the text format of Prometheus.",
        "content": {"text/plain": {"schema": text}},
    }
    page = {"description": "The page.", "content": {"text/html": {"schema": text}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "MeVe graph kernel", "version": __version__},
        "paths": {
            "/slice": _post("Cut and sign the slice for a turn.", "Slice", 404),
            "/turns": _post("Add turns to a conversation, parents before their replies.", "Turns", 403, 404, 409),
            "/forget": _post("Erase a conversation.", "Forget", 403),
            "/health": _get(
                "Tell whether the kernel works, and which key signs.", _json(_ref("Health"), "It works."), 503
            ),
            "/metrics": _get("Count requests and slices.", metrics),
            "/openapi.json": _get("Return this document.", _json({"type": "object"}, "This document.")),
            "/docs": _get("Return this document as a page.", page),
        },
        "components": {"schemas": schemas, "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}},
    }
