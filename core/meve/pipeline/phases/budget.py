"""Phase 5, token budget: how much of it fits, counted on the text that is handed over?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from meve.ports import TokenCounter
from meve.types import Candidate, Dropped, Selection

SEAM = 4
"""Tokens by which a text with one passage more may fall short of the sum of both, for a passage that overshoots by more
to be left out without counting. Byte-pair encodings merge a token or two where texts meet."""
SPACE = " \t\r\n"
"""White space to every tokenizer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """What fits, the text made of it, and that text's tokens."""

    selection: Selection
    text: str
    tokens: int


def budget(
    candidates: Sequence[Candidate],
    counter: TokenCounter,
    *,
    max_tokens: int,
    limit: int | None = None,
    separator: str = "\n\n",
    citations: bool = False,
) -> Composed:
    """Pack in the order given; what doesn't fit is skipped and the next one tried.

    The count that decides is that of the whole text, separators and citations included. Stored counts only spare work:
    a candidate is counted apart only where it has none, and the text only where the sum leaves doubt, and at the end.
    With a counter that `adds_up` no sum leaves doubt, unless the end shows that a stored count is another counter's.

    Source: MeVe (Ottem 2025), section 3.6.
    """
    packer = _Packer(counter, max_tokens, separator, citations)
    counted = _counted(candidates, counter)
    tight = False
    while True:
        kept, dropped, used = packer.pack(counted, limit, exact=tight)
        text = packer.text(kept)
        tokens = counter.count(text) if kept else 0
        if tokens <= max_tokens and (tight or used in (None, tokens)):
            return Composed(selection=Selection(kept=kept, dropped=dropped), text=text, tokens=tokens)
        if tight:  # counting differs from one call to the next: give up the last rather than overrun
            counted = [c for c in counted if c.id != kept[-1].id]
        tight = True


def _counted(candidates: Sequence[Candidate], counter: TokenCounter) -> list[Candidate]:
    missing = [c for c in candidates if c.tokens is None]
    counts = dict(zip((c.id for c in missing), counter.count_many([c.passage.prompt_text for c in missing]), strict=True))
    return [c if c.tokens is not None else replace(c, tokens=counts[c.id]) for c in candidates]


class _Packer:
    """Greedy packing, with sums of stored counts while they leave no doubt (or never, if `exact`)."""

    def __init__(self, counter: TokenCounter, max_tokens: int, separator: str, citations: bool) -> None:
        self._counter, self._max, self._separator, self._citations = counter, max_tokens, separator, citations
        self._seam = counter.count(separator) + (counter.count("[10] ") if citations else 0)
        self._adds_up = bool(getattr(counter, "adds_up", False) and separator and not separator.strip(SPACE))

    def text(self, kept: Sequence[Candidate]) -> str:
        blocks = [c.passage.prompt_text for c in kept]
        if self._citations:
            blocks = [f"{_mark(n)}{block}" for n, block in enumerate(blocks, start=1)]
        return self._separator.join(blocks)

    def pack(
        self, candidates: Sequence[Candidate], limit: int | None, *, exact: bool
    ) -> tuple[list[Candidate], list[Dropped], int | None]:
        """What fits, what doesn't, and by how many tokens that was added up; None where texts were counted."""
        kept: list[Candidate] = []
        dropped: list[Dropped] = []
        adds_up = self._adds_up and not exact
        used, known = 0, True
        for candidate in candidates:
            if limit is not None and len(kept) >= limit:
                dropped.append(Dropped(candidate=candidate, reason="over_limit"))
                continue
            if adds_up:
                total = used + self._sum(candidate, kept)
            else:
                total, used, known = self._weighed(candidate, kept, used, known, exact)
            if total > self._max:
                dropped.append(Dropped(candidate=candidate, reason="over_budget"))
            else:
                kept.append(candidate)
                used = total
        return kept, dropped, used if adds_up else None

    def _weighed(
        self, candidate: Candidate, kept: Sequence[Candidate], used: int, known: bool, exact: bool
    ) -> tuple[int, int, bool]:
        """The tokens with one more, those without it, and whether the former were counted and not estimated."""
        if not known and used + self._adds(candidate, kept) > self._max:
            used, known = self._counter.count(self.text(kept)), True
        total = used + self._adds(candidate, kept)
        if not exact and total <= self._max:
            return total, used, False
        # in doubt, unless it's far too much
        return (self._counter.count(self.text([*kept, candidate])) if total <= self._max + SEAM else total), used, True

    def _adds(self, candidate: Candidate, kept: Sequence[Candidate]) -> int:
        return (candidate.tokens or 0) + (self._seam if kept else 0)

    def _sum(self, candidate: Candidate, kept: Sequence[Candidate]) -> int:
        """What one more adds where the white space between them costs nothing, and keeps them apart."""
        return (candidate.tokens or 0) + (self._counter.count(_mark(len(kept) + 1)) if self._citations else 0)


def _mark(n: int) -> str:
    return f"[{n}] "
