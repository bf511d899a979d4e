"""What goes into a prompt: system text, numbered facts, older turns in brief, the last ones verbatim, the question.

Source: MemoryArchitect, section E. Of what doesn't fit the lowest goes first: older turns, then facts, then the last
turns from the oldest on. System text and question are never cut.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from meve.errors import ConfigurationError, ValidationError
from meve.memory._maintenance.summaries import Summariser
from meve.memory._recall.searcher import Recall
from meve.memory.records import checked_text
from meve.ports import TokenCounter

Turn: TypeAlias = tuple[str, str]
"""Who speaks, and what: ("user", "…"), ("assistant", "…")."""

FACTS, EARLIER, RECENT = "What is remembered:", "Earlier, in brief:", "The last turns:"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBudget:
    """How a prompt's tokens are shared."""

    max_tokens: int = 2_048
    headroom: int = 0
    """Kept free for the answer."""
    facts: float = 0.5
    """The most that facts may take of what system text and question leave, in [0, 1]."""
    verbatim: int = 4
    """Turns that are kept word for word."""
    earlier: float = 0.25
    """The most that older turns may take of it, in [0, 1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt, and what it is made of."""

    text: str
    tokens: int
    system: str
    facts: str
    earlier: str
    turns: tuple[Turn, ...]
    """The last ones, word for word."""
    query: str
    recall: Recall
    left_out: Mapping[str, int]
    """How many turns, and how many facts, had no room."""


def parse_history(history: Sequence[Turn | Mapping[str, str] | str]) -> list[Turn]:
    """Turns as pairs; plain texts alternate, the user first.

    Raises:
        ValidationError: something else.
    """
    if isinstance(history, str | Mapping):
        raise ValidationError(f"the history is {history!r:.60}: give a list of turns")
    made: list[Turn] = []
    for n, turn in enumerate(history):
        if isinstance(turn, str):
            made.append((("user", "assistant")[n % 2], checked_text(turn, f"turn {n}")))
        elif isinstance(turn, Mapping) and {"role", "content"} <= turn.keys():
            made.append((str(turn["role"]), checked_text(turn["content"], f"turn {n}")))
        elif isinstance(turn, tuple | list) and len(turn) == 2:
            made.append((str(turn[0]), checked_text(turn[1], f"turn {n}")))
        else:
            raise ValidationError(f"turn {n} is {turn!r:.60}: give (role, text), or a text")
    return made


def room_for_facts(system: str, query: str, budget: PromptBudget, tokens: TokenCounter) -> int:
    """How many tokens facts may take.

    Raises:
        ConfigurationError: system text and question alone don't fit.
    """
    return max(1, int(budget.facts * _room(system, query, budget, tokens)))


def summarise_turns(
    history: Sequence[Turn], *, system: str, query: str, budget: PromptBudget, tokens: TokenCounter, summariser: Summariser
) -> str:
    """The turns that don't stand in a prompt word for word, in a few words.

    Raises:
        ConfigurationError: system text and question alone don't fit.
    """
    older = list(history[: len(history) - budget.verbatim]) if len(history) > budget.verbatim else []
    return _brief(older, int(budget.earlier * _room(system, query, budget, tokens)), tokens, summariser)


def compose_prompt(
    recall: Recall,
    history: Sequence[Turn],
    *,
    earlier: str,
    system: str,
    query: str,
    budget: PromptBudget,
    tokens: TokenCounter,
) -> Prompt:
    """A prompt within its budget.

    `earlier` is what `summarise_turns` made: before the facts were recalled, since making it may last longer than they do.

    Raises:
        ConfigurationError: system text and question alone don't fit.
    """
    recent = list(history[-budget.verbatim :]) if budget.verbatim else []
    facts = [f"[{n}] {p.passage.prompt_text}" for n, p in enumerate(recall.passages, 1)]

    def whole() -> str:
        blocks = [
            system,
            "\n".join([FACTS, *facts]) if facts else "",
            f"{EARLIER}\n{earlier}" if earlier else "",
            f"{RECENT}\n{_spoken(recent)}" if recent else "",
            query,
        ]
        return "\n\n".join(block for block in blocks if block)

    most = budget.max_tokens - budget.headroom
    dropped = 0
    while (count := tokens.count(whole())) > most:
        if earlier:
            earlier = ""
        elif facts:
            facts.pop()
            dropped += 1
        elif recent:
            recent.pop(0)
        else:
            raise _too_small(count, most)
    return Prompt(
        text=whole(),
        tokens=count,
        system=system,
        facts="\n".join(facts),
        earlier=earlier,
        turns=tuple(recent),
        query=query,
        recall=recall,
        left_out={"turns": 0 if earlier else len(history) - len(recent), "facts": dropped},
    )


def _room(system: str, query: str, budget: PromptBudget, tokens: TokenCounter) -> int:
    most = budget.max_tokens - budget.headroom
    left = most - tokens.count(system) - tokens.count(query)
    if left < 0:
        raise _too_small(most - left, most)
    return left


def _brief(turns: Sequence[Turn], most: int, tokens: TokenCounter, summariser: Summariser) -> str:
    if not turns or most < 1:
        return ""
    made = summariser.summarise([text for _, text in turns])
    words = made.split()
    while words and tokens.count(" ".join(words)) > most:
        words = words[: max(0, int(len(words) * 0.9) - 1)]
    return made if len(words) == len(made.split()) else " ".join(words) + (" …" if words else "")


def _spoken(turns: Sequence[Turn]) -> str:
    return "\n".join(f"{role}: {text}" for role, text in turns)


def _too_small(needed: int, most: int) -> ConfigurationError:
    return ConfigurationError(f"system text and question take {needed} tokens of {most}: raise max_tokens, or cut them")
