"""Cuts a long text into slices, so that splitting it takes time in proportion to its length."""

from collections.abc import Iterator

SLICE = 8_000
"""The maximum number of characters that are split at once. Parsers of code take quadratic time for some texts."""


def iter_slices(text: str, size: int = SLICE) -> Iterator[tuple[int, str]]:
    """Yield the offset and text of each slice; together they are the text.

    A slice ends before the least indented line of its last three quarters, after a blank line where there is one; a
    line that is longer than a slice is cut anywhere.
    """
    start = 0
    while len(text) - start > size:
        end = _find_end(text, start + size // 4, start + size)
        yield start, text[start:end]
        start = end
    yield start, text[start:]


def _find_end(text: str, least: int, most: int) -> int:
    """Return where the best line begins in text[least:most], the last of equals; `most` if no line begins there."""
    best, end = (0, 0), most
    line = text.find("\n", least, most) + 1
    while line:
        following = text.find("\n", line, most)
        words = text[line : following if following >= 0 else most]
        depth = len(words) - len(words.lstrip())
        rank = (-depth, int(text[max(line - 2, 0) : line] == "\n\n"))
        if words.strip() and (end == most or rank >= best):
            best, end = rank, line
        line = following + 1
    return end
