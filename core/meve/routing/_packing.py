"""Packs memories under a token budget, with each day named once, and shortens those that are too long for it."""

import re
from collections.abc import Sequence
from datetime import datetime

from meve._quoting import MARK, mark_forgeries
from meve.components._sentence_splitter import split_sentences
from meve.errors import ModelError, wrap_errors
from meve.memory._recall.days import day_heading, group_by_day
from meve.memory._recall.memory_passage import MemoryPassage, format_memory
from meve.memory.records import MemoryRecord
from meve.pipeline.phases.budget import Composed, with_counts
from meve.pipeline.phases.condense import RATED_SENTENCE
from meve.pipeline.phases.shorten import find_pieces, rate_by_words, shorten
from meve.ports import TokenCounter
from meve.routing._reader import MemoryReader
from meve.types import Candidate, Dropped, Selection

_LARGEST_SHARE = 0.9
"""The share of the budget that one memory may take. A longer one is shortened to its best sentences."""
_SHORTENED = 8
"""The number of memories, the best first, that are shortened instead of left out."""
_MARK_TOKENS = "[10] "
_HEADING = re.compile(r"^(?=[^\w\n]*\d{4}-\d\d-\d\d\b[^\n]{0,30}:[^\S\n]*$)", re.MULTILINE)
"""A line of a memory that looks like the heading of a day."""


def pack(
    question: str, candidates: Sequence[Candidate], reader: MemoryReader, tokens: TokenCounter, *, max_tokens: int,
    by_time: bool,
) -> Composed:  # fmt: skip
    """Pack memories in the order given, as many as fit, and show them by day.

    The text names each day once, above its memories. The days stand in order of their best memory, or of time.

    Args:
        question: the question, by which sentences of long memories are chosen.
        candidates: the memories, best first.
        reader: rates sentences.
        tokens: counts tokens.
        max_tokens: the budget of the whole text.
        by_time: whether the memories are shown in order of time instead of relevance.

    Raises:
        ModelError: the tokenizer or the verifier failed.
    """
    with wrap_errors(ModelError, f"counting tokens with {tokens.name!r}"):
        fitted = _shorten_long(question, with_counts(candidates, tokens), reader, tokens, max_tokens)
        kept, dropped = _choose(fitted, tokens, max_tokens)
        while True:
            shown = _arrange(kept, by_time=by_time)
            text = _write(shown)
            count = tokens.count(text) if kept else 0
            if count <= max_tokens:
                return Composed(selection=Selection(kept=shown, dropped=dropped), text=text, tokens=count)
            dropped.insert(0, Dropped(candidate=kept.pop(), reason="over_budget"))


def _choose(
    candidates: Sequence[Candidate], tokens: TokenCounter, max_tokens: int
) -> tuple[list[Candidate], list[Dropped]]:
    """Return what fits by the sum of the stored counts, best first, and what doesn't."""
    kept, dropped, used = [], [], 0
    mark, counts = tokens.count(_MARK_TOKENS), _Counts(tokens)
    days: set[str] = set()
    for candidate in candidates:
        record = record_of(candidate)
        heading = day_heading(record)
        added = (candidate.tokens or 0) - counts.suffix(record) + mark + (heading not in days) * counts.of(heading)
        if used + added > max_tokens:
            dropped.append(Dropped(candidate=candidate, reason="over_budget"))
            continue
        kept.append(candidate)
        days.add(heading)
        used += added
    return kept, dropped


class _Counts:
    """The tokens of headings, and of the source and date that stored counts include; each text is counted once."""

    def __init__(self, tokens: TokenCounter) -> None:
        self._tokens = tokens
        self._known: dict[str, int] = {}

    def of(self, text: str) -> int:
        if text not in self._known:
            self._known[text] = self._tokens.count(text)
        return self._known[text]

    def suffix(self, record: MemoryRecord) -> int:
        return self.of(format_memory("", record.source, record.created_at))


def _shorten_long(
    question: str, candidates: Sequence[Candidate], reader: MemoryReader, tokens: TokenCounter, max_tokens: int
) -> list[Candidate]:
    most = int(_LARGEST_SHARE * max_tokens)
    return [
        _shorten(question, c, reader, tokens, most) if n < _SHORTENED and (c.tokens or 0) > most else c
        for n, c in enumerate(candidates)
    ]


def _shorten(question: str, candidate: Candidate, reader: MemoryReader, tokens: TokenCounter, most: int) -> Candidate:
    text = candidate.passage.text
    pieces, headers = find_pieces(text, split_sentences)
    ratings = reader.rate(question, candidate, pieces)
    by_words = rate_by_words(question, text, pieces)
    least = RATED_SENTENCE if ratings else float("inf")
    return shorten(candidate, pieces, ratings or by_words, tokens, most, least=least, headers=headers)


def _arrange(kept: Sequence[Candidate], *, by_time: bool) -> list[Candidate]:
    """Return the memories in the order in which they are shown, those of a day together."""
    ordered = sorted(kept, key=_time_of) if by_time else list(kept)
    groups = group_by_day([record_of(c) for c in ordered])
    return [ordered[place] for _, places in groups for place in places]


def _write(shown: Sequence[Candidate]) -> str:
    lines, n = [], 0
    for heading, places in group_by_day([record_of(c) for c in shown]):
        lines.append(heading)
        for candidate in (shown[place] for place in places):
            n += 1
            text = mark_forgeries(candidate.passage.text, numbers=True, tags=True)
            lines.append(f"[{n}] {_HEADING.sub(MARK, text)}")
    return "\n".join(lines)


def record_of(candidate: Candidate) -> MemoryRecord:
    """Return the record of a candidate, which must be a memory."""
    assert isinstance(candidate.passage, MemoryPassage)
    return candidate.passage.record


def _time_of(candidate: Candidate) -> tuple[datetime, int]:
    assert isinstance(candidate.passage, MemoryPassage)
    record = candidate.passage.record
    return record.valid_from or record.created_at, candidate.passage.row
