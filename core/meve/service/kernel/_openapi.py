"""The OpenAPI document of a kernel."""

import sys
from typing import Any

from meve.service._web.openapi import COUNT, Operations, json_content, json_list, json_object, make_document, ref
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
_SHARE_TEXT = {
    "type": "string",
    "pattern": r"^[0-9](\.[0-9]+)?(e-[0-9]+)?$",
    "description": "A number from 0 to 1, as text, as it is signed.",
}
_OPERATIONS = Operations(_ERRORS, _ALWAYS)


def _columns(columns: dict[str, Any], **limits: int) -> dict[str, Any]:
    """Return the schema of a table: one list for each column, all of one length."""
    return json_object({name: json_list(schema, **limits) for name, schema in columns.items()})


def describe_kernel(limits: KernelLimits) -> dict[str, Any]:
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
        "parents": json_list(_NAME, maxItems=MAX_PARENTS, uniqueItems=True),
        "phase": _PHASE,
        "time": {"type": ["number", "null"], "minimum": -sys.float_info.max, "maximum": sys.float_info.max},
        "content": _HASH,
    }
    turn: dict[str, Any] = {"id": _NAME, "digest": _HASH, "priority": _SHARE_TEXT}
    closed: dict[str, Any] = {
        "turn": _NAME,
        "beside": _NAME,
        "edge": {"enum": ["parent", "child", "sibling"]},
        "reason": {"enum": ["edge", "priority", "max_turns"]},
        "priority": _SHARE_TEXT,
        "turns": COUNT,
    }
    answer = {
        "turns": _columns(turn, maxItems=limits.slice_turns),
        "closed": _columns(closed),
        "version": _HASH,
        "token": {"type": "string", "maxLength": MAX_TOKEN},
    }
    schemas = {
        "Policy": json_object(policy, required=()),
        "SliceRequest": json_object(
            {"conversation": _NAME, "anchor": _NAME, "policy": ref("Policy"), "nonce": nonce},
            required=("conversation", "anchor"),
        ),
        "SliceAnswer": json_object(answer),
        "Turn": json_object(entry, required=("id", "content")),
        "TurnsRequest": json_object(
            {"conversation": _NAME, "turns": json_list(ref("Turn"), maxItems=limits.batch_turns)}
        ),
        "TurnsAnswer": json_object({"added": COUNT, "turns": COUNT, "version": _HASH}),
        "ForgetRequest": json_object({"conversation": _NAME}),
        "ForgetAnswer": json_object({"erased": COUNT}),
        "Health": json_object({"status": {"const": "ok"}, "key": text, "algorithm": text, "version": text}),
    }
    metrics = {
        "description": "Counters, in the text format of Prometheus.",
        "content": {"text/plain": {"schema": text}},
    }
    post = _OPERATIONS.post
    paths = {
        "/slice": post("Cut and sign the slice for a turn.", "Slice", 404),
        "/turns": _OPERATIONS.post(
            "Add turns to a conversation, parents before their replies.", "Turns", 403, 404, 409
        ),
        "/forget": post("Erase a conversation.", "Forget", 403),
        "/health": _OPERATIONS.get(
            "Tell whether the kernel works, and which key signs.", json_content(ref("Health"), "It works."), 503
        ),
        "/metrics": _OPERATIONS.get("Count requests and slices.", metrics),
        **_OPERATIONS.get_document_and_page(),
    }
    return make_document("MeVe graph kernel", paths, schemas)
