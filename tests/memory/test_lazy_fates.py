"""A search compares only what it may show, and finds what it would find if it compared all candidates."""

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from meve.memory._contradiction.updates import RuleUpdateJudge
from meve.memory._maintenance.deduplication import DuplicateJudge
from meve.memory._recall import searcher
from meve.memory._recall.memory_passage import MemoryPassage
from meve.memory._recall.query import make_query
from meve.memory._recall.scoring import PolicyScorer
from meve.memory.records import user_key
from meve.pipeline.pipeline import Pipeline

CITIES = ("Berlin", "Hamburg", "Oslo", "Lyon", "Rome", "Milan")
NAMES = ("Anna", "Ben", "Chloe", "Dario")
TEMPLATES = (
    "I live in {city}.", "I moved to {city}.", "My sister {name} lives in {city}.", "My boss is {name}.",
    "I have {n} cats.", "I weigh {n} kg.", "The standup is at {n}:30.", "I like {city}.", "I don't like {city}.",
    "I no longer have cats.", "My flight to {city} leaves at {n}:15.", "My dentist is Dr. {name}.",
)  # fmt: skip
QUESTIONS = (
    "Where do I live?", "How many cats do I have?", "When is the standup?", "Who is my boss?", "Do I like {city}?",
    "Where does {name} live?", "When does the flight to {city} leave?", "What do you know about me?",
)  # fmt: skip


def say(rng, template):
    return template.format(city=rng.choice(CITIES), name=rng.choice(NAMES), n=rng.randint(1, 12))


def tell(memory, clock, rng):
    """Tell a story of 60 statements, some of them twice, by the user and by documents."""
    for _ in range(60):
        text = say(rng, rng.choice(TEMPLATES))
        source = rng.choice(["chat_user", "chat_user", "doc"])
        for _ in range(rng.choice([1, 1, 2])):
            memory.add(text, user_id="alice", source=source, policy_class=rng.choice(["factual", "canonical"]))
            clock.advance(timedelta(hours=rng.randint(0, 30)))


def ask(memory, rng):
    """Ask 40 questions, and return what was found in each."""
    found = []
    for _ in range(40):
        options = {"limit": rng.choice([1, 3, 10, None]), "max_tokens": rng.choice([40, 120, 512])}
        recall = memory._searcher.look(memory_query(memory, say(rng, rng.choice(QUESTIONS)), **options))
        found.append((recall.text, [(r.id, p.score) for r, p in zip(recall.records, recall.passages, strict=True)]))
    return found


def memory_query(memory, text, **options):
    return make_query(text, "alice", policy=memory.policy, now=memory.clock.now(), **options)


@pytest.mark.parametrize("seed", range(4))
def test_random_stories_are_recalled_as_if_all_candidates_were_compared(static_memory, clock, monkeypatch, seed):
    tell(static_memory, clock, random.Random(seed))
    compared = []
    judge = DuplicateJudge.__call__
    monkeypatch.setattr(DuplicateJudge, "__call__", lambda *pair: compared.append(1) or judge(*pair))
    found = ask(static_memory, random.Random(seed))
    lazily = len(compared)
    static_memory._searcher.cache.drop(user_key("alice"))
    monkeypatch.setattr(searcher, "Pipeline", lambda **parts: Pipeline(**{**parts, "compares_packed": False}))
    assert found == ask(static_memory, random.Random(seed))
    all_of_them = len(compared) - lazily
    assert lazily < 0.75 * all_of_them, (lazily, all_of_them)


@pytest.mark.parametrize("better", [0, 1])
def test_of_two_memories_of_one_moment_the_one_with_the_better_score_prevails(static_memory, clock, better):
    texts = ("I live in Berlin.", "I live in Hamburg.")
    records = [static_memory.add(text, user_id="alice") for text in texts]
    scored = [replace(r, reflection=90.0 if n == better else 50.0) for n, r in enumerate(records)]
    one, other = (MemoryPassage(id=r.id, text=r.text, record=r) for r in (scored[better], scored[1 - better]))
    judge = DuplicateJudge(PolicyScorer(policy=static_memory.policy, now=clock.now()), (), RuleUpdateJudge())
    assert (judge.foresee(one, other), judge.foresee(other, one)) == ("prevails", "yields")
