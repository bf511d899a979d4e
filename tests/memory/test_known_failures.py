"""Failures that users of other memory systems report.

Other files test owners in metadata, reads without a user, erasure from every index and file, summaries of erased
records, contradictions, lost updates, killed processes and naive datetimes.
"""

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meve.errors import ModelError
from meve.memory import GovernedMemory, Policy
from meve.memory.records import user_key
from meve.testing.fakes import WordEmbedder
from tests.memories import open_memory

FACTS = ("tomatoes need sun", "bread is baked", "trains run late")


def rows(memory, user):
    """Return all rows of a user."""
    store = memory._runtime.store
    with store.backend._connections.reading() as connection:
        cursors = [
            connection.execute(f"SELECT * FROM {table} WHERE user = (SELECT no FROM users WHERE key = ?)", (user,))
            for table in ("memories", "archive", "opinions", "gone")
        ]
        return [cursor.fetchall() for cursor in cursors]


@settings(max_examples=15, deadline=None)
@given(
    facts=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(FACTS)), min_size=3, max_size=12),
    victim=st.sampled_from("abc"),
    forget=st.booleans(),
)
def test_erasure_leaves_rows_of_other_users_unchanged(tmp_path_factory, facts, victim, forget):
    with open_memory(tmp_path_factory.mktemp("memory") / "m.db") as memory:
        for n, (user, text) in enumerate(facts):
            memory.add(text, user_id=user, id=f"{user}{n}")
        others = [user for user in "abc" if user != victim]
        before = [rows(memory, user_key(user)) for user in others]
        if forget:
            memory.forget_user(user_id=victim)
        else:
            for record in memory.list(user_id=victim):
                memory.delete(record.id, user_id=victim)
        memory.maintain(user_id=victim)
        assert [rows(memory, user_key(user)) for user in others] == before
        assert memory.list(user_id=victim) == []


def test_concurrent_users_never_see_each_other(file):
    with open_memory(file) as memory:

        def use_memory(user):
            for n in range(15):
                memory.add(f"bread {n} of {user}", user_id=user, session_id=f"{user}{n}", tags=[user])
                recall = memory.search("bread", user_id=user, limit=None)
                assert {r.user_id for r in recall.records} == {user}
                memory.reflect(recall, answer=f"bread {n} of {user}")
            return len(memory.list(user_id=user))

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(use_memory, [f"user{n}" for n in range(8)])) == [15] * 8


def test_repeated_answer_is_merged_into_one_memory(memory):
    for n in range(40):
        memory.add("Alice prefers tea.", user_id="alice", source="chat_assistant", id=f"copy {n:02}")
    assert memory.maintain().counts()["merged"] == 39
    (left,) = memory.list(user_id="alice")
    assert len(left.derived_from) == 39


def test_failing_embedder_raises_and_stores_nothing(file):

    class Failing(WordEmbedder):
        def embed_passages(self, texts):
            raise RuntimeError("out of order")

    with open_memory(file, embedder=Failing()) as memory:
        with pytest.raises(ModelError, match="out of order"):
            memory.add("tomatoes need sun", user_id="alice")
        assert memory.stats().events == 0


def test_part_number_is_found_by_its_words(memory):
    for text in ("Bread is baked for 40 minutes.", "Trains to Lisbon run at night.", "The part number is XK-7741-Q."):
        memory.add(text, user_id="alice", source="doc")
    assert memory.search("XK-7741-Q", user_id="alice").records[0].text == "The part number is XK-7741-Q."


@pytest.mark.parametrize(("policy", "count"), [(Policy(), 3), (Policy.paper(), 0)])
def test_only_published_policy_leaves_out_memories_below_a_score(file, policy, count):
    """By default, limit and budget cut: a question is often worded unlike the memory that answers it."""
    with GovernedMemory.open(file, policy=policy) as memory:
        for text in ("Tomatoes need six hours of sun.", "Basil wants warmth.", "Compost heaps want turning."):
            memory.add(text, user_id="alice", source="doc")
        recall = memory.search("Which exchange rate did the bank apply to the invoice?", user_id="alice")
        assert len(recall.records) == count
        assert {c.reason for c in recall.trace.candidates} == ({"verified"} if count else {"below_threshold"})
        assert len(memory.search("exchange rate", user_id="alice", limit=1).records) <= 1


def test_no_network_connection_is_opened(file, monkeypatch):

    def fail(*_):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", fail)
    monkeypatch.setattr(socket, "create_connection", fail)
    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with GovernedMemory.open(file) as memory:
        memory.add("Tomatoes need sun.", user_id="alice")
        recall = memory.search("What do tomatoes need?", user_id="alice", verify=True)
        memory.reflect(recall, answer="Sun.")
        memory.maintain()


def test_only_the_memory_and_its_keys_are_created(tmp_path):
    """Beside SQLite's own files while it is open."""
    home = tmp_path / "home"
    home.mkdir()
    code = (
        "from meve.memory import GovernedMemory\n"
        "with GovernedMemory.open('memory.db') as memory:\n"
        "    memory.add('Tomatoes need sun.', user_id='alice')\n"
        "    memory.search('tomatoes', user_id='alice')\n"
    )
    hidden = ("ORT_DISABLE_TELEMETRY", "ORT_TELEMETRY_DISABLED", "XDG_CACHE_HOME", "CI")
    environment = {k: v for k, v in os.environ.items() if k not in hidden}
    environment |= {"HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["home", "memory.db", "memory.db.keys"]


def test_unrelated_memories_are_never_merged(memory, clock):
    texts = ["Tomatoes need sun.", "The night train was late.", "Anna plays the cello.", "The report is due.", "Rain!"]
    for n, text in enumerate(texts):
        memory.add(text, user_id="alice", source="doc", policy_class="factual", id=str(n), ttl=timedelta(days=900))
    clock.advance(timedelta(days=40))
    memory.maintain()
    assert sorted(r.text for r in memory.list(user_id="alice")) == sorted(texts)


def test_forget_user_erases_thousands_and_keeps_other_users(file):
    with open_memory(file, policy=Policy()) as memory:
        runtime = memory._runtime
        for user in ("alice", "bob"):
            record = memory.add("fact", user_id=user, source="doc")
            copies = runtime.stored_all([replace(record, id=str(n), text=f"fact {n}") for n in range(1_999)])
            with runtime.store.writing() as transaction:
                transaction.insert(user_key(user), *copies)
        assert len(memory.forget_user(user_id="alice").erased) == 2_000
        assert memory.list(user_id="alice") == []
        assert len(memory.list(user_id="bob")) == 2_000
