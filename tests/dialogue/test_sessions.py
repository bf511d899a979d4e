"""Dialogues of many sessions under one limit of turns."""

import pytest

from meve.dialogue import DialogueSessions, build_small_context
from meve.errors import ConfigurationError, ValidationError
from meve.testing.fakes import CountingEmbedder, WordCounter, WordEmbedder


def make_sessions(max_turns=100):
    return DialogueSessions(max_turns, embedder=WordEmbedder(), tokens=WordCounter())


def texts(sessions, session):
    return [turn.text for turn in sessions.get(session).turns]


def test_sessions_are_separate_and_turns_embedded_once():
    embedder = CountingEmbedder(WordEmbedder())
    sessions = DialogueSessions(embedder=embedder, tokens=WordCounter())
    sessions.extend("one", ["zebra 1999"])
    sessions.extend("two", ["yak 2001"])
    build_small_context(sessions.get("one"), "zebra")
    sessions.extend("one", ["ok"])
    build_small_context(sessions.get("one"), "zebra")
    assert (texts(sessions, "one"), texts(sessions, "two")) == (["zebra 1999", "ok"], ["yak 2001"])
    assert embedder.calls.passages == ["zebra 1999", "ok"]


def test_beyond_the_limit_least_recently_used_sessions_are_dropped():
    sessions = make_sessions(5)
    for session in "abc":
        sessions.extend(session, ["x"])
    sessions.get("a")
    sessions.extend("d", ["y", "y", "y"])
    assert [texts(sessions, i) for i in "abcd"] == [["x"], [], ["x"], ["y"] * 3]
    assert len(sessions) == 3


def test_single_session_beyond_the_limit_loses_its_older_half():
    sessions = make_sessions(4)
    for n in range(5):
        sessions.extend("a", [f"{n}"])
    assert texts(sessions, "a") == ["3", "4"]
    alone = make_sessions(1)
    alone.extend("a", ["0", "1"])
    assert texts(alone, "a") == ["1"]


def test_dropped_dialogue_stays_usable_for_its_holder():
    sessions = make_sessions(2)
    sessions.extend("a", ["zebra 1999", "ok"])
    dialogue = sessions.get("a")
    sessions.extend("b", ["y", "y"])
    assert texts(sessions, "a") == []
    assert "1999" in build_small_context(dialogue, "zebra").text


def test_session_without_turns_is_not_kept():
    sessions = make_sessions()
    sessions.get("a")
    sessions.extend("a", [])
    with pytest.raises(ValidationError):
        sessions.extend("a", ["x", 7])
    assert len(sessions) == 0
    sessions.extend("a", ["x"])
    sessions.forget("a")
    sessions.forget("a")
    assert texts(sessions, "a") == []


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "9"])
def test_invalid_limit_raises(wrong):
    with pytest.raises(ConfigurationError, match="max_turns"):
        DialogueSessions(wrong)
