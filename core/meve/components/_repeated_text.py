"""Tell whether a text only repeats another one: for passages (phase 4) and for memories."""

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from meve.components._rewriting import Step, rewrite
from meve.components.lexical.analyzers import words
from meve.types import Passage

SHORT = 20
"""Passages of fewer words are compared with their titles, which may name what they are about: "Default: 3". They are
never taken for texts that begin or end within a sentence."""
_UNSAID = frozenset(("a", "an", "the", "please"))
"""Words that change nothing. All others count: "from" and "to", "must" and "may", "he" and "she"."""
_UNSAID_SIGNS = bytes({*range(128)} - {*b"bcdfgijkmoqruvwxyz0123456789"})
"""All but digits and the letters that stand in none of these words, nor in the possessive 's."""
_MARK = r"(?:[.!?\u2026][\"'\u201d)\]*_`]*(?=\s|$)|[\u3002\uff01\uff1f])"
_SENTENCE = re.compile(rf"(?=[.!?\u2026\u3002\uff01\uff1f\n])(?:{_MARK}|\n\s*\n)")
_ENDED = re.compile(rf"{_MARK}\s*$")
_SPACES = re.compile(r"[^\S\n]+")
_HYPHENATED = re.compile(r"(?<=[a-z])-\n *(?=[a-z])")
_LINK = re.compile(r"(?<=\])\(([^()\s]*)\)")
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_SIGN = re.compile(
    r"(?=[^a-zB-Z0-9_\s,;'\"])(?:"  # no more is tried at most characters
    r"!=|[<>=\u00b1\u2264\u2265\u2260\u2248$\u20ac\u00a3\u00a5%?]+"  # comparisons, currencies, per cent, a question
    r"|(?<!\w)[-+](?=\d)|(?<=\d)[-/:](?=\d)|(?<=\w)[\^*/](?=\d)"  # -5, and 1/2 unlike 1-2
    r"|(?<=\w)\++|(?<=\b[A-Za-z])-(?=[\s.,;)]|$)|(?<![\w.])\.(?=\d)"  # O+ unlike O-, and .5
    r"|(?<=\w )(?:[+/^]|\*\*)(?= \w)|(?<=\s)(?:&&|\|\|)(?=\s)"  # a + b, a && b
    r"|(?<![\w!])!(?=[\w(])|(?<![\w~])~~?(?=\w)"  # !ready, ~5, and ~~what no longer holds~~
    r"|(?<=[a-z]\s)A\b|\bA(?=\.)"  # vitamin A, A. Smith
    r"|[\u2190-\u23ff\u2600-\u27bf\U0001f000-\U0001faff])"  # arrows, signs of mathematics and of keys, emoji
)
"""Signs that count as words."""
_CONTRACTIONS: tuple[Step, ...] = (
    (("cannot", "can't"), re.compile(r"\bcannot\b|\bcan't\b", re.I), "can not"),
    (("won't",), re.compile(r"\bwon't\b", re.I), "will not"),
    (("n't",), re.compile(r"n't\b", re.I), " not"),
    (("im", "i'm"), re.compile(r"\b(i)'?m\b", re.I), r"\1 am"),
    (("'re",), re.compile(r"'re\b", re.I), " are"),
    (("'ve",), re.compile(r"'ve\b", re.I), " have"),
    (("'ll",), re.compile(r"'ll\b", re.I), " will"),
    (("'s",), re.compile(r"\b(it|that|there|he|she|what)'s\b", re.I), r"\1 is"),
    (("'s",), re.compile(r"'s\b", re.I), ""),
)
"""English contractions, and what they stand for."""
_NAVIGATION = """
skip to (?:main )?content|share this (?:page|article|post)|print this page|print|share|tweet|back to top|read more|
learn more|see more|show more|table of contents|on this page|edit (?:this page|on github)|view source|previous|next|
home|menu|search|log ?in|sign (?:in|up)|subscribe(?: to our newsletter)?|advertisement|all rights reserved|
was this (?:page|article) helpful|(?:yes|no) (?:yes|no)|cookie (?:policy|settings)|privacy policy|
terms of (?:use|service)|contact us|about us|copy to clipboard|click here
"""
_LINKS = _NAVIGATION.replace("\n", "")
_BOILERPLATE = re.compile(
    rf"(?:^|(?<=[.!?] ))[^\w\n]{{0,20}}(?:{_LINKS})(?:[^\w\n]{{1,20}}(?:{_LINKS})){{0,30}}(?:[^\w\n]*$|[.!?](?= ))"
    r"|^home *[>|\u203a\u00bb].{0,200}$",
    re.IGNORECASE | re.MULTILINE,
)
"""Lines and sentences of a web page that belong to no text."""


@dataclass(frozen=True, slots=True)
class ReadText:
    """The words of a text in lower case, without layout, as texts are compared by."""

    joined: str
    """All words, in order. Words are joined, since "e-mail" is "email", but numbers aren't: "1 m" may not be "1m"."""
    sentences: tuple[tuple[int, int], ...]
    """The start and end of each sentence in `joined`."""
    starts: frozenset[int]
    """Positions in `joined` at which a sentence or a line begins."""
    ends: frozenset[int]
    """Positions in `joined` at which a sentence or a line ends."""
    bounds: frozenset[int]
    """Positions in `joined` at which a word begins or ends."""
    links: frozenset[str]
    """The addresses of links in Markdown, which another text may have without them."""
    begins_within: bool
    """True if it seems to begin within a sentence, as a piece of another text may."""
    ends_within: bool
    """True if it seems to end within a sentence."""


def read_text(text: str) -> ReadText:
    """Return what counts of a text.

    >>> read_text("The fee **isn't** $1,000!").joined == read_text("fee is not $1000").joined
    True
    """
    links = frozenset(_LINK.findall(text))
    plain = _HYPHENATED.sub("", _SPACES.sub(" ", text))
    plain = _with_signs(_LINK.sub("", _BOILERPLATE.sub("\n\n", plain)).strip())
    read = _Reading()
    for sentence in _SENTENCE.split(plain):
        for line in sentence.split("\n"):
            read.add_line(line)
        read.end_sentence()
    is_long = len(plain.split()) >= SHORT
    is_open = not _ENDED.search(plain) or plain.endswith("...")
    return ReadText(
        joined="".join(read.parts),
        sentences=tuple(read.sentences),
        starts=frozenset(read.starts),
        ends=frozenset(read.ends),
        bounds=frozenset(read.bounds),
        links=links,
        begins_within=is_long and (plain[:1].islower() or plain.startswith("...")),
        ends_within=is_long and is_open,
    )


def repeats(one: ReadText, other: ReadText) -> bool:
    """Return whether one text adds nothing to another: all its sentences stand in it, word by word and in order.

    A single word of its own is something new: a missed duplicate costs tokens, a wrong one loses a fact. Takes linear
    time.

    >>> kept = read_text("Floor 1 seats eight. It has a screen.")
    >>> repeats(read_text("floor 1 seats eight"), kept), repeats(read_text("Floor 2 seats eight."), kept)
    (True, False)
    """
    if not one.joined or not one.links <= other.links:
        return False
    start = other.joined.find(one.joined)
    end = start + len(one.joined)
    if start >= 0 and _is_aligned(one, other, start, end):
        return True
    rest = iter(other.sentences)
    last = len(one.sentences) - 1
    for n, (first, stop) in enumerate(one.sentences):
        mine = one.joined[first:stop]
        is_cut = (n == 0 and one.begins_within, n == last and one.ends_within)
        if not any(_holds(other, span, mine, *is_cut) for span in rest):
            return False
    return True


class RepeatedText:
    """Relates two similar passages: `same` if the first repeats the second, else unrelated.

    Reads each passage once; make one judge for each retrieval.
    """

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str], tuple[str, ReadText]] = {}

    def __call__(self, one: Passage, other: Passage) -> Literal["", "same"]:
        """Return `same` if `one` adds nothing to `other`, else an empty string."""
        (mine, read), (theirs, other_read) = self._read(one), self._read(other)
        return "same" if mine == theirs or repeats(read, other_read) else ""

    def _read(self, passage: Passage) -> tuple[str, ReadText]:
        key = passage.id, passage.text  # a passage may have been shortened
        if key not in self._texts:
            text = passage.content if len(passage.text.split()) < SHORT else passage.text
            self._texts[key] = text, read_text(text)
        return self._texts[key]


def join_words(statement: str) -> str:
    """Return what counts of a short statement, as `ReadText.joined` has it of a text.

    >>> join_words("We don't meet at 5.") == join_words("we do not meet at 5")
    True
    >>> join_words("Call?") == join_words("Call.")
    False
    """
    joined: list[str] = []
    for word in words(_with_signs(statement)):
        if word in _UNSAID:
            continue
        if joined and (joined[-1][-1].isdigit() or word[0].isdigit()):
            joined.append(" ")
        joined.append(word)
    return "".join(joined)


def find_letters(statement: str) -> bytes | None:
    """Return letters and digits that differ only if `join_words` does, and are found in a tenth of its time.

    None for a statement that isn't plain ASCII, whose letters may be written in several ways.

    >>> find_letters("The dog's 5.") == find_letters("a DOG 5!"), find_letters("the cat 5") == find_letters("a dog 5")
    (True, False)
    """
    return statement.lower().encode().translate(None, _UNSAID_SIGNS) if statement.isascii() else None


def expand_contractions(text: str) -> str:
    """Return a text without contractions and without the possessive 's; its apostrophes are straight."""
    return rewrite(text.replace("\u2019", "'"), _CONTRACTIONS)


def _with_signs(text: str) -> str:
    """Return a text in plain characters, with a word in place of each sign that counts."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("\u2013", "-").replace("\u00ad", "")
    text = expand_contractions(_GROUPED.sub("", text))
    return _SIGN.sub(lambda sign: f" sign{sign[0].encode().hex()} ", text)


class _Reading:
    """The words read so far."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.sentences: list[tuple[int, int]] = []
        self.starts: set[int] = set()
        self.ends: set[int] = set()
        self.bounds: set[int] = set()
        self._at = 0
        self._begin: int | None = None
        """The position at which the current sentence begins; None before its first word."""

    def add_line(self, line: str) -> None:
        said = [word for word in words(line) if word not in _UNSAID]
        for n, word in enumerate(said):
            if self.parts and (self.parts[-1][-1].isdigit() or word[0].isdigit()):
                self.parts.append(" ")
                self._at += 1
            if n == 0:
                self.starts.add(self._at)
                self._begin = self._at if self._begin is None else self._begin
            self.parts.append(word)
            self.bounds.add(self._at)
            self._at += len(word)
            self.bounds.add(self._at)
        if said:
            self.ends.add(self._at)

    def end_sentence(self) -> None:
        if self._begin is not None:
            self.sentences.append((self._begin, self._at))
        self._begin = None


def _is_aligned(one: ReadText, other: ReadText, start: int, end: int) -> bool:
    """Return whether a stretch of the other text is made of sentences or lines, but for where mine is cut."""
    return start in (other.bounds if one.begins_within else other.starts) and end in (
        other.bounds if one.ends_within else other.ends
    )


def _holds(other: ReadText, span: tuple[int, int], mine: str, begins_within: bool, ends_within: bool) -> bool:
    """Return whether a sentence of the other text is mine, or has it at the end where mine is cut."""
    start, end = span
    if end - start == len(mine):
        return other.joined.startswith(mine, start)
    if begins_within and other.joined.endswith(mine, start, end):
        return end - len(mine) in other.bounds
    return ends_within and other.joined.startswith(mine, start, end) and start + len(mine) in other.bounds
