"""A hundred turns: how large is the prompt beside the full history, and is what was told early still in it?

A turn is what the user says and what the assistant replies; both go into memory, in one session. The user tells facts
among small talk. Before each turn a question about an earlier one is put, and the prompt for it made from memory, with
a budget so large that it is not what holds the size down. The question itself is not kept.
"""

from dataclasses import dataclass
from datetime import timedelta
from random import Random

from meve.evaluation.experiments.memory.environment import Entry, Plain, Scene, Stage
from meve.evaluation.experiments.memory.facts import Fact, facts
from meve.evaluation.experiments.memory.memory_results import Tally
from meve.evaluation.run import Progress
from meve.memory._recall.prompt import Turn
from meve.memory.policy import Source

NAME = "prompt size"
MEMORY, FULL, WINDOW, PLAIN = "memory", "full history", "last 4 messages", "plain vectors, top 10, and last 4"
CAP = 16_384
"""Of a prompt from memory."""
EARLY = 5
"""The first one in so many turns are early."""
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
    """A turn: what the user says and what the assistant replies; and what of it is a fact."""

    said: str
    reply: str
    fact: Fact | None


def talk(rng: Random, turns: int) -> list[Exchange]:
    """A conversation in which four of five turns tell a fact, the first one among them."""
    known = iter(facts(rng, turns - turns // 5))
    made = []
    for n in range(turns):
        fact = next(known) if n % 5 != 4 else None
        said = f"{rng.choice(_BEFORE)} {fact.text} {rng.choice(_AFTER)}" if fact else rng.choice(_TALK)
        made.append(Exchange(said=said, reply=rng.choice(_REPLIES), fact=fact))
    return made


def growth(stage: Stage, progress: Progress) -> Tally:
    """Talk, and make a prompt at each turn."""
    tally = Tally(NAME, stage.seed)
    rng = stage.rng(NAME)
    sizes: dict[str, list[list[int]]] = {MEMORY: [], FULL: [], WINDOW: [], PLAIN: []}
    with stage.scene() as scene:
        for n in range(stage.sizes.talks):
            progress(NAME, n, stage.sizes.talks)
            made = _one(stage, scene, f"user-{n}", talk(rng, stage.sizes.turns), rng, tally)
            for system, counts in made.items():
                sizes[system].append(counts)
    for system, every in sizes.items():
        _told(system, every, stage.sizes.turns, tally)
    return tally


def _one(
    stage: Stage, scene: Scene, user: str, exchanges: list[Exchange], rng: Random, tally: Tally
) -> dict[str, list[int]]:
    """One talk: the sizes of its prompts by system, from the second turn on."""
    plain = Plain(stage.embedder)
    history: list[Turn] = []
    counts: dict[str, list[int]] = {MEMORY: [], FULL: [], WINDOW: [], PLAIN: []}
    early = [e.fact for e in exchanges[: max(1, len(exchanges) // EARLY)] if e.fact]
    for n, exchange in enumerate(exchanges):
        if n:
            wanted = rng.choice(early[:n])
            for system, text in _prompts(scene, plain, user, wanted.question, history).items():
                counts[system].append(stage.tokens.count(text))
                if n >= len(exchanges) // 2:
                    tally.add(system, THERE, wanted.text in text)
        _keep(scene, plain, user, exchange, history)
    return counts


def _keep(scene: Scene, plain: Plain, user: str, exchange: Exchange, history: list[Turn]) -> None:
    spoken: tuple[tuple[str, str, Source], ...] = (
        ("user", exchange.said, "chat_user"),
        ("assistant", exchange.reply, "chat_assistant"),
    )
    for role, text, source in spoken:
        scene.memory.add(text, user_id=user, source=source, id=f"{len(history):04}", session_id="talk")
        plain.add([Entry(id=str(len(history)), text=text, user=user)])
        history.append((role, text))
    scene.clock.advance(timedelta(minutes=1))


def _prompts(scene: Scene, plain: Plain, user: str, question: str, history: list[Turn]) -> dict[str, str]:
    said = [f"{role}: {text}" for role, text in history]
    found = [entry.text for entry in plain.search(question, TOP)]
    last = said[-VERBATIM:]
    made = scene.memory.prompt(question, user_id=user, history=history, max_tokens=CAP)
    return {
        MEMORY: made.text,
        FULL: "\n".join([*said, question]),
        WINDOW: "\n".join([*last, question]),
        PLAIN: "\n".join([*found, *last, question]),
    }


def _told(system: str, counts: list[list[int]], turns: int, tally: Tally) -> None:
    """Sizes at some turns, and how much the last tenth is above the tenth before the middle."""
    for at in sorted({max(2, turns // 10), turns // 4, turns // 2, turns}):
        for mine in counts:
            tally.add(system, f"tokens at turn {at}", float(mine[at - 2]))
    tenth = max(1, turns // 10)
    for mine in counts:
        middle, end = mine[turns // 2 - tenth : turns // 2], mine[-tenth:]
        tally.add(system, GROWTH, sum(end) / sum(middle) - 1)
        tally.add(system, "largest, of the cap" if system == MEMORY else "largest, of memory's cap", max(mine) / CAP)
    points = {float(n + 2): sum(c[n] for c in counts) / len(counts) for n in range(turns - 1)}
    tally.draw(system, "tokens", "turn", points)
