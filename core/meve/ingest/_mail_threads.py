"""Finds the headers of mails within a text, as exported or copied threads have them."""

import re
from collections.abc import Iterator, Sequence

from meve.ingest._questions import TextLine

_SENDERS, _DATES = ("From", "Von", "De"), ("Date", "Sent", "Datum", "Gesendet")
_OTHERS = ("To", "Cc", "Bcc", "Reply-To", "Subject", "An", "Betreff", "Objet")
FIELD = re.compile(rf"[ >]*(?:\*\*|\*)?({'|'.join(_SENDERS + _DATES + _OTHERS)}):(?:\*\*|\*)?\s+(\S.*)")
"""A line of a header, in English, German or French, and its value; perhaps quoted, or with an emphasised name."""
RULE = re.compile(r"\s*([-=_*])\1{2,}\s*$")
"""A line of three marks or more."""
GREETING = re.compile(r"[^.?:]{1,40}[,!]\s*$")
"""A short line such as "Hello all,"."""


def has_mails(text: str) -> bool:
    """Return whether a text has the header of a mail: within four lines, the sender and the date."""
    fields = [_read_field(line) for line in text.split("\n")]
    kinds = [field[0] if field else "" for field in fields]
    return any({"sender", "date"} <= {*kinds[n : n + 4]} for n, kind in enumerate(kinds) if kind)


def find_mails(lines: Sequence[TextLine]) -> Iterator[tuple[int, int, int, str]]:
    """Yield for each mail the numbers of the first line of its header, of its text, and of the line after the mail.

    The fourth value is the sender with the date. The header has both in adjacent lines. A greeting doesn't count as
    text. A mail ends at a heading, and the last one also at a line such as `---`.
    """
    starts = [n for n, line in enumerate(lines) if _read_field(line.text) and not _continues(lines, n)]
    headers = []
    for start in starts:
        last = start
        while last + 1 < len(lines) and _continues(lines, last + 1):
            last += 1
        fields = dict(filter(None, (_read_field(line.text) for line in lines[start : last + 1])))
        if "sender" in fields and "date" in fields and not lines[start].in_fence:
            headers.append((start, last + 1, f"{fields['sender']}, {fields['date']}"))
    for n, (start, body, title) in enumerate(headers):
        is_last = n + 1 == len(headers)
        following = len(lines) if is_last else headers[n + 1][0]
        bounds = (k for k in range(body, following) if lines[k].is_heading or (is_last and RULE.match(lines[k].text)))
        end = next(bounds, following)
        if body < end and GREETING.match(lines[body].text):
            body += 1
        yield start, min(body, end - 1), end, title


def _continues(lines: Sequence[TextLine], number: int) -> bool:
    """Return whether a line is one of a header, and so is the line above it."""
    if number == 0 or lines[number].after_blank:
        return False
    return _read_field(lines[number - 1].text) is not None and _read_field(lines[number].text) is not None


def _read_field(line: str) -> tuple[str, str] | None:
    """Return the kind and the value of a line of a header: `sender`, `date`, or the name of another field."""
    if (field := FIELD.match(line)) is None:
        return None
    kind = "sender" if field[1] in _SENDERS else "date" if field[1] in _DATES else field[1]
    return kind, field[2].strip()
