"""Pack candidates into a text under a token budget (phase 5)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from meve.ports import TokenCounter
from meve.types import Candidate, Dropped, Passage, Selection

MERGE_MARGIN = 4
"""Tokens that joining two texts may save. A passage that exceeds the budget by more is left out without a count of the
joined text."""
_MARKS = 16
"""The number of citation marks that are counted at once."""
OVER_BUDGET = "over_budget"
"""The reason of a candidate that doesn't fit."""
WHITESPACE = " \t\r\n"
"""The characters that every tokenizer treats as white space."""
SMALL = 256
"""The most tokens of a budget in which the best candidates are cut to fit: it holds few passages, so that leaving out
one of the best loses more than its weakest sentences. Memories aren't numbered there."""
_CUT, _LEAST_SHARE = 3, 0.4
"""In a small budget, the number of candidates, the best first, that are cut, and the least share of one's tokens that
must fit."""
_BEST_SHARE = 0.9
"""The share of a larger budget to which the best candidate is cut if it exceeds the budget by itself. Else it would be
left out, and weaker ones shown."""

Cut: TypeAlias = Callable[[Candidate, int], Candidate]
"""Returns a candidate reduced to a number of tokens, or unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """The packed candidates, their text, and its tokens."""

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
    find_reason: Callable[[Candidate], str] | None = None,
    cut: Cut | None = None,
) -> Composed:
    """Pack candidates in the order given; one that doesn't fit is skipped.

    With citations, passages of the same heading stand together below it, where the first of them would stand; their
    numbers remain those of the order given. Without, each begins with its lead.

    `find_reason` is asked only about candidates that fit, and returns why one is left out nevertheless, or nothing.
    With `cut`, the first one is cut if it exceeds the budget by itself, to nine tenths of the budget. In a budget of
    at most 256 tokens, those of the first three that don't fit are cut instead, if two fifths fit.

    The tokens of the whole text decide, separators and citations included. Stored counts only save work: the text is
    counted where their sum is uncertain, and at the end. With a counter that `adds_up` the sum is certain, unless the
    final count shows that stored counts came from another counter.

    Source: MeVe (Ottem 2025), section 3.6.
    """
    packer = _Packer(counter, max_tokens, separator, citations, find_reason or (lambda _: ""), cut)
    counted = with_counts(candidates, counter)
    exact = False
    while True:
        kept, dropped, used = packer.pack(counted, limit, exact=exact)
        text = packer.text(kept)
        tokens = counter.count(text) if kept else 0
        if tokens <= max_tokens and (exact or used in (None, tokens)):
            return Composed(selection=Selection(kept=kept, dropped=dropped), text=text, tokens=tokens)
        if exact:  # the counter is inconsistent: drop the last candidate rather than exceed the budget
            counted = [c for c in counted if c.id != kept[-1].id]
        exact = True


def list_passages(passages: Sequence[Passage], blocks: Iterable[str], *, citations: bool) -> list[str]:
    """Return the texts of passages as blocks of a prompt, below their headings or behind their leads.

    Passages of the same heading stand together, where the first of them would stand.

    Args:
        passages: the passages.
        blocks: their texts.
        citations: whether to number the texts, in the order given, below headings; if not, leads stand before them.
    """
    if not citations:
        above = [None, *passages][: len(passages)]
        return [p.lead_after(before) + block for before, p, block in zip(above, passages, blocks, strict=True)]
    below: dict[str, list[str]] = {}
    for n, (passage, block) in enumerate(zip(passages, blocks, strict=True), start=1):
        heading = passage.heading
        below.setdefault(heading, [heading] if heading else []).append(f"{_mark(n)}{block}")
    return [block for group in below.values() for block in group]


def fills_budget(
    candidates: Sequence[Candidate], counter: TokenCounter, *, max_tokens: int | None, limit: int | None
) -> bool:
    """Return whether the candidates reach the limit or, without separators, the budget.

    A candidate that exceeds the budget by itself doesn't count, since it is never packed whole.

    Args:
        candidates: passages of which none is redundant.
        counter: counts the candidates without a stored count.
        max_tokens: the budget; None to compare with the limit only.
        limit: the most passages; None for any number.
    """
    counts = [c.tokens or 0 for c in with_counts(candidates, counter)]
    fitting = [count for count in counts if max_tokens is None or count <= max_tokens]
    return (limit is not None and len(fitting) >= limit) or (max_tokens is not None and sum(fitting) >= max_tokens)


def fits_alone(candidate: Candidate, counter: TokenCounter, max_tokens: int) -> bool:
    """Return whether a candidate doesn't exceed the budget by itself."""
    return (with_counts([candidate], counter)[0].tokens or 0) <= max_tokens


def with_counts(candidates: Sequence[Candidate], counter: TokenCounter) -> list[Candidate]:
    """Return the candidates, each with its token count; those without one are counted."""
    missing = [c for c in candidates if c.tokens is None]
    if not missing:
        return list(candidates)
    counts = dict(
        zip((c.id for c in missing), counter.count_many([c.passage.prompt_text for c in missing]), strict=True)
    )
    return [c if c.tokens is not None else replace(c, tokens=counts[c.id]) for c in candidates]


class _Packer:
    """Packs greedily, by sums of stored counts while they are certain (or never, if `exact`)."""

    def __init__(
        self,
        counter: TokenCounter,
        max_tokens: int,
        separator: str,
        citations: bool,
        find_reason: Callable[[Candidate], str],
        cut: Cut | None,
    ) -> None:
        self._counter, self._max, self._separator, self._citations = counter, max_tokens, separator, citations
        self._find_reason, self._cut = find_reason, cut
        self._blocks: dict[tuple[str, tuple[int, ...] | None], str] = {}
        """The texts of the passages, by id and remaining sentences."""
        self._marks: dict[int, int] = {}
        """The tokens of the marks before the passages, by number."""
        self._headings: dict[str, int] = {}
        """The tokens of headings, with a separator, and of leads."""
        self._shown: set[str] = set()
        """The headings above what is kept."""
        self._separator_tokens = 0
        self._adds_up = bool(getattr(counter, "adds_up", False) and separator and not separator.strip(WHITESPACE))
        if not self._adds_up:
            self._separator_tokens = counter.count(separator) + (counter.count("[10] ") if citations else 0)

    def text(self, kept: Sequence[Candidate]) -> str:
        for c in kept:
            if (c.id, c.sentences) not in self._blocks:
                self._blocks[c.id, c.sentences] = c.passage.packed_text(numbered=self._citations)
        blocks = [self._blocks[c.id, c.sentences] for c in kept]
        return self._separator.join(list_passages([c.passage for c in kept], blocks, citations=self._citations))

    def pack(
        self, candidates: Sequence[Candidate], limit: int | None, *, exact: bool
    ) -> tuple[list[Candidate], list[Dropped], int | None]:
        """Return what fits, what doesn't, and the summed tokens; None for the sum if texts were counted."""
        kept: list[Candidate] = []
        dropped: list[Dropped] = []
        used, known = 0, True
        self._shown = set()
        for place, candidate in enumerate(candidates):
            if limit is not None and len(kept) >= limit:
                dropped.append(Dropped(candidate=candidate, reason="over_limit"))
                continue
            total, used, known = self._measure(candidate, kept, used, known, exact)
            if total > self._max and (shorter := self._shorten(candidate, place, total)) is not None:
                candidate = shorter
                total, used, known = self._measure(candidate, kept, used, known, exact)
            if total > self._max:
                dropped.append(Dropped(candidate=candidate, reason=OVER_BUDGET))
            elif reason := self._find_reason(candidate):
                dropped.append(Dropped(candidate=candidate, reason=reason))
            else:
                kept.append(candidate)
                self._shown.add(candidate.passage.heading)
                used = total
        return kept, dropped, used if self._adds_up and not exact else None

    def _shorten(self, candidate: Candidate, place: int, total: int) -> Candidate | None:
        """Return a candidate cut to fit, given the tokens with all of it; None if it isn't to be cut."""
        if self._cut is None:
            return None
        tokens = candidate.tokens or 0
        room = self._max - total + tokens
        if self._max > SMALL:
            return self._cut(candidate, int(_BEST_SHARE * room)) if place == 0 else None
        return self._cut(candidate, room) if place < _CUT and room >= _LEAST_SHARE * tokens else None

    def _measure(
        self, candidate: Candidate, kept: Sequence[Candidate], used: int, known: bool, exact: bool
    ) -> tuple[int, int, bool]:
        """Return the tokens with the candidate, those without it, and whether the former were counted."""
        if self._adds_up and not exact:
            return used + self._sum_added(candidate, kept), used, known
        if not known and used + self._estimate_added(candidate, kept) > self._max:
            used, known = self._counter.count(self.text(kept)), True
        total = used + self._estimate_added(candidate, kept)
        if not exact and total <= self._max:
            return total, used, False
        return (
            (self._counter.count(self.text([*kept, candidate])) if total <= self._max + MERGE_MARGIN else total),
            used,
            True,
        )

    def _estimate_added(self, candidate: Candidate, kept: Sequence[Candidate]) -> int:
        separator = self._separator_tokens if kept else 0
        return (candidate.tokens or 0) + separator + self._count_frame(candidate.passage, kept)

    def _sum_added(self, candidate: Candidate, kept: Sequence[Candidate]) -> int:
        mark = self._count_mark(len(kept) + 1) if self._citations else 0
        return (candidate.tokens or 0) + mark + self._count_frame(candidate.passage, kept)

    def _count_frame(self, passage: Passage, kept: Sequence[Candidate]) -> int:
        """Return the tokens of a passage's heading, 0 if it is shown already; or those of its lead."""
        frame = passage.heading
        if not self._citations:
            frame = passage.lead_after(kept[-1].passage if kept else None)
        if not frame or (self._citations and frame in self._shown):
            return 0
        if frame not in self._headings:
            self._headings[frame] = self._counter.count(frame) + (0 if self._adds_up else self._separator_tokens)
        return self._headings[frame]

    def _count_mark(self, n: int) -> int:
        if n not in self._marks:
            numbers = range(n, n + _MARKS)
            self._marks.update(zip(numbers, self._counter.count_many(list(map(_mark, numbers))), strict=True))
        return self._marks[n]


def _mark(n: int) -> str:
    return f"[{n}] "
