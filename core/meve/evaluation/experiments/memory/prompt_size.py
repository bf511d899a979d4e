"""The prompt-size experiment: the prompt's size beside the full history, and whether early facts are still in it.

A turn is a user's message and the assistant's reply; both are added to memory, in one session. The user tells facts
among small talk. Before each turn, a prompt is composed for a question about an early fact, with a budget too large to
limit it. The question itself isn't added.
"""

from dataclasses import dataclass
from datetime import timedelta
from random import Random

from meve.evaluation.experiments.memory.environment import Environment, MemorySandbox, PlainEntry, PlainStore
from meve.evaluation.experiments.memory.memory_results import Tally
from meve.evaluation.experiments.memory.synthetic_facts import UserFact, make_facts
from meve.memory.policy import RecordSource
from meve.types import StageProgress

NAME = "prompt size"
MEMORY, FULL, WINDOW, PLAIN = "memory", "full history", "last 4 messages", "plain vectors, top 10, and last 4"
CAP = 16_384
"""The token budget of a prompt from memory."""
EARLY = 5
"""Facts of the first 1 / `EARLY` of the turns are early."""
VERBATIM, TOP = 4, 10
THERE, GROWTH = "early fact there, second half", "growth over the second half"
_BEFORE = (
    "I was out all morning and came back soaked.", "Before I forget it again:", "You asked about this last time.",
    "My sister called, and we talked for an hour.", "It has been a long week, with little sleep.",
    "There is something for your notes.", "We had soup, and then sat in the garden for a while.", "Listen,",
)  # fmt: skip
_AFTER = (
    "That is how it stands, as far as I know.", "I keep mixing it up with the others.", "Nobody had told me.",
    "Anyway, the kettle is on.", "I hope that helps you later.", "Well, such is life.", "The cat agrees, by the way.",
    "I will tell you when I hear more.",
)  # fmt: skip
_TALK = (
    "The rain has stopped at last, and the street smells of leaves.", "I finished the novel; the end was a let-down.",
    "Do you think that I should paint the hallway?", "The neighbours are practising the trumpet again.",
    "I slept badly, and the coffee doesn't help.", "We walked along the river until it got dark.",
)  # fmt: skip
_REPLIES = (
    "Thank you for telling me. I have made a note of it, and will come back to it when it matters.",
    "Understood. Is there anything else about it that I should know, or shall we go on with the plan for the week?",
    "That sounds like quite a day. I have kept what you said, so that you need not look it up again.",
    "Good to know. If it changes, tell me, and I will go by the new state of things.",
    "I see. Some people would mind that more than you do; it is good that you take it calmly.",
    "Noted. We can talk about it again whenever you like, today or another time.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A turn: the user's message, the assistant's reply, and the fact in the message, if any."""

    message: str
    reply: str
    fact: UserFact | None


def make_conversation(rng: Random, turns: int, user: str) -> list[Exchange]:
    """Return a conversation in which four of five turns tell a fact, the first one included."""
    facts = iter(make_facts(rng, turns - turns // 5, user))
    exchanges = []
    for n in range(turns):
        fact = next(facts) if n % 5 != 4 else None
        message = f"{rng.choice(_BEFORE)} {fact.text} {rng.choice(_AFTER)}" if fact else rng.choice(_TALK)
        exchanges.append(Exchange(message=message, reply=rng.choice(_REPLIES), fact=fact))
    return exchanges


def run_prompt_size(environment: Environment, progress: StageProgress) -> Tally:
    """Run the conversations, with a prompt at each turn."""
    tally = Tally(NAME, environment.seed)
    rng = environment.rng(NAME)
    sizes: dict[str, list[list[int]]] = {MEMORY: [], FULL: [], WINDOW: [], PLAIN: []}
    with environment.open_sandbox() as sandbox:
        for n in range(environment.sizes.talks):
            progress(NAME, n, environment.sizes.talks)
            user = f"user-{n}"
            exchanges = make_conversation(rng, environment.sizes.turns, user)
            sizes_by_system = _run_conversation(environment, sandbox, user, exchanges, rng, tally)
            for system, counts in sizes_by_system.items():
                sizes[system].append(counts)
    for system, all_counts in sizes.items():
        _tally_sizes(system, all_counts, environment.sizes.turns, tally)
    return tally


def _run_conversation(
    environment: Environment, sandbox: MemorySandbox, user: str, exchanges: list[Exchange], rng: Random, tally: Tally
) -> dict[str, list[int]]:
    """Return the token counts of a conversation's prompts by system, from the second turn on."""
    plain = PlainStore(environment.embedder)
    history: list[tuple[str, str]] = []
    counts: dict[str, list[int]] = {MEMORY: [], FULL: [], WINDOW: [], PLAIN: []}
    early = [e.fact for e in exchanges[: max(1, len(exchanges) // EARLY)] if e.fact]
    for n, exchange in enumerate(exchanges):
        if n:
            fact = rng.choice(early[:n])
            for system, text in _prompts(sandbox, plain, user, fact.question, history).items():
                counts[system].append(environment.tokens.count(text))
                if n >= len(exchanges) // 2:
                    tally.add(system, THERE, fact.text in text)
        _record_exchange(sandbox, plain, user, exchange, history)
    return counts


def _record_exchange(
    sandbox: MemorySandbox, plain: PlainStore, user: str, exchange: Exchange, history: list[tuple[str, str]]
) -> None:
    messages: tuple[tuple[str, str, RecordSource], ...] = (
        ("user", exchange.message, "chat_user"),
        ("assistant", exchange.reply, "chat_assistant"),
    )
    for role, text, source in messages:
        sandbox.memory.add(text, user_id=user, source=source, id=f"{len(history):04}", session_id="talk")
        plain.add([PlainEntry(id=str(len(history)), text=text, user=user)])
        history.append((role, text))
    sandbox.clock.advance(timedelta(minutes=1))


def _prompts(
    sandbox: MemorySandbox, plain: PlainStore, user: str, question: str, history: list[tuple[str, str]]
) -> dict[str, str]:
    lines = [f"{role}: {text}" for role, text in history]
    nearest = [entry.text for entry in plain.search(question, TOP)]
    last = lines[-VERBATIM:]
    prompt = sandbox.memory.prompt(question, user_id=user, history=history, max_tokens=CAP)
    return {
        MEMORY: prompt.text,
        FULL: "\n".join([*lines, question]),
        WINDOW: "\n".join([*last, question]),
        PLAIN: "\n".join([*nearest, *last, question]),
    }


def _tally_sizes(system: str, counts: list[list[int]], turns: int, tally: Tally) -> None:
    """Tally the sizes at some turns, and the growth from the tenth before the middle to the last tenth."""
    for turn in sorted({max(2, turns // 10), turns // 4, turns // 2, turns}):
        for sizes in counts:
            tally.add(system, f"tokens at turn {turn}", float(sizes[turn - 2]))
    tenth = max(1, turns // 10)
    for sizes in counts:
        middle, end = sizes[turns // 2 - tenth : turns // 2], sizes[-tenth:]
        tally.add(system, GROWTH, sum(end) / sum(middle) - 1)
        tally.add(system, "largest, of the cap" if system == MEMORY else "largest, of memory's cap", max(sizes) / CAP)
    points = {float(n + 2): sum(c[n] for c in counts) / len(counts) for n in range(turns - 1)}
    tally.add_curve(system, "tokens", "turn", points)
