"""Tells lines of letters, mails and chats: greetings, sign-offs, headers, and messages with their speaker."""

import re
from collections.abc import Sequence
from typing import NamedTuple

_GREETING = re.compile(
    r"\s*(?P<word>dear|hi|hello|hey|hallo|liebe[rs]?|sehr geehrte[rs]?|ch[eè]re?|bonjour|hola"
    r"|good (?:morning|evening|afternoon|day))\b(?P<name>(?:[^\S\n]+[^\s,.!:;?]+\.?){0,4}?)\s*(?:[,!:–-]|$)",
    re.IGNORECASE,
)
_NO_NAME = """
there again here friend friends buddy mate pal sunshine jarvis
i i'm i’m im my this it we from is diary claude chatgpt gpt gemini copilot siri alexa meve bot ai
assistant
"""
_NO_NAMES = frozenset(_NO_NAME.split())
"""Words of a greeting that addresses nobody else than the assistant."""
_FORMAL = re.compile(
    r"\s*(?:(?i:dear)\s(?:(?i:sir|madam|mr|mrs|ms|miss|dr|prof\w*)\b|[a-z]+s\b)"
    r"|(?i:to whom it may concern|sehr geehrte))"
)
_THANKS = r"(?:(?:many\s)?thanks(?:\s(?:a\slot|so\smuch|again|in\sadvance))?|thank\syou(?:\sin\sadvance)?)"
_FAREWELL = (
    r"(?:(?:with\s)?(?:(?:my|many|kind|kindest|best|warm|warmest|friendly)\s){0,2}(?:regards|wishes|greetings)"
    r"|(?:all\sthe\s|all\smy\s)?best|(?:lots\sof\s|much\s|with\s|all\smy\s)?love|hugs|kisses|xo+x?o?|x{1,3}"
    r"|yours(?:\s(?:sincerely|faithfully|truly))?|(?:sincerely|faithfully|respectfully)(?:\syours)?|cheers|take\scare"
    r"|see\syou(?:\ssoon)?|mit\sfreundlichen\sgrüßen|(?:liebe|viele|beste)\sgrüße|cordialement|saludos)"
)
_NAME = r"(?:[^\W\d_a-z][\w.'’-]*|of|von|van|de|and|&|the|your)"
_NAMES = rf"{_NAME}(?:\s{_NAME}){{0,4}}"
_SIGN_OFF = re.compile(
    rf"(?P<body>.*[.!?)]\s+|\s*)(?:(?i:{_FAREWELL}|(?P<thanks>{_THANKS}))(?:\s*(?:[,!.]|[,!.–-]\s*{_NAMES}[.!]?))?"
    rf"|(?i:{_FAREWELL})\s{_NAMES})\s*$"
)
_SIGNATURE = re.compile(rf"\s*(?:{_NAMES}|[\d+(][\d+()/ -]{{4,}}\d|[^\s@]+@\S+)\s*$")
_HEADER = re.compile(r"\s*(from|to|cc|bcc|subject|sent|date|reply-to|betreff|von|an):\s", re.IGNORECASE)
_ONLY_OF_MAILS = frozenset({"subject", "cc", "bcc", "sent", "reply-to", "betreff"})
_FORWARDED = re.compile(
    r"\s*(?:-{3,}\s*)?(?:begin\s)?(?:forwarded|original)\smessage\b|\s*(?:on|am)\s.{6,80}\s(?:wrote|schrieb\b.*):\s*$",
    re.IGNORECASE,
)
_CLOCK = r"\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:\s?[ap]\.?m\.?)?"
_DAY = r"\d{1,4}[./-]\d{1,2}[./-]\d{2,4}"
_SPEAKER = r"[^\W\d_][\w.'’+-]*(?:\s[\w.'’+-]+){0,2}"
_CHAT_LINE = re.compile(
    rf"\s*(?:\[(?:{_DAY},?\s)?{_CLOCK}\]\s*{_SPEAKER}:\s|{_DAY},?\s{_CLOCK}\s(?:[-–]\s)?{_SPEAKER}:\s"
    rf"|{_SPEAKER},?\s\[(?:{_DAY},?\s)?{_CLOCK}\]|{_SPEAKER}\s[—–]\s(?:today|yesterday)\sat\s{_CLOCK}\s*$)",
    re.IGNORECASE,
)
_READ = 160
"""The most characters of a line that are read at either end."""


class Greeting(NamedTuple):
    """The greeting of a letter."""

    is_named: bool
    """Whether the greeting names somebody, and not the assistant."""
    is_dear: bool
    is_formal: bool
    """Whether it is a formal greeting, as in "Dear Ms Smith" and "Dear parents": nobody greets an assistant so."""


def parse_greeting(line: str) -> Greeting | None:
    """Return the greeting at the beginning of a line.

    >>> parse_greeting("Hi Tom, I moved to Berlin.").is_named, parse_greeting("Hello there!").is_named
    (True, False)
    """
    is_formal = _FORMAL.match(line[:_READ]) is not None
    match = _GREETING.match(line[:_READ])
    if match is None:
        return Greeting(is_named=True, is_dear=True, is_formal=True) if is_formal else None
    names = {name.strip(".").lower() for name in match["name"].split()}
    return Greeting(bool(names) and names.isdisjoint(_NO_NAMES), match["word"].lower() == "dear", is_formal)


class SignOff(NamedTuple):
    """The end of a letter."""

    has_body: bool
    """Whether its line begins with text of the letter."""
    is_thanks: bool
    """Whether it is only thanks. Questions end with thanks, too."""


def parse_sign_off(line: str) -> SignOff | None:
    """Return the sign-off at the end of a line.

    >>> parse_sign_off("I quit my job. Love, Sarah"), parse_sign_off("I love Sarah.")
    (SignOff(has_body=True, is_thanks=False), None)
    """
    match = _SIGN_OFF.match(line[-_READ:])
    if match is None:
        return None
    return SignOff(len(line) > _READ or bool(match["body"].strip()), match["thanks"] is not None)


def skip_signature(lines: Sequence[str], at: int) -> int:
    """Return the first line, from `at` on, that belongs to no signature: a name, a phone number, an address.

    A name may stand below a blank line.
    """
    start = at + 1 if at + 1 < len(lines) and not lines[at].strip() else at
    for n in range(start, min(start + 4, len(lines))):
        if not lines[n].strip() or not _SIGNATURE.match(lines[n][:_READ]):
            break
        at = n + 1
    return at


def is_mail_header(lines: Sequence[str], at: int) -> bool:
    """Return whether the headers of a mail begin at a line, or a mail that is quoted or forwarded.

    >>> is_mail_header(["From: Eva", "Subject: Holiday"], 0), is_mail_header(["From: Graz", "To: Linz"], 0)
    (True, False)
    """
    if _FORWARDED.match(lines[at][:_READ]):
        return True
    for line in lines[at : at + 6]:
        match = _HEADER.match(line[:_READ])
        if match is None:
            return False
        if match[1].lower() in _ONLY_OF_MAILS or "@" in line[:_READ]:
            return True
    return False


def find_chat(lines: Sequence[str]) -> set[int]:
    """Return the numbers of the lines, from the first to the last, that a chat takes in a paragraph.

    A line names its time and its speaker. Without times, a list ("Tom: allergic to nuts") looks the same.
    """
    timed = [n for n, line in enumerate(lines) if _CHAT_LINE.match(line[:_READ])]
    return set(range(min(timed), max(timed) + 1)) if timed else set()
