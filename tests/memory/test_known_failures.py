"""Failures that users of other memories report, and that must not happen in this one; each is a rule of its own.

Where another file states the rule already, it isn't said again: owners in metadata, reads without a user, erasure from
every index and file, summaries of what was deleted, values that differ, lost updates, kills, naive datetimes.
"""

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meve.errors import ModelError, ValidationError
from meve.memory import GovernedMemory, Policy
from meve.memory.records import user_key
from meve.testing.fakes import WordCounter, WordEmbedder

FACTS = ("tomatoes need sun", "bread is baked", "trains run late")


def opened(file, **parts):
    return GovernedMemory.open(file, embedder=WordEmbedder(), tokens=WordCounter(), **parts)


def rows(memory, user):
    """All that the file holds of a user, as it is stored."""
    store = memory._kit.store
    with store._connections.reading() as connection:
        held = [
            connection.execute(f"SELECT * FROM {table} WHERE user = (SELECT no FROM users WHERE key = ?)", (user,))
            for table in ("memories", "archive", "opinions", "gone")
        ]
        return [found.fetchall() for found in held]


@settings(max_examples=15, deadline=None)
@given(
    stories=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(FACTS)), min_size=3, max_size=12),
    victim=st.sampled_from("abc"),
    whole=st.booleans(),
)
def test_what_is_deleted_of_one_user_leaves_every_other_s_rows_as_they_were(tmp_path_factory, stories, victim, whole):
    with opened(tmp_path_factory.mktemp("memory") / "m.db") as memory:
        for n, (user, text) in enumerate(stories):
            memory.add(text, user_id=user, id=f"{user}{n}")
        others = [user for user in "abc" if user != victim]
        before = [rows(memory, user_key(user)) for user in others]
        if whole:
            memory.forget_user(user_id=victim)
        else:
            for record in memory.list(user_id=victim):
                memory.delete(record.id, user_id=victim)
        memory.maintain(user_id=victim)
        assert [rows(memory, user_key(user)) for user in others] == before
        assert memory.list(user_id=victim) == []


def test_users_who_ask_and_tell_at_once_never_get_each_other_s(file):
    """Nothing of a request stays behind on what requests share."""
    with opened(file) as memory:

        def one(user):
            for n in range(15):
                memory.add(f"bread {n} of {user}", user_id=user, session_id=f"{user}{n}", tags=[user])
                found = memory.search("bread", user_id=user, limit=None)
                assert {r.user_id for r in found.records} == {user}
                memory.reflect(found, answer=f"bread {n} of {user}")
            return len(memory.list(user_id=user))

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(one, [f"user{n}" for n in range(8)])) == [15] * 8


def test_a_recall_that_is_told_again_and_again_becomes_one_memory(memory):
    """As when an agent stores its own answers: copies go in the next round, and the log keeps them apart from facts."""
    for n in range(40):
        memory.add("Alice prefers tea.", user_id="alice", source="chat_assistant", id=f"copy {n:02}")
    assert memory.maintain().counts()["merged"] == 39
    (left,) = memory.list(user_id="alice")
    assert len(left.derived_from) == 39


def test_an_embedder_that_fails_loses_nothing_in_silence(file):
    """No empty result that reads like success."""

    class Broken(WordEmbedder):
        def embed_passages(self, texts):
            raise RuntimeError("out of order")

    with GovernedMemory.open(file, embedder=Broken(), tokens=WordCounter()) as memory:
        with pytest.raises(ModelError, match="out of order"):
            memory.add("tomatoes need sun", user_id="alice")
        assert memory.stats().events == 0


def test_what_is_found_by_words_alone_is_found(memory):
    """The vector of a code says nothing; the word does."""
    for text in ("Bread is baked for 40 minutes.", "Trains to Lisbon run at night.", "The part number is XK-7741-Q."):
        memory.add(text, user_id="alice", source="doc")
    assert memory.search("XK-7741-Q", user_id="alice").records[0].text == "The part number is XK-7741-Q."


def test_what_has_nothing_to_do_with_the_question_is_not_handed_out(memory):
    """No top k of whatever there is."""
    for text in ("Tomatoes need six hours of sun.", "Basil wants warmth.", "Compost heaps want turning."):
        memory.add(text, user_id="alice", source="doc")
    recall = memory.search("Which exchange rate did the bank apply to the invoice?", user_id="alice")
    assert recall.records == ()
    assert {c.reason for c in recall.trace.candidates} == {"below_threshold"}


def test_nothing_is_sent_anywhere(file, monkeypatch):
    """From opening to closing, background rounds included."""

    def refused(*_):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "create_connection", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    with GovernedMemory.open(file) as memory:
        memory.add("Tomatoes need sun.", user_id="alice")
        recall = memory.search("What do tomatoes need?", user_id="alice", verify=True)
        memory.reflect(recall, answer="Sun.")
        memory.maintain()


def test_no_second_file_is_made_anywhere(tmp_path):
    """A memory is one file, and what SQLite keeps beside it while it is open."""
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
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["home", "memory.db"]


def test_unrelated_memories_never_become_one(memory, clock):
    """However many there are, and however low they score."""
    from datetime import timedelta

    texts = ["Tomatoes need sun.", "The night train was late.", "Anna plays the cello.", "The report is due.", "Rain!"]
    for n, text in enumerate(texts):
        memory.add(text, user_id="alice", source="doc", policy_class="factual", id=str(n), ttl=timedelta(days=900))
    clock.advance(timedelta(days=40))
    memory.maintain()
    assert sorted(r.text for r in memory.list(user_id="alice")) == sorted(texts)


def test_a_user_of_thousands_is_forgotten_at_one_call_and_others_are_not_read(file):
    with opened(file, policy=Policy()) as memory:
        for user in ("alice", "bob"):
            kit = memory._kit
            with kit.store.writing() as transaction:
                from meve.memory._write.record_factory import drafted

                for n in range(2_000):
                    record = drafted(
                        f"fact {n}", user_id=user, source="doc", policy=kit.policy, now=kit.clock.now(),
                        classifier=kit.classifier, tagger=kit.tagger, id=str(n),
                    )  # fmt: skip
                    transaction.insert(user_key(user), kit.stored(record))
        assert len(memory.forget_user(user_id="alice").erased) == 2_000
        assert memory.list(user_id="alice") == []
        assert len(memory.list(user_id="bob")) == 2_000


@pytest.mark.parametrize("moment", ["2026-05-01", "soon", 5])
def test_a_life_that_is_no_moment_is_refused_and_matches_nothing_in_silence(memory, moment):
    with pytest.raises(ValidationError, match="expires_at"):
        memory.add("Tomatoes need sun.", user_id="alice", expires_at=moment)
