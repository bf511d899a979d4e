"""Dialogues of many sessions under one bound."""

import pytest

from meve.dialogue import Sessions, small_context
from meve.errors import ConfigurationError, ValidationError
from meve.testing.fakes import CountedEmbedder, WordCounter, WordEmbedder


def made(most=100):
    return Sessions(most, embedder=WordEmbedder(), tokens=WordCounter())


def texts(sessions, session):
    return [turn.text for turn in sessions.of(session).turns]


def test_sessions_are_apart_and_go_on():
    """What is added is added to one; none is read twice."""
    embedder = CountedEmbedder(WordEmbedder())
    sessions = Sessions(embedder=embedder, tokens=WordCounter())
    sessions.extend("one", ["zebra 1999"])
    sessions.extend("two", ["yak 2001"])
    small_context(sessions.of("one"), "zebra")
    sessions.extend("one", ["ok"])
    small_context(sessions.of("one"), "zebra")
    assert (texts(sessions, "one"), texts(sessions, "two")) == (["zebra 1999", "ok"], ["yak 2001"])
    assert embedder.calls.passages == ["zebra 1999", "ok"]


def test_beyond_the_bound_the_one_untouched_longest_goes():
    """To be asked counts; as many go as it takes, and none more."""
    sessions = made(5)
    for session in "abc":
        sessions.extend(session, ["x"])
    sessions.of("a")
    sessions.extend("d", ["y", "y", "y"])
    assert [texts(sessions, i) for i in "abcd"] == [["x"], [], ["x"], ["y"] * 3]
    assert len(sessions) == 3


def test_of_the_only_one_its_older_half_goes():
    """So it isn't read anew at every turn."""
    sessions = made(4)
    for n in range(5):
        sessions.extend("a", [f"{n}"])
    assert texts(sessions, "a") == ["3", "4"]
    alone = made(1)
    alone.extend("a", ["0", "1"])
    assert texts(alone, "a") == ["1"]


def test_who_is_asking_still_holds_what_went():
    """A question that runs isn't disturbed."""
    sessions = made(2)
    sessions.extend("a", ["zebra 1999", "ok"])
    held = sessions.of("a")
    sessions.extend("b", ["y", "y"])
    assert texts(sessions, "a") == []
    assert "1999" in small_context(held, "zebra").text


def test_nothing_said_is_nothing_kept():
    """A question makes no session, nor do no turns; what can't be read adds none."""
    sessions = made()
    sessions.of("a")
    sessions.extend("a", [])
    with pytest.raises(ValidationError):
        sessions.extend("a", ["x", 7])
    assert len(sessions) == 0
    sessions.extend("a", ["x"])
    sessions.forget("a")
    sessions.forget("a")
    assert texts(sessions, "a") == []


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "9"])
def test_the_bound_is_a_number_of_turns(wrong):
    """At least one."""
    with pytest.raises(ConfigurationError, match="most_turns"):
        Sessions(wrong)
