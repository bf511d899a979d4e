"""What a caller may hand over by mistake: it is named as one of ours, nothing is changed, and the log holds."""

import enum
from datetime import timedelta

import pytest

from meve.errors import PolicyError, ValidationError
from meve.memory import GovernedMemory, Policy
from meve.testing.fakes import WordCounter, WordEmbedder

WRONG = [5, 5.0, True, b"5", "\ud800", ["5"], {"a": 1}, object()]
CALLS = {
    "get": lambda m, x: m.get(x, user_id="alice"),
    "update": lambda m, x: m.update(x, user_id="alice", tags=[]),
    "delete": lambda m, x: m.delete(x, user_id="alice"),
    "hold": lambda m, x: m.hold(x, user_id="alice"),
    "release": lambda m, x: m.release(x, user_id="alice"),
    "an id": lambda m, x: m.add("text", user_id="alice", id=x),
    "a text": lambda m, x: m.add(x, user_id="alice"),
    "a session": lambda m, x: m.add("text", user_id="alice", session_id=x),
    "a query": lambda m, x: m.search(x, user_id="alice"),
    "what to explain": lambda m, x: m.explain(x, user_id="alice"),
    "a session to search": lambda m, x: m.search("sun", user_id="alice", session_id=x),
    "within": lambda m, x: m.search("sun", user_id="alice", within=x),
    "classes": lambda m, x: m.search("sun", user_id="alice", classes=x),
    "sources": lambda m, x: m.search("sun", user_id="alice", sources=x),
    "what is known": lambda m, x: m.search("sun", user_id="alice", without=x if x != ["5"] and x != {"a": 1} else 5),
    "a record's events": lambda m, x: m.audit.events(record_id=x),
    "actions": lambda m, x: m.audit.events(action=x),
    "since": lambda m, x: m.audit.events(since=x),
    "until": lambda m, x: m.audit.events(until=x),
    "a head": lambda m, x: m.audit.verify(x),
    "a reason to add": lambda m, x: m.add("text", user_id="alice", reason=x),
    "a reason to update": lambda m, x: m.update("s", user_id="alice", tags=[], reason=x),
    "a reason to delete": lambda m, x: m.delete("s", user_id="alice", reason=x),
    "a reason to forget": lambda m, x: m.forget_user(user_id="alice", reason=x),
    "a reason to hold": lambda m, x: m.hold("s", user_id="alice", reason=x),
}


@pytest.fixture
def words(file, clock):
    with GovernedMemory.open(file, clock=clock, embedder=WordEmbedder(), tokens=WordCounter()) as opened:
        opened.add("Tomatoes need sun.", user_id="alice", id="s")
        opened.add("Bread is baked.", user_id="alice", id="5")
        yield opened


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_what_can_not_be_is_one_of_our_errors_and_changes_nothing(words, call):
    before, head = words.list(user_id="alice"), words.audit.head()
    for wrong in WRONG:
        with pytest.raises(ValidationError):
            call(words, wrong)
    assert words.list(user_id="alice") == before
    assert words.audit.head() == head
    assert words.audit.verify().ok


@pytest.mark.parametrize("option", ["include_private", "verify"])
def test_what_is_neither_yes_nor_no_is_refused(words, option):
    """A text that is no empty one would let private memories out, whatever it says."""
    with pytest.raises(ValidationError, match=f"{option} must be True or False, got 'no'"):
        words.search("tomatoes need sun", user_id="alice", **{option: "no"})


def test_a_reason_comes_back_as_it_was_given(words):
    words.delete("s", user_id="alice", reason='Ünal\'s wish; "now" 😀')
    assert words.audit.events(action="delete")[0].reason == 'Ünal\'s wish; "now" 😀'
    assert words.audit.verify().ok


def test_an_action_that_there_is_not_is_named_and_matches_nothing_in_silence(words):
    with pytest.raises(ValidationError, match="action is 'deleted': choose one of add, retrieve"):
        words.audit.events(action="deleted")


def test_lengths_beyond_the_calendar_ask_for_all_there_is(words):
    assert words.search("tomatoes need sun", user_id="alice", within=timedelta.max).records
    assert len(words.audit.events(action="add", since=timedelta.max)) == 2


class Team(str, enum.Enum):  # noqa: UP042 - of this kind, whose text and whose look differ
    RED = "red"


class Seat(int):
    def __repr__(self):
        return "seat"


def test_a_user_is_who_it_says_however_its_type_shows_it(words):
    """What inherits from str and int is the text and the number that it holds."""
    words.add("Mine.", user_id=Team.RED, id="x")
    words.add("Ours.", user_id=Seat(7), id="x")
    assert [r.text for r in words.list(user_id="red")] == ["Mine."]
    assert words.list(user_id="Team.RED") == []
    assert [r.text for r in words.list(user_id=7)] == ["Ours."]


def test_a_number_too_long_to_be_written_is_refused(words):
    with pytest.raises(ValidationError, match="over 1,000 digits"):
        words.list(user_id=10**5_000)


@pytest.mark.parametrize("life", ["999999999999999d", True, 1e300, float("inf"), float("nan")])
def test_a_life_that_can_not_be_counted_is_named(life):
    with pytest.raises(PolicyError, match="chat_ttl"):
        Policy.from_dict({"chat_ttl": life})


def test_a_tag_is_found_in_any_case_of_any_script(file, clock):
    """As the policy writes it, and as callers do."""
    tagging = {"tagging": {"tags": {"Straße": "roads, traffic"}}}
    with GovernedMemory.open(file, clock=clock, policy=Policy.from_dict(tagging)) as memory:
        made = memory.add("The traffic was slow.", user_id="alice", id="t")
        assert memory.update("t", user_id="alice", tags=["STRASSE"]).tags == made.tags
        assert memory.add("Traffic again.", user_id="alice", tags=["Straße"]).tags == made.tags
