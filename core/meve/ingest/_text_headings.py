"""Finds headings in plain text: underlined, numbered, or in capitals, if the text uses them throughout."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile
from statistics import median_low

from meve.ingest._headings import ADORNMENT, Heading, Outline, find_underlined, line_starts

FEWEST = 2
"""The headings of one kind that make a text one with headings."""
LONGEST = 70
"""The most characters of a heading."""
FEWEST_WORDS = 30
"""The mean number of words below numbered headings that aren't in capitals; with fewer, they are a list."""
LONGEST_SECTION, MOST_TIMES = 200, 8
"""The lines of a section, and how many times longer than the median one it is, from which it may hold other ones."""
WIDEST = 0.6
"""The most characters of a numbered heading right above its text, as a share of the text's first line."""
SHORTEST_RULE = 20
"""The fewest marks of a line that ends a section."""
LEVELS = 10
"""The levels of a kind of heading: `1.2.3` is on the third."""
NUMBERED = re.compile(r"((?:\d{1,2}\.){1,3}\d{1,2}|\d{1,2}(?=[.)]))[.)]? {1,3}(\S.*)")
CAPITALS = re.compile(r"(?=.*[^\W\d_]{3})[^\W\d_](?:[^\W_]|[ &,'/()-])*")
SHORT = re.compile(r"[^\W_a-z]")
"""The beginning of a line that may be a heading."""
PHRASE = re.compile(r"(?:[^\W_].*)?[\w)\]\"'\u201d\u2019]")
"""A line that doesn't end a sentence."""

Found = tuple[int, int, str, int]
"""A heading: its first line, its last line, its kind, and its depth among those of the kind."""


def text_outline(text: str) -> Outline:
    """Return the headings of a plain text; none unless it has several of a kind, with text below them.

    One or two short lines above a blank one that a text with headings begins with are a title above all headings.
    """
    lines, starts = text.split("\n"), line_starts(text)
    kinds = [_find_underlined(lines), _find_numbered(lines), _find_capitals(lines)]
    found = [each for kind in map(list, kinds) if len(kind) >= FEWEST for each in kind]
    order = list(dict.fromkeys(kind for _, _, kind, _ in sorted(found)))
    if "plain" in order:
        found += _find_rules(lines, found)
    headings = list(_find_top(text, min(found)[0], lines, starts)) if found else []
    for first, last, kind, depth in sorted(found):
        title = " ".join(line.strip() for line in lines[first : last + 1] if any(map(str.isalnum, line)))
        level = order.index(kind) * LEVELS + depth
        headings.append(Heading(level=level, title=title, start=starts[first], body=starts[last + 1]))
    return Outline(headings)


def _find_top(text: str, end: int, lines: Sequence[str], starts: Sequence[int]) -> Iterator[Heading]:
    """Yield the title that a text begins with, above line `end`."""
    first = text[: len(text) - len(text.lstrip())].count("\n")
    block = list(takewhile(str.strip, lines[first:end]))
    last = first + len(block)
    if 1 <= len(block) <= 2 and not lines[last].strip() and all(map(is_short, block)):
        yield Heading(level=0, title=" ".join(map(str.strip, block)), start=starts[first], body=starts[last])


def is_short(line: str) -> bool:
    """Return whether a line may be a heading: it begins with a capital or a digit, and `is_phrase` holds for it."""
    return is_phrase(line) and SHORT.match(line.strip()) is not None


def is_phrase(line: str) -> bool:
    """Return whether a line is short, and neither ends a sentence nor has columns."""
    words = line.strip()
    return len(words) <= LONGEST and "  " not in words and "|" not in words and PHRASE.fullmatch(words) is not None


def find_last_title(text: str, gap: str, below: str) -> int | None:
    """Return the offset of a line at the end of a text that may be the title of what follows; None without one.

    Args:
        text: the text.
        gap: the blanks after it.
        below: the text that follows.
    """
    lines = text.rstrip().rsplit("\n", 3)
    count = 2 if len(lines) > 1 and ADORNMENT.match(lines[-1]) else 1
    is_title = is_phrase(lines[-count]) if count > 1 else is_short(lines[-count])
    if not below or not is_title or (len(lines) > count and lines[-count - 1].strip()):
        return None
    following, after, *_ = [*below.split("\n", 2), ""]
    is_item = is_short(following) and not after.strip()
    is_apart = count > 1 or (gap.count("\n") > 1 and not is_item)
    return len(text.rstrip()) - len("\n".join(lines[-count:])) if is_apart else None


def _find_underlined(lines: Sequence[str]) -> Iterator[Found]:
    for over, (number, title), under in find_underlined(lines):
        if (is_phrase(title) if over is None else is_short(title)) and any(
            map(str.strip, lines[number + 2 : number + 4])
        ):
            yield number if over is None else over, number + 1, f"{under[0]}{over is None}", 1


def _find_numbered(lines: Sequence[str]) -> Iterator[Found]:
    """Yield headings such as `2.1 Fees`, unless the numbers don't rise, as those of several lists."""
    found = []
    for number, below, _ in _find_first_lines(lines):
        match = NUMBERED.fullmatch(lines[number])
        if match and is_short(lines[number]) and is_short(match[2]) and not NUMBERED.match(lines[below]):
            is_capital = _is_capital(match[2])
            if is_capital or below > number + 1 or _is_unwrapped(lines[number], lines[below]):
                found.append((number, tuple(map(int, match[1].split("."))), is_capital))
    rise = found and found[0][1][0] <= 1 and all(above[1] < below[1] for above, below in pairwise(found))
    words = len(" ".join(lines[found[0][0] :]).split()) if found else 0
    if rise and (words >= FEWEST_WORDS * len(found) or all(is_capital for *_, is_capital in found)):
        yield from ((number, number, "plain", len(each)) for number, each, _ in found)


def _is_unwrapped(line: str, below: str) -> bool:
    """Return whether a line ends long before the width of the text below it, which begins anew."""
    return below[0].isupper() and len(line) <= WIDEST * len(below.rstrip())


def _find_capitals(lines: Sequence[str]) -> Iterator[Found]:
    """Yield headings such as `EXIT STATUS`. Two without text between are one; more are a list.

    If a section is far longer than most, other headings aren't recognised, unless indented lines tell sections apart.
    """
    begin = next((n for n, line in enumerate(lines) if line.strip()), 0)
    run: list[int] = []
    found: list[Found] = []
    is_indented = True
    for number, below, is_alone in _find_first_lines(lines):
        is_heading = is_alone and is_short(lines[number]) and _is_capital(lines[number])
        is_title = number == begin and not lines[number + 1].strip()
        run = [*run, number] if is_heading and not is_title else []
        if run and not (is_short(lines[below]) and _is_capital(lines[below])):
            if len(run) <= 2:
                found.append((run[0], run[-1], "plain", 1))
                is_indented = is_indented and lines[below][0].isspace()
            run = []
    sizes = [below[0] - above[0] for above, below in pairwise([*found, (len(lines), 0, "", 0)])]
    is_whole = is_indented or max(sizes, default=0) <= max(LONGEST_SECTION, MOST_TIMES * median_low(sizes))
    yield from found if is_whole else ()


def _find_rules(lines: Sequence[str], found: Sequence[Found]) -> Iterator[Found]:
    """Yield the lines of marks that end sections without beginning one that has a title."""
    taken = {number for first, last, *_ in found for number in range(first, last + 1)}
    for number, line in enumerate(lines):
        if len(line.strip()) >= SHORTEST_RULE and number not in taken and ADORNMENT.match(line.rstrip()):
            yield number, number, "plain", 1


def _find_first_lines(lines: Sequence[str]) -> Iterator[tuple[int, int, bool]]:
    """Yield the number of each line after a blank one that isn't indented, and that of the next line with words.

    The third value tells whether that one is apart or indented. A text's last line is left out.
    """
    words = [n for n, line in enumerate(lines) if line.strip()]
    for above, number, below in zip([-2, *words], words, words[1:], strict=False):
        if above < number - 1 and not lines[number][0].isspace():
            yield number, below, below > number + 1 or lines[below][0].isspace()


def _is_capital(line: str) -> bool:
    return line == line.upper() and CAPITALS.fullmatch(line) is not None
