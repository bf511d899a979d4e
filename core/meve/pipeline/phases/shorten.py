"""Shorten passages that exceed the budget by themselves to their best sentences (before phase 4)."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from types import MappingProxyType

from meve._tables import find_headers
from meve.pipeline.phases.condense import GAP, SplitSentences, join_blocks
from meve.ports import TokenCounter
from meve.types import Candidate, Passage, TextSpans

LEAST = 32
"""The least number of tokens in a share of the budget; less would be a scrap. A smaller budget isn't shared."""
MOST_SHARING = 4
"""The most verified candidates among which the budget is divided when one of them is too long for it."""
WORDS = 20
"""The words of a piece of a sentence that is too long by itself, as tables and logs have them."""


def share_budget(candidates: Sequence[Candidate], max_tokens: int, overhead: int, limit: int | None) -> int:
    """Return the tokens that a passage is shortened to: an equal share of the budget for up to four verified ones.

    Args:
        candidates: the candidates to pack.
        max_tokens: the budget.
        overhead: the tokens between two passages.
        limit: the most passages in the context; None for any number.
    """
    sharing = min(max(sum(c.verified for c in candidates), 1), limit or MOST_SHARING, MOST_SHARING)
    return max(max_tokens // sharing - overhead * (sharing > 1), min(LEAST, max_tokens))


def find_pieces(text: str, split: SplitSentences) -> tuple[list[tuple[int, int]], dict[int, int]]:
    """Return the start and end of each piece, and for pieces that are rows of a table the index of their header's.

    A piece is a sentence; one of many words is cut into lines, and these after 20 words. Headers aren't cut.
    """
    pieces: list[tuple[int, int]] = []
    headers: dict[int, int] = {}
    first: dict[int, int] = {}
    at = 0
    sentences = split(text)
    rows = find_headers(sentences)
    for n, sentence in enumerate(sentences):
        start = text.find(sentence, at)
        if start >= 0:
            at = start + len(sentence)
            first[n] = len(pieces)
            pieces += [(start, at)] if n in rows.values() else _cut(text, start, at)
            if rows.get(n) in first:
                headers |= dict.fromkeys(range(first[n], len(pieces)), first[rows[n]])
    return pieces or list(_cut(text, 0, len(text))), headers


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    if len(text[start:end].split()) <= 2 * WORDS:
        yield start, end
        return
    for line in re.finditer(r"[^\n]+", text[start:end]):
        words = list(re.finditer(r"\S+", line[0]))
        for n in range(0, len(words), WORDS):
            last = words[min(n + WORDS, len(words)) - 1]
            yield start + line.start() + words[n].start(), start + line.start() + last.end()


def rate_by_words(
    query: str, text: str, pieces: TextSpans, split: Callable[[str], Sequence[str]] | None = None
) -> list[float]:
    """Return for each piece the weight of the query's words in it; a word in few pieces weighs more.

    Args:
        query: the query.
        text: the text.
        pieces: the start and end of each piece.
        split: returns the words of a text; None for all words in lower case.
    """
    split = split or _split_words
    wanted = set(split(query))
    found = [wanted.intersection(split(text[start:end])) for start, end in pieces]
    counts = Counter(word for words in found for word in words)
    return [sum(math.log(1 + len(pieces) / counts[word]) for word in words) for words in found]


def _split_words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def shorten(
    candidate: Candidate,
    pieces: TextSpans,
    ratings: Sequence[float],
    counter: TokenCounter,
    max_tokens: int,
    *,
    least: float,
    widen: bool = True,
    headers: Mapping[int, int] = MappingProxyType({}),
    pack: Callable[[Passage], str] | None = None,
) -> Candidate:
    """Reduce a candidate to its best pieces and their neighbours, as many as fit.

    Args:
        candidate: its passage exceeds `max_tokens`.
        pieces: the start and end of its sentences in the passage's text, in order.
        ratings: of the pieces. Those that reach `least` are chosen first, or else the best one.
        counter: counts the passage with its title.
        max_tokens: the most tokens of the shortened passage.
        least: the least rating of a piece that is evidence.
        widen: whether to add neighbours where there is evidence too.
        headers: for rows of tables, the index of the header's piece. It comes with a row, and the next piece with a
            question, unless that leaves no room for the best piece.
        pack: returns what is counted for a passage, as it is packed; None for its title and text.

    Returns:
        The shortened candidate; the given one if not even its best piece fits.
    """
    ranked = sorted(range(len(pieces)), key=lambda n: -ratings[n])
    evidence = [n for n in ranked if ratings[n] >= least]
    chosen: set[int] = set()

    def add(n: int) -> bool:
        if not 0 <= n < len(pieces) or n in chosen:
            return False
        is_question = candidate.passage.text[slice(*pieces[n])].endswith("?") and n + 1 < len(pieces)
        together = chosen | {n, headers.get(n, n), n + is_question}
        for wanted in (together, *([] if chosen else [{n}])):
            if _tokens(wanted) <= max_tokens:
                chosen.update(wanted)
                return True
        return False

    def _tokens(kept: Set[int]) -> int:
        shorter = candidate.passage.with_text(_join(candidate.passage.text, pieces, kept, rows))
        return counter.count(pack(shorter) if pack else shorter.prompt_text)

    rows = {*headers, *headers.values()}
    seeds = [n for n in evidence or ranked[:1] if add(n)]
    if widen or not evidence:
        sides = [(n, step) for n in seeds for step in (1, -1)]
        while sides:  # each seed grows by one piece at a time, until nothing more fits beside it
            sides = [(n + step, step) for n, step in sides if n + step in chosen or add(n + step)]
    if not chosen:
        return candidate
    kept = sorted(chosen)
    passage = candidate.passage.with_text(_join(candidate.passage.text, pieces, chosen, rows))
    return replace(candidate, passage=passage, tokens=counter.count(passage.prompt_text), sentences=tuple(kept))


def _join(text: str, pieces: TextSpans, kept: Set[int], rows: Set[int]) -> str:
    """Return the pieces as they stand in the text, with a mark where something is left out."""
    blocks: list[tuple[str, bool]] = []
    before = -2
    for n in sorted(kept):
        start, end = pieces[n]
        if n == before + 1:
            blocks[-1] = (blocks[-1][0] + text[pieces[before][1] : end], blocks[-1][1] or n in rows)
        else:
            blocks += [(GAP, False), (text[start:end], n in rows)] if n > 0 else [(text[start:end], n in rows)]
        before = n
    return join_blocks([*blocks, (GAP, False)] if before < len(pieces) - 1 else blocks)
