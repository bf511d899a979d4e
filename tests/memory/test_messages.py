"""What is said in a session, word for word: in order, by the page, and governed as all of a user's memory is."""

import json
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from meve.errors import HoldError, PassageError, StoreCorruptError, UnknownIdError, ValidationError
from meve.memory import GovernedMemory, Policy
from meve.memory.records import user_key
from meve.memory.stores.protocol import EventQuery, RecordQuery
from meve.memory.stores.sqlite._record_query import select_records
from meve.memory.stores.sqlite._schema import MIGRATIONS
from tests.memories import KEY
from tests.memory.test_erasure import found_in

CHILD = Path(__file__).with_name("messages_child.py")
WEEK = timedelta(days=7)
SECRET = "zyxomma petiolatum"


def say(memory, *texts, user="alice", session="s", **more):
    return memory.messages.add(session, [{"text": text} for text in texts], user_id=user, **more)


def told(memory, user="alice", session="s", **asked):
    return [m.value["text"] for m in memory.messages.page(session, user_id=user, **asked)]


def test_messages_come_in_order_by_the_page_and_from_a_point_on(memory):
    say(memory, *"abc")
    say(memory, "x", session="other")
    say(memory, *"de")
    places = [m.place for m in memory.messages.page("s", user_id="alice")]
    assert places == sorted(places)
    assert told(memory) == list("abcde")
    assert told(memory, limit=2) == list("ab")
    assert told(memory, limit=2, newest=True) == list("de")
    assert told(memory, limit=2, offset=1, newest=True) == list("cd")
    assert told(memory, after=places[2]) == list("de")
    assert told(memory, after=places[0], limit=1) == ["b"]
    assert told(memory, before=places[2], newest=True, limit=1) == ["b"]
    assert told(memory, limit=0) == []


def test_places_stay(memory):
    say(memory, *"abc")
    before = {m.id: m.place for m in memory.messages.page("s", user_id="alice")}
    memory.messages.pop("s", user_id="alice", limit=1, archive=True)
    assert {m.id: m.place for m in memory.messages.page("s", user_id="alice", archived=None)} == before
    memory.messages.pop("s", user_id="alice", limit=9, archived=None)
    say(memory, "d")
    (left,) = memory.messages.page("s", user_id="alice")
    assert left.place > max(before.values())


@pytest.mark.parametrize(
    "conditions",
    [
        {},
        {"limit": 3, "newest_first": True},
        {"after": 5, "limit": 3},
        {"archived": True, "before": 5, "newest_first": True},
    ],
)
def test_a_page_is_found_by_the_index_and_sorted_by_it(memory, file, clock, conditions):
    """So its cost is that of the page."""
    say(memory, *"abc")
    memory.close()
    query = RecordQuery(
        user=user_key("alice"), kind="message", session_id="s", alive_at=clock.now(), **conditions
    )  # fmt: skip
    sql, values = select_records(query, "id, metadata")
    with sqlite3.connect(file) as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    connection.close()
    assert any("USING INDEX memories_message" in step for step in plan)
    assert not any("TEMP B-TREE" in step for step in plan)


@pytest.mark.parametrize("value", ["[1", "[1]", "7", ""])
def test_a_message_that_is_damaged_is_said_to_be(memory, file, value):
    say(memory, *"abc")
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE memories SET metadata = ? WHERE row = 2", (value,))
    connection.close()
    assert told(memory, limit=1) == ["a"]
    with pytest.raises(StoreCorruptError, match="restore its file from a copy"):
        told(memory)


def test_users_are_apart(memory):
    for user in ("alice", "1", 1):
        say(memory, f"of {user!r}", user=user)
    (other,) = memory.messages.page("s", user_id="1")
    for user in ("alice", "1", 1):
        assert told(memory, user=user) == [f"of {user!r}"]
    with pytest.raises(UnknownIdError):
        memory.messages.delete("s", [other.id], user_id="alice")
    memory.messages.pop("s", user_id="alice")
    assert told(memory, user="1") == ["of '1'"]
    assert memory.messages.sessions(user_id="alice") == []
    assert memory.messages.sessions(user_id=1) == ["s"]
    with pytest.raises(ValidationError):
        memory.messages.page("s", user_id="")


@pytest.mark.parametrize("ttl", [None, timedelta(hours=2)])
def test_what_is_over_is_in_no_read_from_that_second_on(memory, clock, ttl):
    say(memory, "a", ttl=ttl)
    life = ttl or WEEK
    clock.advance(life - timedelta(seconds=1))
    say(memory, "b", ttl=ttl)
    assert told(memory) == ["a", "b"]
    clock.advance(timedelta(seconds=1))
    assert told(memory) == told(memory, limit=1) == ["b"]
    assert memory.messages.count("s", user_id="alice") == 1
    clock.advance(life)
    assert memory.messages.sessions(user_id="alice") == []
    assert memory.messages.pop("s", user_id="alice", archive=True)[0] == []
    assert memory.export(user_id="alice")["records"] == []
    assert len(memory.maintain().expired["alice"]) == 2


def test_turns_live_as_the_policy_says(file, clock):
    policy = Policy.from_dict({"chat_ttl": "1h"})
    with GovernedMemory.open(file, clock=clock, policy=policy) as memory:
        say(memory, "a")
        clock.advance(timedelta(hours=1))
        assert told(memory) == []


@pytest.mark.parametrize("way", ["delete", "pop", "replace", "forget_user", "by its id", "expire"])
def test_no_byte_is_left_in_any_file(memory, file, clock, way):
    say(memory, "a")
    (made,) = memory.messages.add("s", [{"text": SECRET, "who": SECRET}], user_id="alice")
    memory.search("anything", user_id="alice")
    assert found_in(file, SECRET.encode())
    if way == "delete":
        done = memory.messages.delete("s", [made], user_id="alice")
        assert (done.erased, done.scrubbed) == ((made,), True)
    elif way == "pop":
        memory.messages.pop("s", user_id="alice", limit=1, newest=True)
    elif way == "replace":
        memory.messages.replace("s", [{"text": "a"}], user_id="alice")
    elif way == "forget_user":
        memory.forget_user(user_id="alice")
    elif way == "by its id":
        memory.delete(made, user_id="alice")
    else:
        clock.advance(WEEK)
        memory.maintain()
    assert found_in(file, SECRET.encode()) == []
    assert told(memory) == ([] if way in ("forget_user", "expire") else ["a"])


def test_the_log_tells_of_each_without_what_it_says(memory):
    (made,) = memory.messages.add("s", [{"text": SECRET}], user_id="alice", reason="said")
    memory.messages.pop("s", user_id="alice", archive=True, reason="long ago")
    memory.messages.delete("s", [made], user_id="alice", reason="asked for")
    events = list(memory._runtime.store.events(EventQuery(user=user_key("alice"), record=made)))
    assert [(e.action, e.reason) for e in events] == [("add", "said"), ("update", "long ago"), ("delete", "asked for")]
    assert len({e.detail["content"] for e in events[:2]}) == 1
    assert SECRET not in json.dumps([e.to_dict() for e in events])
    assert memory.audit.verify().ok


def test_what_two_messages_say_is_told_apart_by_the_log(memory):
    ids = say(memory, "a", "b", "a")
    hashes = [next(iter(memory._runtime.store.events(EventQuery(record=i)))).detail["content"] for i in ids]
    assert hashes[0] == hashes[2] != hashes[1]


def test_a_hold_beats_every_erasure_and_nothing_is_half_done(memory):
    ids = say(memory, *"abc")
    memory.hold(ids[1], user_id="alice", why="a court")
    ways = [
        lambda: memory.messages.delete("s", ids, user_id="alice"),
        lambda: memory.messages.pop("s", user_id="alice"),
        lambda: memory.messages.pop("s", user_id="alice", archive=True),
        lambda: memory.messages.replace("s", [{"text": "x"}], user_id="alice"),
    ]
    for way in ways:
        with pytest.raises(HoldError, match="a court"):
            way()
        assert told(memory) == list("abc")
    assert memory.forget_user(user_id="alice").held == {ids[1]: "a court"}
    assert told(memory) == ["b"]


def test_what_was_made_of_a_message_goes_with_it(memory):
    ids = say(memory, "I like tea.", "I like bread.")
    tea = memory.add("Alice likes tea.", user_id="alice", derived_from=[ids[0]])
    memory.add("Alice likes bread.", user_id="alice", derived_from=[ids[1]])
    assert len(memory.search("likes tea bread", user_id="alice").records) == 2
    done = memory.messages.delete("s", [ids[0]], user_id="alice")
    assert set(done.erased) == {ids[0], tea.id}
    assert user_key("alice") not in memory._searcher.indexes._indexes
    assert [r.text for r in memory.search("likes tea bread", user_id="alice").records] == ["Alice likes bread."]


def test_no_search_recalls_messages(memory):
    memory.add("Alice likes tea.", user_id="alice", source="doc")
    say(memory, "Alice likes tea.", "What does Alice like?")
    for asked in ({}, {"session_id": "s"}, {"sources": ["message"]}, {"include_private": True}):
        found = memory.search("What does Alice like?", user_id="alice", **asked).records
        assert all(r.source == "doc" for r in found)
    assert [e.record.source for e in memory.explain("Alice likes tea", user_id="alice")] == ["doc"]
    assert [r.source for r in memory.search("What does Alice like?", user_id="alice").records] == ["doc"]


def test_upkeep_lets_them_be_and_they_take_no_memory_s_place(file, clock):
    """They aren't merged, summarised, pruned or archived, whatever they say, and don't count for the cap."""
    policy = Policy.from_dict({"limits": {"per_user": 2}, "chat_ttl": None, "classes": {"factual": {"ttl": None}}})
    with GovernedMemory.open(file, clock=clock, policy=policy) as memory:
        for n in range(2):
            memory.add(f"Fact {n}.", user_id="alice", source="doc", policy_class="canonical")
        say(memory, *["the same"] * 10)
        clock.advance(timedelta(days=400))
        done = memory.maintain()
        assert not any(done.counts().values()), done.counts()
        assert told(memory) == ["the same"] * 10


def test_they_are_changed_only_by_what_knows_them(memory):
    (made,) = say(memory, "a")
    with pytest.raises(ValidationError, match=r"memory\.messages"):
        memory.add("b", user_id="alice", source="message")
    for change in ({"text": "b"}, {"metadata": {}}, {"tags": ["archived"]}):
        with pytest.raises(ValidationError, match="can't be edited in place"):
            memory.update(made, user_id="alice", **change)
    assert told(memory) == ["a"]
    assert memory.get(made, user_id="alice").metadata == {"text": "a"}
    assert [r["id"] for r in memory.export(user_id="alice")["records"]] == [made]


@pytest.mark.parametrize(
    ("values", "asked"),
    [
        (["text"], {}),
        ([{"n": float("nan")}], {}),
        ([{"it": object()}], {}),
        ([{}], {"ttl": timedelta(0)}),
        ([{}], {"user_id": None}),
    ],
)
def test_what_can_not_be_kept_is_refused_and_nothing_of_it_is_kept(memory, values, asked):
    with pytest.raises(ValidationError):
        memory.messages.add("s", [{"text": "a"}, *values], **{"user_id": "alice", **asked})
    with pytest.raises(PassageError, match="session_id"):
        memory.messages.add(" ", [{"text": "a"}], user_id="alice")
    assert memory.list(user_id="alice") == []


@pytest.mark.parametrize("wrong", [{"limit": -1}, {"offset": -1}, {"limit": True}, {"limit": 1.5}])
def test_a_page_that_can_not_be_is_refused(memory, wrong):
    say(memory, *"abc")
    for way in (memory.messages.page, memory.messages.pop):
        with pytest.raises(ValidationError, match="whole number"):
            way("s", user_id="alice", **wrong)
    assert told(memory) == list("abc")


def test_only_those_of_the_session_are_taken_by_id(memory):
    (other,) = say(memory, "x", session="other")
    (mine,) = say(memory, "a")
    for way in (memory.messages.delete, memory.messages.archive):
        with pytest.raises(UnknownIdError, match=other):
            way("s", [mine, other], user_id="alice")
    memory.messages.archive("s", [mine], user_id="alice")
    assert told(memory) == []
    assert told(memory, archived=True) == ["a"]
    assert memory.messages.pop("s", user_id="alice", ids=[])[0] == []


def test_threads_lose_nothing_and_take_nothing_twice(memory):
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: say(memory, f"{n} call", f"{n} result"), range(50)))
        found = told(memory)
        assert len(found) == 100
        assert [text.replace("call", "result") for text in found[::2]] == found[1::2]
        taken = list(pool.map(lambda _: memory.messages.pop("s", user_id="alice", limit=1)[0], range(100)))
    assert [len(each) for each in taken] == [1] * 100
    assert sorted(each[0].value["text"] for each in taken) == sorted(found)


def test_processes_lose_nothing(tmp_path):
    """And what each adds at once stays together, in its own order."""
    from tests.memory.test_faults import opened

    file, processes, count = tmp_path / "memory.db", 3, 20
    command = [sys.executable, str(CHILD), str(file)]
    children = [subprocess.Popen([*command, str(n), str(count)]) for n in range(processes)]
    assert [child.wait() for child in children] == [0] * processes
    with opened(file, audit_key=None) as memory:
        found = [m.value for m in memory.messages.page("s", user_id="alice")]
        assert [v["call"] for v in found[::2]] == [v["result"] for v in found[1::2]]
        for n in range(processes):
            assert [v["call"][1] for v in found[::2] if v["call"][0] == str(n)] == list(range(count))
        assert memory.audit.verify().ok


def test_a_file_of_before_is_brought_up(memory, file, clock):
    """One that had no messages gets their index."""
    memory.add("Bread is baked.", user_id="alice")
    memory.close()
    with sqlite3.connect(file) as connection:
        connection.execute("DROP INDEX memories_message")
        for column in ("kind", "archived"):  # of version 4
            connection.execute(f"ALTER TABLE memories DROP COLUMN {column}")
        before = next(n for n, made in enumerate(MIGRATIONS) if "memories_message" in made)
        connection.execute(f"PRAGMA user_version = {before}")
    connection.close()
    with GovernedMemory.open(file, clock=clock, audit_key=KEY) as again:
        say(again, "a")
        assert told(again) == ["a"]
        assert len(again.list(user_id="alice")) == 2
    with sqlite3.connect(file) as connection:
        assert connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'memories_message'").fetchone()
    connection.close()


def test_turns_stay_beside_each_other_whatever_is_said_between(memory):
    """A turn borrows relevance from the turns beside it, and messages come between none."""
    for user in ("alice", "bob"):
        memory.add("Which pots are for the balcony?", user_id=user, session_id="s")
        if user == "bob":
            say(memory, "a", user="bob")
        memory.add("The blue ones.", user_id=user, session_id="s")
    found = [memory.explain("pots for the balcony", user_id=user) for user in ("alice", "bob")]
    assert [e.score for e in found[0]] == [e.score for e in found[1]]
    assert len(found[0]) == 2
