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
from meve.ingest._mail_copies import leave_out_copies, page_to_markdown

LONGEST_HEADER = 4_000
"""The most characters of a header that is read, since the parser takes quadratic time for some headers."""
FEW_WORDS = 50
"""Fewer words of plain text may only stand for the HTML, such as "Use a viewer of HTML"."""
SHARE = 3
"""The HTML is read if the plain text has few words, and fewer than this part of the HTML's."""
TEXTS = frozenset(("text/plain", "text/html"))
"""The kinds of parts that are read."""
WORD = re.compile(r"\w+")


class _Policy(EmailPolicy):
    """Reads no header that is too long, or that the parser can't read."""

    def header_fetch_parse(self, name: str, value: str) -> Any:  # noqa: ANN401 - as the base class has it
        try:
            return super().header_fetch_parse(name, value if len(value) <= LONGEST_HEADER else "")
        except MemoryError:
            raise
        except Exception:  # the parser raises errors of many kinds for headers that break the rules of the format
            return super().header_fetch_parse(name, "")


def read_mail(data: bytes) -> ConvertedText:
    """Return a mail's text, which begins with its sender and day: its plain text, else its HTML as Markdown.

    The title is the subject. Metadata are `subject`, `from`, `to`, `date` in UTC and `message_id`, as far as they are
    known. Quoted replies, the signature, attachments, and headers that can't be read are left out. HTML is also read if
    the plain text has fewer than 50 words and fewer than a third of the HTML's.

    Raises:
        IngestError: the mail is broken, has no text, or isn't in the encoding that it names.
    """
    try:
        message: Any = BytesParser(EmailMessage, policy=_Policy()).parsebytes(data)
        is_reply = "in-reply-to" in message or "references" in message
        parts = list(_find_texts(message, is_reply))
        metadata, first = _read_headers(message)
        names = [part.get_filename() or part.get_content_type() for part in message.walk() if _is_unread(part)]
    except (IngestError, MemoryError):
        raise
    except Exception as cause:  # the parser raises errors of many kinds for mails that break the rules of the format
        raise IngestError(f"a broken mail: {type(cause).__name__}: {cause!s:.100}") from cause
    text = "\n\n".join(part for part, _ in parts)
    if not any(map(str.isalnum, text)):
        raise IngestError("a mail without text")
    return ConvertedText(
        text=first + text.strip("\n"),
        title=metadata.get("subject", ""),
        is_markdown=any(is_html for _, is_html in parts),
        metadata=metadata,
        complaints=(f"attachments aren't read: {', '.join(names):.500}",) if names else (),
    )


def _is_attached(part: MIMEPart) -> bool:
    return part.get_content_disposition() == "attachment" or part.get_content_type() == "message/rfc822"


def _is_unread(part: MIMEPart) -> bool:
    """Return whether a part is attached, or shown as a file that holds more than a picture."""
    is_read = part.get_content_type() in TEXTS or part.get_content_maintype() in {"image", "multipart"}
    return _is_attached(part) or not (is_read or part.get_filename() is None)


def _find_texts(part: MIMEPart, is_reply: bool) -> Iterator[tuple[str, bool]]:
    """Yield the texts of a mail without copies, and whether each was HTML."""
    kind = part.get_content_type()
    if _is_attached(part):
        return
    if kind == "multipart/alternative":
        yield from _choose(part, is_reply)
    elif part.is_multipart():
        for each in part.iter_parts():
            yield from _find_texts(each, is_reply)
    elif kind in TEXTS:
        text = _decode(part)
        if text.strip():
            is_html = kind == "text/html"
            yield (page_to_markdown if is_html else leave_out_copies)(text, is_reply=is_reply), is_html


def _choose(part: MIMEPart, is_reply: bool) -> list[tuple[str, bool]]:
    """Return the texts of the first plain alternative that isn't blank, or of the HTML that it only stands for."""
    best: list[tuple[str, bool]] = []
    for each in sorted(part.iter_parts(), key=_holds_page):
        few = _count_words(best)
        if few >= FEW_WORDS:
            break
        try:
            texts = list(_find_texts(each, is_reply))
        except IngestError:
            if not best:
                raise
            continue
        best = texts if not best or few * SHARE < _count_words(texts) else best
    return best


def _holds_page(part: MIMEPart) -> bool:
    return any(each.get_content_type() == "text/html" for each in part.walk())


def _count_words(texts: list[tuple[str, bool]]) -> int:
    return sum(1 for text, _ in texts for _ in WORD.finditer(text))


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
    sent, date = getattr(message["date"], "datetime", None), ""
    try:
        date = (sent if sent.tzinfo else sent.replace(tzinfo=UTC)).astimezone(UTC).isoformat() if sent else ""
    except OverflowError:  # the day is out of range in UTC
        sent = None
    metadata: dict[str, Any] = {
        "subject": _clean(message["subject"]),
        "from": _clean(senders[0].addr_spec) if senders else "",
        "to": [_clean(each.addr_spec) for each in receivers],
        "date": date,
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
