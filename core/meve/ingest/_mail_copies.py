"""Leaves copies of earlier mails and signatures out of mails."""

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

from meve.ingest._html import html_to_markdown

LONGEST_SIGNATURE = 10
"""The most lines of a signature; what is longer is text."""
SIGNATURE = re.compile(r"-- +\Z")
"""The line above a signature (RFC 3676, section 4.3)."""
WROTE = frozenset(("wrote", "writes", "écrit", "escribió", "escreveu", "scritto"))
"""Words that end the line above a quoted reply, such as "On Tue, 3 Mar 2026, Ann wrote:"."""
SCHRIEB = frozenset(("schrieb", "schreef"))
"""Words that stand anywhere in such a line."""
FIRST = ("On ", "Le ", "El ", "Il ", "Em ", "Am ", "Op ")
"""The beginnings of such a line, if it is wrapped."""
LEAD_ADDRESS = re.compile(r"[\w.+-]@[\w-]+\.\w")
LEAD_TIME = re.compile(r"\b\d{1,2}:\d\d\b")
LEAD_DATE = re.compile(
    r"\b\d{4}-\d\d-\d\d\b|\b\d{1,2}([./-]) ?\d{1,2}\1 ?(?:\d\d){1,2}\b"
    r"|\b\d{1,2}(?:st|nd|rd|th|er)?\.? (?:of |de )?[^\W\d_]{3,10}\.?,? (?:de )?\d{4}\b"
    r"|\b[^\W\d_]{3,10}\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4}\b"
)
FORWARD = re.compile(
    r"forwarded message|weitergeleitete[rn]? nachricht|message (?:transféré|réexpédié)|mensaje reenviado"
    r"|mensagem (?:re)?encaminhada|messaggio inoltrato|doorgestuurd bericht",
    re.IGNORECASE,
)
"""The line above a forwarded mail."""
INLINE = frozenset(("a", "b", "code", "em", "font", "i", "small", "span", "strong", "u"))
"""Elements that are parts of a line."""
STEPS = 16
"""The elements around a text among which its block is looked for."""


def leave_out_copies(text: str, *, is_reply: bool) -> str:
    """Return a plain text of a mail without quoted replies and signature.

    Left out are lines that begin with `>` below a line such as "On Tue, 3 Mar 2026, Ann wrote:": at the end, and the
    only ones elsewhere, since several may be answered one by one. That line holds a date, a time or a mail address, or,
    if the mail is no reply, a date and an address. A signature is what is below the last `-- `, at most 10 lines.

    Everything stays if the mail forwards another, or if nothing else is in it. `>From ` becomes `From `.
    """
    lines = [line[line.startswith(">From ") :] for line in text.strip("\n").split("\n")]
    rest = lines
    if not FORWARD.search(text):
        rest = _without_signature(lines)
        is_signed = len(rest) < len(lines)
        rest = _without_quotes(rest, is_reply=is_reply)
        rest = rest if is_signed else _without_signature(rest)
    return "\n".join(rest if any(map(str.isalnum, "".join(rest))) else lines).strip("\n")


def page_to_markdown(html: str, *, is_reply: bool) -> str:
    """Return an HTML text of a mail as Markdown without quoted replies and signature, as `leave_out_copies` does.

    A quoted reply is a `<blockquote>` that the program marked as one. In a reply, no line needs to introduce it.
    """
    text = html_to_markdown(html, leave_out=lambda page: _find_quoted_elements(page, is_reply=is_reply))[0]
    if not FORWARD.search(text):
        text = "\n".join(_without_signature(text.split("\n"))).strip("\n")
    return text if any(map(str.isalnum, text)) else html_to_markdown(html)[0]


def _without_signature(lines: list[str]) -> list[str]:
    first = max((n for n, line in enumerate(lines) if SIGNATURE.match(line)), default=len(lines))
    below = [line for line in lines[first + 1 :] if line.strip()]
    is_text = len(below) > LONGEST_SIGNATURE or any(line.startswith((">", "---")) for line in below)
    return lines if is_text else lines[:first]


def _without_quotes(lines: list[str], *, is_reply: bool) -> list[str]:
    """Return the lines without the introduced quote that ends the mail, and without the only other one."""
    spans = _find_quotes(lines, is_reply=is_reply)
    if spans and spans[-1][2] and not any(line.strip() for line in lines[spans[-1][1] :]):
        start, _, lead = spans.pop()
        lines = lines[: start - lead]
    if len(spans) == 1 and spans[0][2]:
        start, end, lead = spans[0]
        lines = [*lines[: start - lead], *lines[end:]]
    return lines


def _find_quotes(lines: list[str], *, is_reply: bool) -> list[tuple[int, int, int]]:
    """Return the first line of each quote, the line after it, and how many lines above introduce it; 0 for none."""
    spans: list[tuple[int, int, int]] = []
    above: list[int] = []
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        is_below = bool(spans) and spans[-1][1] == number
        if line.startswith(">") and (is_below or not line.startswith(">>> ")):
            if spans and above and spans[-1][1] == above[-1] + 1:
                spans[-1] = (spans[-1][0], number + 1, spans[-1][2])
            else:
                spans.append((number, number + 1, _count_lead(lines, number, above, is_reply=is_reply)))
        above = [*above[-1:], number]
    return spans


def _count_lead(lines: list[str], number: int, above: list[int], *, is_reply: bool) -> int:
    """Return how many lines before a quote introduce it, blank ones included; it may be wrapped once."""
    if not above:
        return 0
    first, lead = above[-1], lines[above[-1]]
    before = lines[above[0]]
    is_adjacent = len(above) > 1 and above[0] == above[1] - 1
    if is_adjacent and before.startswith(FIRST) and not lead.startswith(FIRST) and before.rstrip()[-1] not in ".!?:":
        first, lead = above[0], f"{before} {lead}"
    return number - first if _introduces(lead, is_reply=is_reply) else 0


def _introduces(line: str, *, is_reply: bool) -> bool:
    """Return whether a line introduces a copy of an earlier mail."""
    words = line.split()
    line = " ".join(words)
    parts = line.rstrip(" :").split()
    if not line.endswith(":") or not parts or (parts[-1] not in WROTE and SCHRIEB.isdisjoint(parts)):
        return False
    has_date, has_address = bool(LEAD_DATE.search(line)), bool(LEAD_ADDRESS.search(line))
    if is_reply:
        return has_date or has_address or bool(LEAD_TIME.search(line))
    return has_date and has_address


def _find_quoted_elements(page: Any, *, is_reply: bool) -> Sequence[Any]:  # noqa: ANN401 - imported late
    """Return the quoted replies of a page, and the texts that introduce them, of those that may be left out."""
    if FORWARD.search(" ".join(page.get_text().split())):
        return ()
    quotes: list[tuple[Any, list[Any]]] = []
    inside: set[int] = set()
    line: list[Any] = []
    block, is_ended, is_last = None, True, False
    for node in page.descendants:
        if id(node) in inside:
            continue
        if node.name == "blockquote" and _is_marked(node):
            inside.update(map(id, node.descendants))
            is_lead = _introduces("".join(each.get_text() for each in line), is_reply=is_reply)
            quotes.append((node, line if is_lead else []))
            line, is_last = [], True
        elif node.name is not None:
            is_ended = is_ended or node.name not in INLINE
        elif node.strip():
            around = next((each for each in islice(node.parents, STEPS) if each.name not in INLINE), None)
            if is_ended or around is not block:
                line = []
            line.append(node.parent if node.parent.name == "a" and node.parent.string is node else node)
            block, is_ended, is_last = around, False, False
    found: list[Any] = []
    if is_last and (is_reply or quotes[-1][1]):
        quote, lead = quotes.pop()
        found += [quote, *lead]
    if len(quotes) == 1 and quotes[0][1]:
        quote, lead = quotes[0]
        found += [quote, *lead]
    return found


def _is_marked(quote: Any) -> bool:  # noqa: ANN401
    """Return whether a program marked a `<blockquote>` as a quoted reply."""
    return "gmail_quote" in quote.get("class", ()) or quote.get("type", "").lower() == "cite"
