"""Cuts a text before the lines that rank best."""

from collections.abc import Callable, Iterator

from meve.ingest._layout import ENTRY, GLUED, HEADING, Layout

SECTION_SHARE = 10
"""Neighbouring sections or definitions share a chunk only up to this fraction, 1/10, of its size. Verifiers score a
chunk of many topics low."""


class LineCutter:
    """Cuts a text into runs of lines.

    Args:
        text: the whole text.
        layout: its lines.
        measure: returns the size of a text, in tokens.
        tokens: the maximum size of a run; only lines that are glued together may exceed it.
    """

    def __init__(self, text: str, layout: Layout, measure: Callable[[str], int], tokens: int) -> None:
        self.text = text
        self.lines = layout.lines
        self.ends = [line.start for line in layout.lines[1:]] + [len(text)]
        self.measure = measure
        self.tokens = tokens

    def size(self, first: int, last: int) -> int:
        """Return the size of lines [first, last), without the heading that begins them."""
        return self.measure(self.text[self.lines[first].body : self.ends[last - 1]])

    def cut(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield the first and the end of each run within lines [first, last)."""
        best = min((line.rank for line in self.lines[first + 1 : last]), default=(GLUED, 0))
        limit = self.tokens // SECTION_SHARE if best[0] <= ENTRY else self.tokens
        is_nested = best[0] == ENTRY and self.lines[first].rank[0] == ENTRY and self.lines[first].rank < best
        if best[0] == GLUED or self.size(first, last) <= (self.tokens if is_nested else limit):
            yield first, last
            return
        end = first
        for edge in [*(n for n in range(first + 1, last) if self.lines[n].rank == best), last]:
            if end > first and self.size(first, edge) > limit:
                *runs, (tail, _) = self.cut(first, end)
                yield from runs
                is_joined = best[0] > ENTRY and self.lines[tail].term is self.lines[end].term
                if is_joined and self.size(tail, edge) <= limit:
                    first = tail
                else:
                    yield tail, end
                    first = end
            end = edge
        yield from self.cut(first, last)

    def extend_back(self, first: int, overlap: int, floor: int) -> int:
        """Return the first of the lines from `floor` that fit into the overlap before a run and are of its section."""
        begin = line = first
        while line > floor and self.lines[begin].rank[0] != HEADING and self.size(line - 1, first) <= overlap:
            line -= 1
            if self.lines[line].rank[0] != GLUED:
                begin = line
        return begin
