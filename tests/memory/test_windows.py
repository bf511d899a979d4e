"""Turns of conversations: chit-chat far from anything that is named stays out, on request."""

import sys
from datetime import timedelta

import pytest

from meve.components.entities.patterns import PatternEntities
from meve.errors import ValidationError
from meve.memory import GovernedMemory
from meve.memory._recall.important_turns import ImportantTurns, cached_anchor_test
from meve.testing.fakes import FakeClock, WordCounter, WordEmbedder
from meve.types import Candidate, Passage, Query


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def memory(tmp_path, clock):
    with GovernedMemory.open(tmp_path / "m.db", embedder=WordEmbedder(), tokens=WordCounter(), clock=clock) as made:
        yield made


def tell(memory, clock, texts, *, session="s", user="anna", source="chat_user"):
    for n, text in enumerate(texts):
        memory.add(text, user_id=user, source=source, session_id=session, id=f"{session}{n}")
        clock.advance(timedelta(minutes=1))


def ids(memory, **search):
    return sorted(r.id for r in memory.search("zebra", user_id="anna", limit=None, **search).records)


TALK = [f"zebra goes {word} {word}" for word in ("apple", "cat", "dog", "egg", "fig", "hat")]


def test_only_turns_near_one_that_names_something(memory, clock):
    """So many before and after, in their order of time; without a window all of them."""
    tell(memory, clock, [*TALK[:4], "zebra in Oslo", *TALK[4:]])
    assert ids(memory) == [f"s{n}" for n in range(7)]
    assert ids(memory, window=0) == ["s4"]
    assert ids(memory, window=1) == ["s3", "s4", "s5"]
    assert memory.search("zebra", user_id="anna", window=1).trace.phases[0].settings["window"] == 1


def test_conversations_are_apart(memory, clock):
    """What is named in one keeps no turn of another."""
    tell(memory, clock, ["zebra in Oslo"], session="a")
    tell(memory, clock, TALK[:2], session="b")
    assert ids(memory, window=5) == ["a0"]


def test_what_is_no_turn_stays(memory, clock):
    """Documents and preferences are no chit-chat."""
    tell(memory, clock, TALK[:1])
    tell(memory, clock, ["zebra so and so"], session="doc", source="doc")
    assert ids(memory, window=3) == ["doc0"]


def test_the_first_places_are_not_lost_to_chit_chat(memory, clock):
    """As many come as were asked for, if there are."""
    tell(memory, clock, ["zebra zebra zebra zebra"] + TALK[:3] + ["ok"] * 3 + ["zebra in Oslo, zoo in 1999"])
    recall = memory.search("zebra", user_id="anna", window=0, limit=1)
    assert [r.id for r in recall.records] == ["s7"]


def test_chit_chat_takes_no_place():
    """However much of it is nearer to the question."""
    passages = [Passage(id=str(n), text="t") for n in range(60)]

    class Inner:
        name = "memory"

        def search(self, query, k):
            return [Candidate(passage=p, origin="memory") for p in passages[:k]]

    found = ImportantTurns(Inner(), frozenset(map(str, range(50)))).search(Query(text="q"), 5)
    assert [c.id for c in found] == ["50", "51", "52", "53", "54"]


def test_expired_turns_and_other_users_keep_nothing(memory, clock):
    """What is gone names nothing any more."""
    memory.add("zebra in Oslo", user_id="anna", source="chat_user", session_id="s", id="gone", ttl=timedelta(minutes=1))
    memory.add("zebra in Rome", user_id="bob", source="chat_user", session_id="s", id="bob")
    tell(memory, clock, TALK[:1])
    assert ids(memory, window=3) == []


def test_erased_turns_keep_nothing(memory, clock):
    """Neither themselves nor those around them, though they were found a moment ago."""
    tell(memory, clock, [*TALK[:2], "zebra in Oslo"])
    assert ids(memory, window=1) == ["s1", "s2"]
    memory.delete("s2", user_id="anna")
    assert ids(memory, window=1) == []
    tell(memory, clock, ["zebra in Rome", *TALK[:1]], session="t")
    assert ids(memory, window=1) == ["t0", "t1"]
    memory.forget_user(user_id="anna")
    assert ids(memory, window=1) == ids(memory) == []


def test_whether_a_text_names_something_is_asked_once_and_the_text_is_not_kept():
    """It may be erased, and nothing of it is to stay."""
    asked = []

    class Counted:
        name = "counted"

        def detect(self, texts):
            asked.append(len(texts))
            return PatternEntities().detect(texts)

    names = cached_anchor_test(Counted())
    text = " ".join(["zebra in Oslo", str(len(asked))])
    held = sys.getrefcount(text)
    assert names(text)
    assert names(text)
    assert not names("zebra")
    assert asked == [1, 1]
    assert sys.getrefcount(text) == held


@pytest.mark.parametrize("wrong", [-1, 1.5, "x", True])
def test_a_window_is_a_number_of_turns(memory, wrong):
    """Or None."""
    with pytest.raises(ValidationError, match="window"):
        memory.search("zebra", user_id="anna", window=wrong)


def test_prompts_take_it_too(memory, clock):
    """As every option of a search."""
    tell(memory, clock, ["zebra in Oslo", *TALK])
    text = memory.prompt("zebra?", user_id="anna", window=0).text
    assert "Oslo" in text
    assert "goes" not in text
