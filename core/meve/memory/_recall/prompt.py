"""Composes a prompt: system text, standing wishes, facts, a summary of older turns, the last turns, the question.

Source: MemoryArchitect, section E. Whatever doesn't fit is cut: first the summary, then the facts, then the last turns
from the oldest on, at last the standing wishes. System text and question are never cut.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from meve._quoting import mark_forgeries
from meve.conversation.turn import Turn, TurnRecord, parse_turn
from meve.errors import ConfigurationError, ValidationError
from meve.memory._maintenance.summaries import Summariser
from meve.memory._recall.searcher import Recall
from meve.memory.records import MemoryRecord, check_text
from meve.ports import TokenCounter

WISHES = "The user's standing wishes, to respect in every answer (of two that disagree, the later one holds):"
FACTS, EARLIER, RECENT = "What is remembered:", "Earlier, in brief:", "The last turns:"
HEADINGS = (WISHES, FACTS, EARLIER, RECENT)
STANDING_TOKENS = 256
"""The token budget of the memories that stand in every prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBudget:
    """The division of a prompt's tokens."""

    max_tokens: int = 2_048
    headroom: int = 0
    """Tokens kept free for the answer."""
    standing_tokens: int = STANDING_TOKENS
    """Maximum number of tokens of the user's standing wishes: instructions and pinned memories."""
    facts_share: float = 0.5
    """Maximum share of facts in the tokens that system text and question leave, in [0, 1]."""
    verbatim_turns: int = 4
    """Number of turns that are kept verbatim."""
    summary_share: float = 0.25
    """Maximum share of the summary of older turns in the same tokens, in [0, 1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt and its parts."""

    text: str
    tokens: int
    system: str
    standing: str
    """The user's standing wishes."""
    facts: str
    summary: str
    """Summary of the older turns."""
    turns: tuple[Turn, ...]
    """The last turns, verbatim."""
    query: str
    recall: Recall
    left_out: Mapping[str, int]
    """The number of `turns`, `facts` and `standing` wishes that did not fit."""


def parse_history(history: Sequence[TurnRecord]) -> list[Turn]:
    """Convert records to turns; plain texts alternate between user and assistant, the user first.

    Raises:
        ValidationError: a record in an unknown format, or without text.
    """
    if isinstance(history, str | Mapping):
        raise ValidationError(f"history must be a list of turns, got {history!r:.60}")
    turns = []
    for n, record in enumerate(history):
        turn = parse_turn(record, n)
        check_text(turn.text, f"turn {n}")
        turns.append(replace(turn, speaker=("user", "assistant")[n % 2]) if isinstance(record, str) else turn)
    return turns


def count_room(system: str, query: str, budget: PromptBudget, tokens: TokenCounter) -> int:
    """Return the number of tokens that system text and question leave.

    Raises:
        ConfigurationError: system text and question alone don't fit.
    """
    limit = budget.max_tokens - budget.headroom
    room = limit - tokens.count(system) - tokens.count(query)
    if room < 0:
        raise _too_small(limit - room, limit)
    return room


def fit_wishes(
    records: Sequence[MemoryRecord], limit: int, count: Callable[[Sequence[str]], Sequence[int]]
) -> list[MemoryRecord]:
    """Return the standing memories that fit a token budget, in their order; newer ones go first.

    Args:
        records: the memories, the oldest first.
        limit: the budget, in tokens.
        count: counts the tokens of texts.
    """
    shown = []
    for record, tokens in reversed(list(zip(records, count([format_wish(r) for r in records]), strict=True))):
        if tokens <= limit:
            limit -= tokens
            shown.append(record)
    return shown[::-1]


def format_wish(record: MemoryRecord) -> str:
    """Return a standing memory as one line."""
    return f"- {mark_forgeries(' '.join(record.text.split()), numbers=True, tags=True, headings=HEADINGS)}"


def summarise_turns(
    history: Sequence[Turn], limit: int, budget: PromptBudget, tokens: TokenCounter, summariser: Summariser
) -> str:
    """Return a summary, of at most `limit` tokens, of the turns that the prompt doesn't contain verbatim."""
    older = list(history[: len(history) - budget.verbatim_turns]) if len(history) > budget.verbatim_turns else []
    if not older or limit < 1:
        return ""
    summary = summariser.summarise([turn.text for turn in older])
    words = summary.split()
    count = len(words)
    while words and tokens.count(" ".join(words)) > limit:
        words = words[: max(0, int(len(words) * 0.9) - 1)]
    return summary if len(words) == count else " ".join(words) + (" …" if words else "")


def compose_prompt(
    recall: Recall,
    history: Sequence[Turn],
    *,
    wishes: Sequence[MemoryRecord],
    summary: str,
    system: str,
    query: str,
    budget: PromptBudget,
    tokens: TokenCounter,
) -> Prompt:
    """Return a prompt within its budget.

    A line of a memory or a turn that imitates a heading, a number, a role or a speaker is marked.

    Pass a summary that was made before the recall, since recalled memories may expire while a summariser runs.
    """
    recent = list(history[-budget.verbatim_turns :]) if budget.verbatim_turns else []
    standing = [format_wish(record) for record in wishes]
    known = {record.id for record in wishes}
    marked = partial(
        mark_forgeries, numbers=True, tags=True, paragraphs=True, headings=[*HEADINGS, *(t.label for t in history)]
    )
    facts = [marked(p.passage.prompt_text) for p in recall.passages if p.passage.id not in known]
    facts = [f"[{n}] {fact}" for n, fact in enumerate(facts, 1)]

    def join() -> str:
        blocks = [
            system,
            "\n".join([WISHES, *standing]) if standing else "",
            "\n".join([FACTS, *facts]) if facts else "",
            f"{EARLIER}\n{marked(summary)}" if summary else "",
            "\n".join([RECENT, *(turn.label + marked(turn.text) for turn in recent)]) if recent else "",
            query,
        ]
        return "\n\n".join(block for block in blocks if block)

    limit = budget.max_tokens - budget.headroom
    dropped = 0
    while (count := tokens.count(join())) > limit:
        if summary:
            summary = ""
        elif facts:
            facts.pop()
            dropped += 1
        elif recent:
            recent.pop(0)
        elif standing:
            standing.pop(0)
        else:
            raise _too_small(count, limit)
    return Prompt(
        text=join(),
        tokens=count,
        system=system,
        standing="\n".join(standing),
        facts="\n".join(facts),
        summary=summary,
        turns=tuple(recent),
        query=query,
        recall=recall,
        left_out={
            "turns": 0 if summary else len(history) - len(recent),
            "facts": dropped,
            "standing": len(recall.standing) - len(standing),
        },
    )


def _too_small(needed: int, limit: int) -> ConfigurationError:
    return ConfigurationError(
        f"system text and question take {needed} tokens, and max_tokens allows {limit}: raise it, or shorten the texts"
    )
