"""An OpenAPI document as a page for people: no script, nothing from elsewhere."""

import json
import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

_STYLE = (
    ":root { color-scheme: light dark } body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem "
    "auto; padding: 0 1rem } pre { overflow-x: auto; padding: .75rem; border: 1px solid #8888; border-radius: 6px } "
    "code, pre { font: 14px/1.4 ui-monospace, monospace } th, td { text-align: left; padding-right: 1.5rem; "
    "vertical-align: top } h2 { margin-top: 2.5rem }"
)
HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"}
"""Headers that let a browser load the style of the page and nothing else."""
_REFERENCE = re.compile(r"#/components/schemas/([A-Za-z]{1,40})")


def make_page(document: Mapping[str, Any]) -> str:
    """Return the page: each path with its request and answers, then each schema."""
    title = escape(f"{document['info']['title']} {document['info']['version']}")
    lines = [
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>',
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style><h1>{title}</h1>',
        '<p>This page shows <a href="openapi.json">openapi.json</a>. '
        "Send the bearer token in the header <code>Authorization</code> where a path asks for one.</p>",
    ]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            lines += _describe(f"{method.upper()} {path}", operation)
    for name, schema in document["components"]["schemas"].items():
        lines.append(f'<h2 id="{escape(name)}">{escape(name)}</h2><pre>{escape(json.dumps(schema, indent=2))}</pre>')
    return "\n".join(lines) + "</html>\n"


def _describe(heading: str, operation: Mapping[str, Any]) -> Iterator[str]:
    asks = " It asks for a bearer token." if "security" in operation else ""
    yield f"<h2>{escape(heading)}</h2><p>{escape(operation['summary'])}{asks}</p><table>"
    if body := operation.get("requestBody"):
        yield f"<tr><th>request<td>{_link(body)}<td>"
    for status, answer in operation["responses"].items():
        yield f"<tr><th>{escape(status)}<td>{_link(answer)}<td>{escape(answer['description'])}"
    yield "</table>"


def _link(part: Mapping[str, Any]) -> str:
    """Return links to the schemas that a body or an answer names."""
    names = dict.fromkeys(_REFERENCE.findall(json.dumps(part.get("content", {}))))
    return ", ".join(f'<a href="#{name}">{name}</a>' for name in names)
