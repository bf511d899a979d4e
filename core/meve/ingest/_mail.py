"""Reads mails: the text without quoted replies and signature, and what the headers say."""

import re
from collections.abc import Iterator
from datetime import UTC
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser
from email.policy import EmailPolicy
from email.utils import format_datetime
from typing import Any

from meve.errors import IngestError
from meve.ingest._converted_text import ConvertedText
from meve.ingest._html import html_to_markdown

LONGEST_HEADER = 4_000
"""The most characters of a header that is read, since the parser takes quadratic time for some headers."""
LONGEST_SIGNATURE = 10
"""The most lines of a signature; what is longer is text."""
SIGNATURE = re.compile(r"-- +\Z")
"""The line above a signature (RFC 3676, section 4.3)."""
WROTE = re.compile(r"\b(wrote|writes|schrieb|écrit|escribió|escreveu|scritto|schreef)\b")
"""A word of the line above a quoted reply, such as "On 3 March, Ann wrote:"."""


class _Policy(EmailPolicy):
    """Reads no header that is too long."""

    def header_fetch_parse(self, name: str, value: str) -> Any:  # noqa: ANN401 - as the base class has it
        return super().header_fetch_parse(name, value if len(value) <= LONGEST_HEADER else "")


def read_mail(data: bytes) -> ConvertedText:
    """Return a mail's text, which begins with its sender and day: its plain text, else its HTML as Markdown.

    The title is the subject. Metadata are `subject`, `from`, `to`, `date` in UTC and `message_id`, as far as they are
    known. Quoted replies, the signature and attachments are left out.

    Raises:
        IngestError: the mail is broken, has no text, or isn't in the encoding that it names.
    """
    try:
        message: Any = BytesParser(EmailMessage, policy=_Policy()).parsebytes(data)
        parts = list(_find_texts(message))
        metadata, first = _read_headers(message)
        names = [part.get_filename() or part.get_content_type() for part in message.walk() if _is_attached(part)]
    except (IngestError, MemoryError):
        raise
    except Exception as cause:  # the parser raises errors of many kinds for headers that break the rules of the format
        raise IngestError(f"a broken mail: {type(cause).__name__}: {cause!s:.100}") from cause
    text = "\n\n".join(html_to_markdown(part)[0] if is_html else part for part, is_html in parts)
    if not any(map(str.isalnum, text)):
        raise IngestError("a mail without text")
    return ConvertedText(
        text=first + leave_out_copies(text),
        title=metadata.get("subject", ""),
        is_markdown=any(is_html for _, is_html in parts),
        metadata=metadata,
        complaints=(f"attachments aren't read: {', '.join(names):.500}",) if names else (),
    )


def leave_out_copies(text: str) -> str:
    """Return a mail's text without quoted replies and signature, or as it is if nothing else is in it.

    Left out are quoted lines at the end, and those below "On …, Ann wrote:", unless several are answered one by one.
    A signature has at most 10 lines below `-- `.
    """
    lines = text.strip("\n").split("\n")
    rest = _without_quotes(_without_signature(lines))
    rest = _without_signature(rest)
    return "\n".join(rest if any(map(str.isalnum, "".join(rest))) else lines).strip("\n")


def _without_signature(lines: list[str]) -> list[str]:
    first = max((n for n, line in enumerate(lines) if SIGNATURE.match(line)), default=len(lines))
    below = [line for line in lines[first + 1 :] if line.strip()]
    return lines if len(below) > LONGEST_SIGNATURE or any(map(_is_quoted, below)) else lines[:first]


def _without_quotes(lines: list[str]) -> list[str]:
    """Return the lines without quotes that end the mail, and without its only other one if a line introduces it."""
    spans = _find_quotes(lines)
    if spans and not any(line.strip() for line in lines[spans[-1][1] :]):
        start, _, lead = spans.pop()
        lines = lines[: start - lead]
    if len(spans) == 1 and spans[0][2]:
        start, end, lead = spans[0]
        lines = [*lines[: start - lead], *lines[end:]]
    return lines


def _find_quotes(lines: list[str]) -> list[tuple[int, int, int]]:
    """Return the first quoted line of each quote, the line after it, and how many lines above introduce it."""
    spans: list[tuple[int, int, int]] = []
    words = [n for n, line in enumerate(lines) if line.strip()]
    above = -1
    for place, number in enumerate(words):
        if _is_quoted(lines[number]):
            if spans and spans[-1][1] == above + 1:
                spans[-1] = (spans[-1][0], number + 1, spans[-1][2])
            else:
                spans.append((number, number + 1, _count_lead(lines, number, words[max(place - 2, 0) : place])))
        above = number
    return spans


def _count_lead(lines: list[str], number: int, above: list[int]) -> int:
    """Return how many lines before a quote introduce it, blank ones included; it may be wrapped once."""
    if not above or not lines[above[-1]].rstrip().endswith(":"):
        return 0
    if WROTE.search(lines[above[-1]]):
        is_wrapped = len(above) > 1 and above[0] == above[1] - 1 and lines[above[0]].startswith(("On ", "Le ", "El "))
        return number - above[0 if is_wrapped else -1]
    return 0


def _is_quoted(line: str) -> bool:
    return line.startswith(">")


def _is_attached(part: MIMEPart) -> bool:
    return part.get_content_disposition() == "attachment" or part.get_content_type() == "message/rfc822"


def _find_texts(part: MIMEPart) -> Iterator[tuple[str, bool]]:
    """Yield the texts of a mail, and whether each is HTML; of alternatives the first plain one that isn't blank."""
    kind = part.get_content_type()
    if _is_attached(part):
        return
    if part.is_multipart():
        inner = [list(_find_texts(each)) for each in part.iter_parts()]
        if kind == "multipart/alternative":
            inner = sorted(filter(None, inner), key=lambda texts: any(is_html for _, is_html in texts))[:1]
        for texts in inner:
            yield from texts
    elif kind in {"text/plain", "text/html"}:
        text = _decode(part)
        if text.strip():
            yield text, kind == "text/html"


def _decode(part: MIMEPart) -> str:
    data = part.get_payload(decode=True)
    assert isinstance(data, bytes)
    charset = part.get_content_charset("utf-8")
    try:
        text = data.decode("utf-8" if charset == "us-ascii" else charset)
    except (LookupError, UnicodeError) as cause:
        raise IngestError(f"a mail whose text isn't {charset}, as it says: {cause!s:.100}") from cause
    if "\0" in text:
        raise IngestError("a mail whose text holds a NUL character")
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _read_headers(message: EmailMessage) -> tuple[dict[str, Any], str]:
    """Return the metadata, and the line that tells the sender and the day, with a blank one; empty if unknown."""
    senders, receivers = ([each for name in names for each in getattr(message[name], "addresses", ())]
                          for names in (("from",), ("to", "cc")))  # fmt: skip
    sent = getattr(message["date"], "datetime", None)
    metadata: dict[str, Any] = {
        "subject": _clean(message["subject"]),
        "from": _clean(senders[0].addr_spec) if senders else "",
        "to": [_clean(each.addr_spec) for each in receivers],
        "date": (sent if sent.tzinfo else sent.replace(tzinfo=UTC)).astimezone(UTC).isoformat() if sent else "",
        "message_id": _clean(message["message-id"]).strip("<>"),
    }
    lead: list[str] = [_clean(senders[0].display_name) or metadata["from"]] if senders else []
    lead += [format_datetime(sent)[:16]] if sent else []
    first = f"From: {', '.join(filter(None, lead))}\n\n" if any(lead) else ""
    return {name: value for name, value in metadata.items() if value}, first


def _clean(value: object) -> str:
    """Return a header as one line that any store can hold."""
    text = str(value or "").replace("\0", "").encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return " ".join(text.split())
