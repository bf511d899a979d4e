"""Composes a prompt: system text, standing wishes, facts, a summary of older turns, the last turns, the question.

Source: MemoryArchitect, section E. Whatever doesn't fit is cut: first the summary, then the facts, then the last turns
from the oldest on, at last the standing wishes. System text and question are never cut.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from meve._quoting import mark_forgeries
from meve.conversation.turn import Turn, TurnRecord, parse_turn
from meve.errors import ConfigurationError, ValidationError, show
from meve.memory._maintenance.summaries import Summariser
from meve.memory._recall.searcher import Recall
from meve.memory.records import MemoryRecord, check_text
from meve.pipeline.phases.budget import list_passages
from meve.pipeline.query_check import check_query
from meve.ports import TokenCounter

logger = logging.getLogger("meve")
WISHES = "The user's standing wishes, to respect in every answer (of two that disagree, the later one holds):"
SHORT_WISHES = "The user's standing wishes:"
"""The heading where the longer one leaves no room for a wish."""
FACTS, EARLIER, RECENT = "What is remembered:", "Earlier, in brief:", "The last turns:"
HEADINGS = (WISHES, SHORT_WISHES, FACTS, EARLIER, RECENT)
_MOST = 10**9
"""The largest number in a budget."""
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

    def __post_init__(self) -> None:
        """Raise ConfigurationError for a value out of range."""
        least = {"max_tokens": 1, "headroom": 0, "standing_tokens": 0, "verbatim_turns": 0}
        for name, minimum in least.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= _MOST:
                raise ConfigurationError(
                    f"{name} must be a whole number from {minimum} to {_MOST:,}, got {show(value, 40)}"
                )
        for name in ("facts_share", "summary_share"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise ConfigurationError(f"{name} must be a number between 0 and 1, got {value!r:.40}")


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
    standing_left_out: tuple[str, ...] = ()
    """The ids of the standing wishes that did not fit, the oldest first."""


def parse_history(history: Sequence[TurnRecord]) -> list[Turn]:
    """Convert records to turns; plain texts alternate between user and assistant, the user first.

    Raises:
        ValidationError: a record in an unknown format, or without text.
    """
    if isinstance(history, str | Mapping) or not isinstance(history, Sequence):
        raise ValidationError(f"history must be a list of turns, got {history!r:.60}")
    turns = []
    for n, record in enumerate(history):
        turn = parse_turn(record, n)
        check_text(turn.text, f"turn {n}")
        turns.append(replace(turn, speaker=("user", "assistant")[n % 2]) if isinstance(record, str) else turn)
    return turns


def share_budget(budget: PromptBudget | None, max_tokens: int) -> PromptBudget:
    """Return the budget of one prompt of at most `max_tokens`.

    Raises:
        ConfigurationError: it is no budget, or `max_tokens` is out of range.
    """
    if budget is not None and not isinstance(budget, PromptBudget):
        raise ConfigurationError(f"budget must be a PromptBudget, got {budget!r:.80}: PromptBudget(standing_tokens=…)")
    return replace(budget or PromptBudget(), max_tokens=max_tokens)


def count_room(system: str, query: str, budget: PromptBudget, tokens: TokenCounter) -> int:
    """Return the number of tokens that system text and question leave.

    Raises:
        ConfigurationError: system text and question alone don't fit.
    """
    check_query(query)
    if not isinstance(system, str):
        raise ConfigurationError(f"system must be a string, got {system!r:.80}")
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


class LeftOutNote:
    """Logs, the first time, that standing wishes did not fit."""

    def __init__(self) -> None:
        self._is_done = False

    def __call__(self, count: int) -> None:
        """Note how many did not fit."""
        if count and not self._is_done:
            self._is_done = True
            logger.warning(
                "%d of a user's standing wishes did not fit into a prompt: raise max_tokens or standing_tokens, "
                "shorten the wishes, or erase some; this is logged once",
                count,
            )


def choose_wishes(
    records: Sequence[MemoryRecord], system: str, query: str, budget: PromptBudget, tokens: TokenCounter
) -> tuple[str, list[MemoryRecord]]:
    """Return the heading of the standing memories, and those that fit beside system text and question.

    The short heading is used where more of them fit beneath it.

    Args:
        records: the memories, the oldest first.
        system: the system text.
        query: the question.
        budget: the budget.
        tokens: counts tokens.
    """
    fitting = []
    for heading in (WISHES, SHORT_WISHES):
        taken = tokens.count("\n\n".join(block for block in (system, heading, query) if block))
        room = budget.max_tokens - budget.headroom - taken
        fitting.append((heading, fit_wishes(records, min(budget.standing_tokens, room), tokens.count_many)))
    return max(fitting, key=lambda each: len(each[1]))


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
    heading: str,
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
    shown = list(wishes)
    known = {record.id for record in wishes}
    marked = partial(
        mark_forgeries, numbers=True, tags=True, paragraphs=True, headings=[*HEADINGS, *(t.label for t in history)]
    )
    facts = [p.passage for p in recall.passages if p.passage.id not in known]
    texts = [marked(passage.prompt_text) for passage in facts]

    def list_facts() -> str:
        return "\n".join(list_passages(facts, texts[: len(facts)], citations=recall.is_numbered))

    def join() -> str:
        blocks = [
            system,
            "\n".join([heading, *map(format_wish, shown)]) if shown else "",
            f"{FACTS}\n{list_facts()}" if facts else "",
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
        elif shown:
            shown.pop(0)
        else:
            raise _too_small(count, limit)
    return Prompt(
        text=join(),
        tokens=count,
        system=system,
        standing="\n".join(map(format_wish, shown)),
        facts=list_facts(),
        summary=summary,
        turns=tuple(recent),
        query=query,
        recall=recall,
        left_out={
            "turns": 0 if summary else len(history) - len(recent),
            "facts": dropped,
            "standing": len(recall.standing) - len(shown),
        },
        standing_left_out=tuple(record.id for record in recall.standing if record not in shown),
    )


def _too_small(needed: int, limit: int) -> ConfigurationError:
    return ConfigurationError(
        f"system text and question take {needed} tokens, and max_tokens allows {limit}: raise it, or shorten the texts"
    )
