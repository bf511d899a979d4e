"""The window of a search: turns of conversations far from any anchor are left out."""

import sys
from datetime import timedelta

import pytest

from meve.components.entities.patterns import PatternEntities
from meve.errors import ValidationError
from meve.memory._recall.important_turns import ImportantTurns, cached_anchor_test
from meve.types import Candidate, Passage, Query
from tests.memories import open_memory


@pytest.fixture
def memory(file, clock):
    with open_memory(file, clock=clock) as opened:
        yield opened


def add_turns(memory, clock, texts, *, session="s", user="anna", source="chat_user"):
    for n, text in enumerate(texts):
        memory.add(text, user_id=user, source=source, session_id=session, id=f"{session}{n}")
        clock.advance(timedelta(minutes=1))


def search_ids(memory, **search):
    return sorted(r.id for r in memory.search("zebra", user_id="anna", limit=None, **search).records)


PLAIN_TURNS = [f"zebra goes {word} {word}" for word in ("apple", "cat", "dog", "egg", "fig", "hat")]


def test_window_keeps_only_turns_near_an_anchor(memory, clock):
    add_turns(memory, clock, [*PLAIN_TURNS[:4], "zebra in Oslo", *PLAIN_TURNS[4:]])
    assert search_ids(memory) == [f"s{n}" for n in range(7)]
    assert search_ids(memory, window=0) == ["s4"]
    assert search_ids(memory, window=1) == ["s3", "s4", "s5"]
    assert memory.search("zebra", user_id="anna", window=1).trace.phases[0].settings["window"] == 1


def test_turns_of_one_moment_stand_in_the_order_of_recording(memory, clock):
    texts = [*PLAIN_TURNS[:4], "zebra in Oslo", *PLAIN_TURNS[4:]]
    for n, text in enumerate(texts):
        memory.add(text, user_id="anna", session_id="s", id=f"s{(n * 3) % 7}", created_at=clock.now())
    assert search_ids(memory, window=1) == sorted(f"s{(n * 3) % 7}" for n in (3, 4, 5))


def test_anchor_keeps_no_turn_of_another_session(memory, clock):
    add_turns(memory, clock, ["zebra in Oslo"], session="a")
    add_turns(memory, clock, PLAIN_TURNS[:2], session="b")
    assert search_ids(memory, window=5) == ["a0"]


def test_window_keeps_records_that_are_no_turns(memory, clock):
    add_turns(memory, clock, PLAIN_TURNS[:1])
    add_turns(memory, clock, ["zebra so and so"], session="doc", source="doc")
    assert search_ids(memory, window=3) == ["doc0"]


def test_limit_counts_important_turns_only(memory, clock):
    add_turns(
        memory, clock, ["zebra zebra zebra zebra"] + PLAIN_TURNS[:3] + ["ok"] * 3 + ["zebra in Oslo, zoo in 1999"]
    )
    recall = memory.search("zebra", user_id="anna", window=0, limit=1)
    assert [r.id for r in recall.records] == ["s7"]


def test_source_returns_k_candidates_besides_excluded_ones():
    passages = [Passage(id=str(n), text="t") for n in range(60)]

    class Inner:
        name = "memory"

        def search(self, query, k):
            return [Candidate(passage=p, origin="memory") for p in passages[:k]]

    candidates = ImportantTurns(Inner(), frozenset(map(str, range(50)))).search(Query(text="q"), 5)
    assert [c.id for c in candidates] == ["50", "51", "52", "53", "54"]


def test_expired_anchor_and_other_users_keep_no_turn(memory, clock):
    memory.add("zebra in Oslo", user_id="anna", source="chat_user", session_id="s", id="gone", ttl=timedelta(minutes=1))
    memory.add("zebra in Rome", user_id="bob", source="chat_user", session_id="s", id="bob")
    add_turns(memory, clock, PLAIN_TURNS[:1])
    assert search_ids(memory, window=3) == []


def test_erased_anchor_keeps_no_turn(memory, clock):
    add_turns(memory, clock, [*PLAIN_TURNS[:2], "zebra in Oslo"])
    assert search_ids(memory, window=1) == ["s1", "s2"]
    memory.delete("s2", user_id="anna")
    assert search_ids(memory, window=1) == []
    add_turns(memory, clock, ["zebra in Rome", *PLAIN_TURNS[:1]], session="t")
    assert search_ids(memory, window=1) == ["t0", "t1"]
    memory.forget_user(user_id="anna")
    assert search_ids(memory, window=1) == search_ids(memory) == []


def test_anchor_test_asks_once_and_stores_no_text():
    calls = []

    class Counted:
        name = "counted"

        def detect(self, texts):
            calls.append(len(texts))
            return PatternEntities().detect(texts)

    test = cached_anchor_test(Counted())
    text = " ".join(["zebra in Oslo", str(len(calls))])
    references = sys.getrefcount(text)
    assert test(text)
    assert test(text)
    assert not test("zebra")
    assert calls == [1, 1]
    assert sys.getrefcount(text) == references


@pytest.mark.parametrize("wrong", [-1, 1.5, "x", True])
def test_invalid_window_raises(memory, wrong):
    with pytest.raises(ValidationError, match="window"):
        memory.search("zebra", user_id="anna", window=wrong)


def test_prompt_accepts_window(memory, clock):
    add_turns(memory, clock, ["zebra in Oslo", *PLAIN_TURNS])
    text = memory.prompt("zebra?", user_id="anna", window=0).text
    assert "Oslo" in text
    assert "goes" not in text
