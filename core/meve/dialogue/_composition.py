"""The text of a small context: the question, what was said last, the facts in the order in which they were said."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from meve.dialogue.turns import Said
from meve.errors import QueryError
from meve.ports import TokenCounter
from meve.types import ContextPassage

LAST, BEFORE = "Last said:", "Said before:"
"""Headings of what was said last, and of facts."""

Fact = tuple[ContextPassage, Said]


@dataclass(frozen=True, slots=True, kw_only=True)
class Priority:
    """One of the three parts of a small context."""

    priority: int
    """1 for the question, 2 for what was said last, 3 for facts: the higher the number, the sooner it goes."""
    what: Literal["query", "recent", "facts"]
    tokens: int
    """By which the text grew with it."""
    turns: tuple[int, ...]
    """The places of its turns, in order."""
    left_out: int
    """How many turns, or pieces of them, had no room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """The text, and what stands in it."""

    text: str
    tokens: int
    recent: tuple[Said, ...]
    facts: tuple[Fact, ...]
    """In the order in which they were said."""
    squeezed: tuple[str, ...]
    """Ids of facts that had fitted by the sum, and don't fit in the text."""
    query_tokens: int
    recent_tokens: int


def last_said(
    query: str, recent: Sequence[Said], tokens: TokenCounter, max_tokens: int
) -> tuple[list[Said], list[Said]]:
    """What was said last, as far as it fits beside the question, and what doesn't; the oldest goes first.

    Raises:
        QueryError: the question alone exceeds the limit.
    """
    alone = tokens.count(query)
    if alone > max_tokens:
        raise QueryError(
            f"the query alone has {alone} tokens ({tokens.name}), of {max_tokens}: shorten it, or raise max_tokens; "
            "it is never cut"
        )
    first = len(recent)
    room = max_tokens - alone
    while first and room > 0:
        first -= 1
        room -= tokens.count(recent[first].shown)
    while first < len(recent) and tokens.count(_text(query, recent[first:], ())) > max_tokens:
        first += 1
    return list(recent[first:]), list(recent[:first])


def room_for_facts(query: str, recent: Sequence[Said], tokens: TokenCounter, max_tokens: int) -> int:
    """How many tokens are left for facts, at least 0."""
    return max(0, max_tokens - tokens.count(f"{_text(query, recent, ())}\n\n{BEFORE}\n"))


def compose(
    query: str, recent: Sequence[Said], facts: Sequence[Fact], tokens: TokenCounter, max_tokens: int
) -> Composed:
    """The text under its limit.

    Args:
        query: the question.
        recent: what was said last, as far as it fits.
        facts: best first; of those that don't fit after all the last goes first.
        tokens: counts.
        max_tokens: the limit.
    """
    kept = list(facts)
    while True:
        ordered = sorted(kept, key=lambda fact: (fact[1].turn, _piece(fact[1])))
        text = _text(query, recent, [said for _, said in ordered])
        count = tokens.count(text)
        if count <= max_tokens or not kept:
            break
        kept.pop()
    alone = tokens.count(query)
    return Composed(
        text=text,
        tokens=count,
        recent=tuple(recent),
        facts=tuple(ordered),
        squeezed=tuple(said.id for _, said in facts[len(kept) :]),
        query_tokens=alone,
        recent_tokens=tokens.count(_text(query, recent, ())) - alone,
    )


def _text(query: str, recent: Sequence[Said], facts: Sequence[Said]) -> str:
    blocks = [query]
    for heading, said in ((LAST, recent), (BEFORE, facts)):
        if said:
            blocks.append("\n".join([heading, *(each.shown for each in said)]))
    return "\n\n".join(blocks)


def _piece(said: Said) -> int:
    return int(said.id.partition(".")[2] or 0)
