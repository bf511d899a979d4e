"""The text of a small context within its token budget: the question, the last turns, then the facts in order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from meve.dialogue._turn_passages import TurnPassage
from meve.errors import QueryError
from meve.ports import TokenCounter
from meve.types import ContextPassage

LAST, BEFORE = "Last said:", "Said before:"
"""Headings of the last turns and of the facts."""

Fact = tuple[ContextPassage, TurnPassage]
"""A fact as the pipeline chose it, and its turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Priority:
    """One of the three parts of a small context, with its share of the tokens."""

    priority: int
    """1 for the question, 2 for the last turns, 3 for the facts; the highest number is cut first."""
    what: Literal["query", "recent", "facts"]
    tokens: int
    """Tokens that this part adds to the text."""
    turns: tuple[int, ...]
    """Positions of its turns, in order."""
    left_out: int
    """Number of turns, or parts of long ones, that did not fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextText:
    """The text of a small context and its contents."""

    text: str
    tokens: int
    recent: tuple[TurnPassage, ...]
    facts: tuple[Fact, ...]
    """The facts in the text, in the order of the dialogue."""
    squeezed: tuple[str, ...]
    """Ids of facts that fit by the sum of their tokens, and did not fit in the joined text."""
    query_tokens: int
    recent_tokens: int


def fit_recent(
    query: str, recent: Sequence[TurnPassage], tokens: TokenCounter, max_tokens: int
) -> tuple[list[TurnPassage], list[TurnPassage]]:
    """Split the last turns into those that fit beside the question and those that don't; the oldest are cut first.

    Raises:
        QueryError: the question alone exceeds the limit.
    """
    query_tokens = tokens.count(query)
    if query_tokens > max_tokens:
        raise QueryError(
            f"the query alone has {query_tokens} tokens ({tokens.name}), and max_tokens is {max_tokens}: "
            "shorten the query or raise max_tokens; a query is never cut"
        )
    first = len(recent)
    room = max_tokens - query_tokens
    while first and room > 0:
        first -= 1
        room -= tokens.count(recent[first].prompt_text)
    while first < len(recent) and tokens.count(_join(query, recent[first:], ())) > max_tokens:
        first += 1
    return list(recent[first:]), list(recent[:first])


def count_room_for_facts(query: str, recent: Sequence[TurnPassage], tokens: TokenCounter, max_tokens: int) -> int:
    """Return how many tokens are left for facts, at least 0."""
    return max(0, max_tokens - tokens.count(f"{_join(query, recent, ())}\n\n{BEFORE}\n"))


def compose_text(
    query: str, recent: Sequence[TurnPassage], facts: Sequence[Fact], tokens: TokenCounter, max_tokens: int
) -> ContextText:
    """Return the text under its limit; facts that don't fit are dropped from the worst on.

    Args:
        query: the question.
        recent: the last turns that fit.
        facts: best first.
        tokens: the token counter.
        max_tokens: the limit.
    """
    kept = list(facts)
    while True:
        ordered = sorted(kept, key=lambda fact: (fact[1].turn, _part_number(fact[1])))
        text = _join(query, recent, [passage for _, passage in ordered])
        count = tokens.count(text)
        if count <= max_tokens or not kept:
            break
        kept.pop()
    query_tokens = tokens.count(query)
    return ContextText(
        text=text,
        tokens=count,
        recent=tuple(recent),
        facts=tuple(ordered),
        squeezed=tuple(passage.id for _, passage in facts[len(kept) :]),
        query_tokens=query_tokens,
        recent_tokens=tokens.count(_join(query, recent, ())) - query_tokens,
    )


def _join(query: str, recent: Sequence[TurnPassage], facts: Sequence[TurnPassage]) -> str:
    blocks = [query]
    for heading, passages in ((LAST, recent), (BEFORE, facts)):
        if passages:
            blocks.append("\n".join([heading, *(passage.prompt_text for passage in passages)]))
    return "\n\n".join(blocks)


def _part_number(passage: TurnPassage) -> int:
    return int(passage.id.partition(".")[2] or 0)
