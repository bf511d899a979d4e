"""Worst-case inputs for regular expressions and for functions that read foreign text, and a check of growth."""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

TIMES, MOST = 8, 24
"""An input that is so many times larger may take so many times longer."""
FLOOR = 0.025
"""Seconds of processor time below which the growth isn't judged."""
SMALL = 1_000
"""Characters of the smaller input."""
PATTERNS = {"small": 400, "floor": 0.004}
"""For regular expressions: quadratic time of 400 * `TIMES` characters is 0.16 of that of `SMALL * TIMES`."""
PARTS = 4
"""Growth counts if an input so many times larger shows it, too, since a text may be read in parts."""
TRIES = 5
"""Growth counts if so many measurements show it one after another: a slow moment of the machine is no growth."""
PIECES = (
    " ", "\n", " \n", "\t", "7", "7 ", "7,", "7.", "7:", "a", "a ", "A", "A ", "Ab ", "a.", "a. ", "e\u0301",
    "\u0301", "? ", "?", "! ", "-", "- ", "_", "'", "\u2019", "a'", "\"", "\"A", "\u201c", "(", "[", "[a](", "{", "<",
    "<a>", "<a ", "</", "&", "<!--", "<!-- a -->\n", "<!-- a -->", "<![CDATA[", "<?xml ", "<!DOCTYPE a [", "`", "` ",
    "``` ", "```\n", "~~~\n", "*", "* ", "**a", "_a ", "#", "# ", "# a\n", "> ", ">", "- a\n", "1. a\n", "a\n: b\n",
    "|", "|a|\n", "| a | b |\n", ".. ", ".. _a:\n", ".. a::\n", ".. a:: b\n", ":a: ", "===\n", "a\n===\n",
    "===\na\n===\n", "\\", "---\n", "\u4e00", "[[", "![", "[a]: b\n", "&amp;", "{\"a\":", "[1,", "<div>", "<table>",
    "<ul><li>", "<dt>a", "<p", "a b ", "\x00", "A-", ".7", ",7", "-7", "x-", "~~~", "hundred ", "The ",
    "&a: [*a, *a]\n", "a: b\n", "x,", "= ", "$", "$ 1", "@", "I am ", "my ", "I ", "not ", "no, ", "remember ", "in ",
)  # fmt: skip
"""Pieces that are repeated: runs of each kind of character, and openings that are never closed."""


def find_growth(
    read: Callable[[str], object],
    pieces: Iterable[tuple[str, str]],
    endings: Sequence[str] = ("", "`_"),
    *,
    small: int = SMALL,
    floor: float = FLOOR,
) -> list[str]:
    """Return the inputs with which the time to read a text grows faster than its length.

    Args:
        read: reads a text.
        pieces: for each input, what it begins with and what is repeated after that.
        endings: what each input ends with; the second one keeps patterns from matching at the end.
        small: characters of the smaller input.
        floor: seconds of processor time below which the growth isn't judged.
    """
    return [
        complaint
        for before, piece in dict.fromkeys(pieces)
        for after in endings
        if piece and (complaint := _measure(read, before, piece, after, small, floor))
    ]


def _measure(read: Callable[[str], object], before: str, piece: str, after: str, size: int, floor: float) -> str:
    complaint = ""
    for scale, tries in ((1, TRIES), (PARTS, 1)):
        repeats = max(size * scale // len(piece), 1)
        small, large = (before + piece * each + after for each in (repeats, repeats * TIMES))
        for _ in range(tries):
            second = _seconds(read, large)
            if second <= floor or second <= MOST * (first := min(_seconds(read, small) for _ in range(3))):
                return ""
        complaint = f"{first * 1e3:.1f} ms, {second * 1e3:.0f} ms for {TIMES} times as much"
    return f"{before!r} + {piece!r} * n + {after!r}: {complaint}"


def _seconds(read: Callable[[str], object], text: str) -> float:
    """Return the processor time: on a busy machine the time of day says little."""
    began = time.process_time()
    read(text)
    return time.process_time() - began


def pattern_pieces(pattern: str, flags: int = 0) -> Iterator[tuple[str, str]]:
    """Yield inputs for `find_growth` that a pattern may match over and over: its parts, after what precedes them."""
    from re import _parser  # type: ignore[attr-defined]  # nothing else reads a pattern

    return _pieces(_parser.parse(pattern, flags), "")


def _pieces(tree: Any, before: str) -> Iterator[tuple[str, str]]:
    parts = [list(run) for run in _split(tree)]
    items = ["".join(map(_sample, part)) for part in parts]
    whole = "".join(items)
    yield from ((before, piece) for piece in (whole, whole[:-1], f"{whole} ", f"{whole}\n"))
    for n, part in enumerate(parts):
        lead = before + "".join(items[:n])
        yield from ((lead, items[n]), ("", items[n]), (lead, "".join(items[n : n + 2])), ("", "".join(items[:n])))
        for child in _children(str(part[0][0]), part[0][1]):
            yield from _pieces(child, lead)


def _split(tree: Any) -> Iterator[Iterator[tuple[Any, Any]]]:
    """Split a parsed pattern into its parts: a word of it is one part, since no letter of it can be repeated alone."""
    count = itertools.count()
    for _, run in itertools.groupby(tree, lambda item: str(item[0]) == "LITERAL" or next(count)):
        yield run


def _children(operator: str, argument: Any) -> list[Any]:
    match operator:
        case "SUBPATTERN":
            return [argument[3]]
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return [argument[2]]
        case "ATOMIC_GROUP":
            return [argument]
        case "BRANCH":
            return list(argument[1])
        case "ASSERT" | "ASSERT_NOT":
            return [argument[1]]
    return []


def _sample(item: tuple[Any, Any]) -> str:
    """Return a short text that one part of a parsed pattern matches."""
    operator, argument = str(item[0]), item[1]
    match operator:
        case "LITERAL":
            return chr(argument)
        case "NOT_LITERAL" | "ANY":
            return "x" if argument != ord("x") else "y"
        case "IN":
            return _sample_class(argument)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, most, part = argument
            return "".join(map(_sample, part)) * max(least, min(int(most), 1))
        case "BRANCH":
            return "".join(map(_sample, argument[1][0]))
        case "SUBPATTERN" | "ATOMIC_GROUP":
            return "".join(map(_sample, _children(operator, argument)[0]))
    return ""


CANDIDATES = "aA7 _-.é\u0301\n:'!*一#<"


def _sample_class(parts: Any) -> str:
    from re import (
        _compiler,  # type: ignore[attr-defined]
        _parser,
    )

    state = _parser.State()
    tree = _parser.SubPattern(state, [(_parser.IN, parts)])
    code = _compiler.compile(tree)
    return next((sign for sign in CANDIDATES if code.match(sign)), "") or next(
        (chr(n) for n in range(0x3000) if code.match(chr(n))), ""
    )
