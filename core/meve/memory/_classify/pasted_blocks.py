"""Removes another's words from a turn: letters, mails, chats, and texts that the user wants worked on.

By rules for English. A block begins below a request about a text ("Can you translate this?") or below what announces
one ("My boss wrote:"), with the greeting of a letter, the headers of a mail or a line of a chat. It ends with a
sign-off, where a paragraph asks about the text or speaks of something else, or with the turn. Where it is in doubt
whose words they are, they are kept.
"""

import re
from typing import NamedTuple

from meve.components.lexical.analyzers import words
from meve.memory._classify.letters import (
    Greeting,
    find_chat,
    is_mail_header,
    parse_greeting,
    parse_sign_off,
    skip_signature,
)

GAP = "\x00"
"""Stands where something pasted was removed already; it ends what announced it."""


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TEXT_WORK = _set("""
    translate translation summarise summarize summary proofread proofreading rephrase reword paraphrase rewrite shorten
    condense spellcheck transcribe tldr
""")
"""Words for work that only texts need."""
_REPLYING = _set("reply respond answer")
_EDITING = _set("explain review improve fix check correct edit polish simplify analyse analyze format critique debug")
_ANY_WORK = _EDITING | _set("interpret rate read make turn put convert decode continue extract give find")
"""Words for work on texts or on other things."""
_LANGUAGE = _set("polite formal informal grammatical grammatically spam scam fake phishing understandable")
_MESSAGES = _set("""
    mail mails email emails message messages msg letter letters text texts chat conversation thread transcript article
    post tweet review comment draft essay poem lyrics paragraph passage sentence sentences log logs output error reply
    response notice note
""")
_TEXTS = _MESSAGES | _set("""
    application cv resume profile bio abstract song speech ad advert listing statement contract clause chapter quote
    code snippet invitation caption description grammar spelling english typos mistakes paper story joke
""")
_CHANGES = _set("sound rhyme shorter longer")
"""What follows "make this" if a text is meant."""
_CORRECTING = _set("fix check correct edit polish")
_ERRORS = _set("grammar grammatical grammatically spelling typos")
_THINGS = _set("error code output contract clause song listing")
"""Texts of which people also tell what they know themselves."""
_POINTERS = _set("this these following below")
_TIMES = _set("""
    morning afternoon evening night time times moment hour hours day days week weeks weekend month months quarter season
    semester year years spring summer autumn fall winter christmas easter
    january february march april may june july august september october november december
""")
_KEEPING = _set("remember remind memorise memorize save store forget")
_WRITTEN = _set("wrote writes emailed mailed texted messaged posted tweeted replied answered sent forwarded fwd fw")
_SAID = _set("says reads said goes")
_FIRST_WORDS = (
    _TEXT_WORK
    | _ANY_WORK
    | _REPLYING
    | _set("""
    please pls can could would will tell show help write draft any
    generate suggest create compose
""")
)
_ASKED = _TEXT_WORK | _ANY_WORK | _REPLYING | _set("think idea ideas thoughts write draft say")
"""Words of a request below a text."""
_ABOUT_TALK = re.compile(r"\bwhat (?:i|we|you)\b|\b(?:our|so far|you know|everything)\b", re.IGNORECASE)
"""In a request about the conversation itself."""
_OPENER = re.compile(r"(?:(?:hi|hello|hey|ok|okay|so|and|now|also|thanks|just|then)\b[\s,:!.-]*)+", re.IGNORECASE)
_SEGMENT_END = re.compile(r"(?<=[.!?:])\s+")
_CLAUSE_END = re.compile(r",\s|\b(?:and|but|so)\s")
_OF_THE_USER = re.compile(
    r"\s*(?:by the way|btw|also|p\.?\s?s|anyway|besides|apart from that|oh|fyi|for context|context|background|thanks"
    r"|thank you|i ask|i['’]?m asking|i am asking)\b",
    re.IGNORECASE,
)
"""Begins a paragraph that belongs to no text above it."""
_POSTSCRIPT = re.compile(r"\s*p\.?\s?s\b", re.IGNORECASE)


class _Block(NamedTuple):
    """A block of another's words."""

    own: str
    """What the user says before it, in its first line."""
    begin: int
    """Its first line."""
    end: int
    """The first line after it."""


def remove_blocks(text: str) -> str:
    r"""Return a turn without the words of others that stand in blocks of their own.

    Args:
        text: a turn; `GAP` stands where something pasted was removed.

    >>> remove_blocks("I live in Graz. Can you translate this?\n\nI moved to Berlin.\n\nHow should I reply?")
    'I live in Graz. Can you translate this?\n\nHow should I reply?'
    >>> remove_blocks("My sister wrote:\nHi Tom, I moved to Berlin. Love, Sarah\n\nI live in Graz.")
    '\nI live in Graz.'
    """
    return "\n".join(_Turn(text.split("\n")).read_own())


class _Turn:
    """The lines of a turn, read in order."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.next_filled = self._next([bool(line.strip()) for line in lines])
        """For each line, the next one with text, itself included; the number of lines if there is none."""
        self.next_blank = self._next([not line.strip() for line in lines])
        self.sign_offs = [parse_sign_off(line) for line in lines]
        self.next_sign_off = self._next([each is not None for each in self.sign_offs])
        self.chat = self._find_chats()
        """The lines of chats."""

    def _next(self, marks: list[bool]) -> list[int]:
        found = [len(marks)] * (len(marks) + 1)
        for n in range(len(marks) - 1, -1, -1):
            found[n] = n if marks[n] else found[n + 1]
        return found

    def _find_chats(self) -> set[int]:
        found: set[int] = set()
        begin = 0
        for n in range(len(self.lines) + 1):
            if n == len(self.lines) or not self.lines[n].strip():
                found |= {begin + each for each in find_chat(self.lines[begin:n])}
                begin = n + 1
        return found

    def read_own(self) -> list[str]:
        """Return the lines of the user."""
        own: list[str] = []
        at = 0
        while at < len(self.lines):
            if self._asks_about_above(at) and not any(GAP in line for line in own) and len(own) == at:
                own.clear()
            block = self._find_block(at)
            if block is None:
                own.append(self.lines[at])
                at += 1
            else:
                own += [*([block.own] if block.own or block.begin == at else []), *self.lines[at + 1 : block.begin]]
                at = block.end
        return own

    def _find_block(self, at: int) -> _Block | None:
        """Return the block that begins at a line, or that the line announces."""
        line = self.lines[at]
        if at in self.chat:
            end = at + 1
            while end in self.chat:
                end += 1
            return _Block("", at, end)
        if self._begins_paragraph(at) and is_mail_header(self.lines, at):
            return _Block("", at, self._find_end(at))
        greeting = parse_greeting(line)
        if greeting is not None and self._is_letter(at, greeting):
            return _Block("", at, self._find_end(at))
        return self._find_announced(at)

    def _begins_paragraph(self, at: int) -> bool:
        return at == 0 or not self.lines[at - 1].strip()

    def _is_letter(self, at: int, greeting: Greeting) -> bool:
        """Return whether a letter to somebody else begins with a greeting."""
        is_first = self.next_filled[0] == at
        signed = self.next_sign_off[at]
        sign_off = self.sign_offs[signed] if signed < len(self.lines) else None
        if greeting.is_formal:
            return True
        if not is_first:
            return greeting.is_named and (greeting.is_dear or sign_off is not None)
        if sign_off is None:
            return False
        if greeting.is_named and greeting.is_dear and not sign_off.is_thanks:
            return True
        after = self.next_filled[skip_signature(self.lines, signed + 1)]
        return after < len(self.lines) and greeting.is_named and _asks_for_reply(self.lines[after])

    def _find_announced(self, at: int) -> _Block | None:
        """Return the block after a request about a text, or after what announces one."""
        segments = _SEGMENT_END.split(self.lines[at])
        below = self.next_filled[at + 1]
        if below < len(self.lines) and self.lines[below].startswith(GAP):
            is_cut = _announces_gap(segments[-1])
            return _Block(" ".join(segments[:-1]), below, below) if is_cut else None
        only_short_from = len(segments)
        while only_short_from > 0 and _is_short(segments[only_short_from - 1]):
            only_short_from -= 1
        for n, segment in enumerate(segments):
            has_colon, is_last = segment.rstrip().endswith(":"), n == len(segments) - 1
            request = _read_request(segment)
            if request == "maybe" and not has_colon:
                request = "text" if below < len(self.lines) and self._begins_mail(below) else ""
            if has_colon and not is_last:
                if request == "text":
                    self.lines[at] = " ".join(segments[n + 1 :])
                    return _Block(" ".join(segments[:n]), at, self._find_announced_end(at, is_apart=False))
                continue
            is_apart = below > at + 1
            is_open = (
                has_colon or request == "text" or is_apart
                if is_last
                else is_apart and (request == "text" or n + 1 >= only_short_from)
            )
            if below < len(self.lines) and is_open and (request or _announces(segment)):
                own = segments if request and not has_colon else segments[:n] + segments[n + 1 :]
                return _Block(" ".join(own), below, self._find_announced_end(below, is_apart))
        return None

    def _begins_mail(self, at: int) -> bool:
        return parse_greeting(self.lines[at]) is not None or is_mail_header(self.lines, at)

    def _find_announced_end(self, begin: int, is_apart: bool) -> int:
        """Return the first line after an announced block.

        Without greeting and sign-off it ends before a paragraph of the user's, and at the first blank line if no blank
        line stands between it and what announces it.
        """
        is_mail = self._begins_mail(begin)
        if is_mail and self.next_sign_off[begin] < len(self.lines):
            return self._find_end(begin)
        limit = len(self.lines) if is_apart or is_mail else self.next_blank[begin]
        return min(limit, self._find_end(begin, limit, is_letter=False))

    def _find_end(self, begin: int, limit: int | None = None, is_letter: bool = True) -> int:
        """Return the first line after a block, `limit` at most.

        It ends behind its sign-off or where a paragraph asks about it; if it is no letter, also where one speaks of
        something else.
        """
        limit = len(self.lines) if limit is None else limit
        for n in range(begin, limit):
            line = self.lines[n]
            if n > begin and self._begins_paragraph(n) and (_asks(line) or (not is_letter and _is_of_the_user(line))):
                return n
            sign_off = self.sign_offs[n]
            if sign_off is not None and (n > begin or sign_off.has_body):
                end = skip_signature(self.lines, n + 1)
                after = self.next_filled[end]
                if after == len(self.lines) or not _POSTSCRIPT.match(self.lines[after]):
                    return end
        return limit

    def _asks_about_above(self, at: int) -> bool:
        """Return whether the last paragraph begins at a line, and asks about the text before it."""
        is_last = self.next_blank[at] == len(self.lines) or self.next_filled[self.next_blank[at]] == len(self.lines)
        if at == 0 or not is_last or not self._begins_paragraph(at) or not self.lines[at].strip():
            return False
        segment = _SEGMENT_END.split(self.lines[at], maxsplit=1)[0]
        found = set(words(segment))
        return bool(_read_request(segment) and found & {"this", "above"} and found & _TEXT_WORK)


def _asks(line: str) -> bool:
    """Return whether a paragraph that begins with a line asks about the text above."""
    segment = _SEGMENT_END.split(line, maxsplit=1)[0]
    found = words(segment)
    return bool(_read_request(segment)) or (_is_request(segment, found) and not _ASKED.isdisjoint(found))


def _asks_for_reply(line: str) -> bool:
    """Return whether a line asks how to answer a letter above, or to work on its text."""
    for segment in _SEGMENT_END.split(line):
        found = words(segment)
        if _is_request(segment, found) and not (_TEXT_WORK | _REPLYING).isdisjoint(found):
            return True
    return False


def _is_of_the_user(line: str) -> bool:
    """Return whether a paragraph that begins with a line is no part of the text above."""
    segment = _SEGMENT_END.split(line, maxsplit=1)[0]
    return _OF_THE_USER.match(line) is not None or _is_request(segment, words(segment))


def _is_request(segment: str, found: list[str]) -> bool:
    return segment.rstrip().endswith("?") or (bool(found) and (found[0] in _FIRST_WORDS or found[-1] == "please"))


def _read_request(segment: str) -> str:
    """Return "text" for a request to work on a text, "maybe" for one that may be about a text, and "" for others."""
    said = segment.strip()
    opening = _OPENER.match(said)
    said = said[opening.end() :] if opening else said
    found = words(re.sub(r"tl;?\s?dr\b", "tldr", said, flags=re.IGNORECASE))
    unique = set(found)
    if not _is_request(said, found) or _ABOUT_TALK.search(said) or _keeps(unique):
        return ""
    points = _read_pointers(found)
    is_edited = unique & (_EDITING | {"turn"}) and (points or len(found) <= 3)
    is_order = said.endswith(":") and (is_edited or found[0] in {"in", "into"})
    if unique & _TEXT_WORK or is_order or points == "text" or (unique & _ERRORS and (points or unique & _CORRECTING)):
        return "text"
    is_reply = unique & _REPLYING and (points or unique & {"him", "her", "them"})
    is_work = unique & (_EDITING | _LANGUAGE if points else _ANY_WORK) and (points or unique & _TEXTS)
    return "maybe" if is_reply or is_work else ""


def _read_pointers(found: list[str]) -> str:
    """Return "text" if words point to a text ("this mail", "the mail below"), "maybe" for "this", or ""."""
    points = ""
    for n, word in enumerate(found):
        if word not in _POINTERS:
            continue
        after = found[n + 1 : n + 3]
        if not _TIMES.isdisjoint(after) or any(each.endswith("day") for each in after):
            continue
        if found[max(n - 1, 0) : n + 1] == ["make", "this"] and not _CHANGES.isdisjoint(after[:1]):
            return "text"
        named = [
            each for each in [*after, *(found[n - 1 : n] if word in {"below", "following"} else [])] if each in _TEXTS
        ]
        if named and after[:1] not in (["a"], ["an"]) and _THINGS.isdisjoint(named):
            return "text"
        points = "maybe"
    return points


def _keeps(unique: set[str]) -> bool:
    """Return whether a sentence asks to remember something."""
    return not _KEEPING.isdisjoint(unique) or ("mind" in unique and not unique.isdisjoint({"keep", "bear"}))


def _announces(segment: str) -> bool:
    """Return whether a sentence says that another's text follows."""
    clause = _CLAUSE_END.split(segment.strip())[-1]
    found = words(clause)
    unique = set(found)
    if _keeps(set(words(segment))):
        return False
    is_written = bool(unique & _WRITTEN) and unique.isdisjoint({"i", "we"})
    if not clause.endswith(":"):
        return is_written and found[-1] == "this"
    return is_written or bool(unique & (_POINTERS | _SAID | {"here", "that"}) and unique & _MESSAGES)


def _announces_gap(segment: str) -> bool:
    """Return whether a sentence says nothing else than that what was removed follows."""
    is_pointing = not {"here", "this", "these"}.isdisjoint(words(segment)[:1])
    return segment.rstrip().endswith(":") and (is_pointing or bool(_read_request(segment)) or _announces(segment))


def _is_short(segment: str) -> bool:
    """Return whether a sentence is a question, a request or a few words."""
    found = words(segment)
    return len(found) <= 3 or _is_request(segment, found)
