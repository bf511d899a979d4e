"""Packs memories under a token budget, with each day named once, and shortens those that are too long for it."""

from collections.abc import Sequence
from functools import partial

from meve.components._sentence_splitter import split_sentences
from meve.components.lexical.analyzers import stemmed_words
from meve.errors import ModelError, wrap_errors
from meve.memory._recall.memory_passage import MemoryPassage
from meve.pipeline.phases.budget import SMALL, Composed, budget, list_passages, with_counts
from meve.pipeline.phases.condense import RATED_SENTENCE
from meve.pipeline.phases.shorten import find_pieces, rate_by_words, shorten
from meve.ports import TokenCounter
from meve.routing._reader import MemoryReader, time_of
from meve.types import Candidate, Dropped, Selection

_LARGEST_SHARE = 0.9
"""The share of the budget that one memory may take. A longer one is shortened to its best sentences."""
_SHORTENED, _LARGEST_USE = 8, 0.5
"""The number of memories, the best first, that are shortened instead of left out, and the largest share of the budget
that better ones may have taken: no shortened one fits beside more, and rating its sentences takes long."""
_SEPARATOR = "\n"


def pack(
    question: str, candidates: Sequence[Candidate], reader: MemoryReader, tokens: TokenCounter, *, max_tokens: int,
    by_time: bool,
) -> Composed:  # fmt: skip
    """Pack memories in the order given, as many as fit, and show them by day.

    The text names each day once, above its memories. The days stand in order of their best memory, or of time. In a
    small budget, each memory begins with its day instead.

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
        cut = partial(_shorten, question, reader, tokens)
        numbered = max_tokens > SMALL
        chosen = budget(
            fitted, tokens, max_tokens=max_tokens, separator=_SEPARATOR, citations=numbered, cut=cut
        ).selection
        kept, dropped = list(chosen.kept), list(chosen.dropped)
        while True:
            shown = _arrange(kept, by_time=by_time, by_day=numbered)
            text = _write(shown, numbered=numbered)
            count = tokens.count(text) if kept else 0
            if count <= max_tokens:
                return Composed(selection=Selection(kept=shown, dropped=dropped), text=text, tokens=count)
            dropped.insert(0, Dropped(candidate=kept.pop(), reason="over_budget"))


def _shorten_long(
    question: str, candidates: Sequence[Candidate], reader: MemoryReader, tokens: TokenCounter, max_tokens: int
) -> list[Candidate]:
    most = int(_LARGEST_SHARE * max_tokens)
    fitted, used = [], 0
    for n, candidate in enumerate(candidates):
        if n < _SHORTENED and (candidate.tokens or 0) > most and used <= _LARGEST_USE * max_tokens:
            candidate = _shorten(question, reader, tokens, candidate, most)
        size = candidate.tokens or 0
        used += size if used + size <= max_tokens else 0
        fitted.append(candidate)
    return fitted


def _shorten(question: str, reader: MemoryReader, tokens: TokenCounter, candidate: Candidate, most: int) -> Candidate:
    text = candidate.passage.text
    pieces, headers = find_pieces(text, split_sentences)
    ratings = reader.rate(question, candidate, pieces)
    by_words = rate_by_words(question, text, pieces, stemmed_words)
    least = RATED_SENTENCE if ratings else float("inf")
    return shorten(candidate, pieces, ratings or by_words, tokens, most, least=least, headers=headers)


def _arrange(kept: Sequence[Candidate], *, by_time: bool, by_day: bool) -> list[Candidate]:
    """Return the memories in the order in which they are shown."""
    ordered = sorted(kept, key=lambda c: (time_of(c), _row_of(c))) if by_time else list(kept)
    if not by_day:
        return ordered
    groups: dict[str, list[Candidate]] = {}
    for candidate in ordered:
        groups.setdefault(candidate.passage.heading, []).append(candidate)
    return [candidate for group in groups.values() for candidate in group]


def _write(shown: Sequence[Candidate], *, numbered: bool) -> str:
    passages = [candidate.passage for candidate in shown]
    texts = [p.prompt_text + (p.validity if isinstance(p, MemoryPassage) else "") for p in passages]
    return _SEPARATOR.join(list_passages(passages, texts, citations=numbered))


def _row_of(candidate: Candidate) -> int:
    assert isinstance(candidate.passage, MemoryPassage)
    return candidate.passage.row
