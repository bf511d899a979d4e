"""Writes superscripts and subscripts of HTML so that they join no number."""

import re
from typing import Any

from bs4.element import NavigableString

INLINE = frozenset({"a", "abbr", "b", "bdi", "cite", "code", "em", "font", "i", "small", "span", "strong", "u", "var"})
"""Elements within a line of text."""
STEPS = 8
"""Nested elements through which the text beside a superscript is looked for."""
ORDINAL = re.compile(r"st|nd|rd|th|er|re|e|[eè]re|[eè]me|n?de|me|mes|lle|lles|gr", re.IGNORECASE)
"""Superscripts that end a word, as in 1st, 2e and Mme."""
AFTER_ORDINAL = re.compile(r"(?:[\dA-Z]|\bn)$")
NUMBER = re.compile(r"\b[Nn]$")
"""The end of a text before the superscript of No, for number."""
SCALE = re.compile(r"\s*[CF]\b")
"""The beginning of a text after the sign of a degree."""
MARK = re.compile(r"\d{1,3}|\w|[*\u2020\u2021]")
"""The text of a link to a footnote."""
SIMPLE = re.compile(r"[-+\u2212\u2013]?[\w.]+[-+\u2212\u2013*)]?")
"""A superscript that is clear without parentheses."""
WORDS = re.compile(r"[^\W\d_]{2,}|.*\s.*", re.DOTALL)
"""A superscript that is text, such as "new"."""
SLASHES = ("/", "\u2044")
BEFORE_FRACTION = re.compile(r"(?:^|[\d\s(\[\u2013\u2014-])$")
"""The end of a text that may stand before a fraction."""
UNIT = re.compile(r"(?:^|[^\w^.])[a-z\u00b5\u03bc]{1,2}$")
"""The end of a text that may be a unit, such as m or cm."""
POWERS = {"2": "\u00b2", "3": "\u00b3"}


def write_superscript(element: Any, text: str) -> str:  # noqa: ANN401 - imported late
    """Return the text of a superscript, written to stand behind what precedes it.

    `10^3`, `m²`, `1st`, `25[1]` for a link to a footnote, `2 1/2`. A number never joins another.
    """
    prefix, words, suffix = _split_blanks(text)
    before, after = _text_before(element), suffix or _text_after(element)
    if not any(map(str.isalnum, words)) or words.startswith(("[", "(")):
        return text
    if words.isdigit() and BEFORE_FRACTION.search(before) and not suffix and _is_numerator(element):
        written = f" {words}" if before[-1:].isalnum() else words
    elif MARK.fullmatch(words) and _is_link(element):
        written = f"[{words}]"
    elif words in POWERS and UNIT.search(before):
        written = POWERS[words]
    elif words in {"o", "\u00ba"}:
        written = _write_small_o(words, before, after)
    elif ORDINAL.fullmatch(words) and AFTER_ORDINAL.search(before):
        written = words
    else:
        written = _mark("^", words, before, after)
    return prefix + written + suffix


def write_subscript(element: Any, text: str) -> str:  # noqa: ANN401 - imported late
    """Return the text of a subscript, written to stand behind what precedes it: `H2O`, `x_i`, `10_2`."""
    prefix, words, suffix = _split_blanks(text)
    before, after = _text_before(element), suffix or _text_after(element)
    if not any(map(str.isalnum, words)) or (words.isdigit() and before.endswith(SLASHES)):
        return text
    if words.isdigit() and (before[-1:].isalpha() or before.endswith((")", "]"))):
        return prefix + _keep_apart(words, after) + suffix
    return prefix + _mark("_", words, before, after) + suffix


def _split_blanks(text: str) -> tuple[str, str, str]:
    return " " * text[:1].isspace(), text.strip(), " " * text[-1:].isspace()


def _is_link(element: Any) -> bool:  # noqa: ANN401
    """Return whether a superscript is all of a link, or holds only a link."""
    parts = element.parent.contents if element.parent.name == "a" else element.contents
    return len(parts) == 1 and "a" in {element.parent.name, parts[0].name}


def _write_small_o(words: str, before: str, after: str) -> str:
    """Return the sign of a degree before C and F, the o of No, or else the ordinal sign."""
    if NUMBER.search(before):
        return words
    return "\u00b0" if SCALE.match(after) else "\u00ba"


def _is_numerator(element: Any) -> bool:  # noqa: ANN401
    """Return whether a slash and a subscript of digits follow, or a fraction slash and a digit."""
    slash = _find_beside(element, "next_sibling", 0)
    if slash is None or not slash.startswith(SLASHES):
        return False
    if len(slash) > 1:
        return bool(slash[0] == "\u2044" and slash[1].isdigit())
    below = _find_beside(slash, "next_sibling", 0)
    return bool(below and below.parent.name == "sub" and below.strip().isdigit())


def _mark(sign: str, words: str, before: str, after: str) -> str:
    is_index = sign == "_" and words.isalpha() and bool(before[-1:].strip())
    if WORDS.fullmatch(words) and not is_index:
        return f" {words}" if before[-1:].isalnum() else words
    return sign + _keep_apart(words if SIMPLE.fullmatch(words) else f"({words})", after)


def _keep_apart(words: str, after: str) -> str:
    return f"{words} " if words[-1:].isdigit() and after[:1].isdigit() else words


def _text_before(element: Any) -> str:  # noqa: ANN401
    """Return the end of the text in the line before an element, or nothing."""
    return str(_find_beside(element, "previous_sibling", -1) or "")[-20:]


def _text_after(element: Any) -> str:  # noqa: ANN401
    return str(_find_beside(element, "next_sibling", 0) or "")[:20]


def _find_beside(element: Any, sibling: str, place: int) -> Any:  # noqa: ANN401
    """Return the text in the line beside an element, or None."""
    for _ in range(STEPS):
        if getattr(element, sibling) is not None or element.parent is None or element.parent.name not in INLINE:
            break
        element = element.parent
    beside = getattr(element, sibling)
    for _ in range(STEPS):
        if isinstance(beside, NavigableString):
            return beside
        if beside is None or beside.name not in {*INLINE, "sub", "sup"} or not beside.contents:
            break
        beside = beside.contents[place]
    return None
