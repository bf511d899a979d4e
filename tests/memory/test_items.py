"""Items: values under keys, as a dict would keep them, and governed as all of a memory is."""

import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meve.errors import HoldError, ValidationError
from meve.memory import GovernedMemory
from meve.memory.items.item import Drop, Put, item_id
from meve.testing.fakes import FakeClock, OverlapVerifier, WordCounter, WordEmbedder

PLACE = ("notes",)
KEYS = st.tuples(st.sampled_from([("a",), ("a", 1), ("a", "1"), ("b.c",), ()]), st.sampled_from(["", "k", "ключ"]))
USERS = st.sampled_from(["alice", "bob", 1, "1"])
VALUES = st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=8) | st.none(), max_size=3)
STEPS = st.one_of(
    st.tuples(st.just("put"), USERS, KEYS, VALUES, st.sampled_from([None, 1, 5])),
    st.tuples(st.just("drop"), USERS, KEYS),
    st.tuples(st.just("clear"), USERS, st.sampled_from([("a",), ("a", 1), ()])),
    st.tuples(st.just("wait"), st.integers(1, 3)),
    st.tuples(st.just("reopen")),
    st.tuples(st.just("maintain")),
)


class Story:
    """A memory, and what a dict would hold: by user and place, the value and when it ends."""

    def __init__(self, folder):
        self.clock = FakeClock()
        self.now = 0
        self.held = {}
        self._file = Path(folder) / "memory.db"
        self.reopen()

    def reopen(self):
        if hasattr(self, "memory"):
            self.memory.close()
        parts = {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter()}
        self.memory = GovernedMemory.open(self._file, clock=self.clock, **parts)

    def put(self, user, place, value, life):
        self.memory.items.put(*place, value, user_id=user, ttl=None if life is None else timedelta(seconds=life))
        self.held[user, place] = (value, None if life is None else self.now + life)

    def drop(self, user, place):
        self.memory.items.delete(*place, user_id=user)
        self.held.pop((user, place), None)

    def clear(self, user, prefix):
        self.memory.items.delete_namespace(prefix, user_id=user)
        for owner, place in list(self.held):
            if owner == user and place[0][: len(prefix)] == prefix:
                del self.held[owner, place]

    def wait(self, seconds):
        self.clock.advance(timedelta(seconds=seconds))
        self.now += seconds

    def maintain(self):
        self.memory.maintain()

    def live(self, user):
        ends = {place: kept for (owner, place), kept in self.held.items() if owner == user}
        return {place: value for place, (value, end) in ends.items() if end is None or end > self.now}

    def agrees(self, user):
        live, items = self.live(user), self.memory.items
        for question in (None, "k"):
            found = items.search(user_id=user, query=question, limit=100)
            assert {(i.namespace, i.key): i.value for i in found} == live
        assert set(items.namespaces(user_id=user)) == {namespace for namespace, _ in live}
        assert {place: items.get(*place, user_id=user).value for place in live} == live


@settings(max_examples=40, deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=14))
def test_any_story_ends_as_it_would_with_a_dict(steps):
    """Puts, deletions, lives, time, reopening and maintenance, of several users at once."""
    with tempfile.TemporaryDirectory() as folder:
        story = Story(folder)
        for name, *given_ in steps:
            getattr(story, name)(*given_)
            for user in ("alice", "bob", 1, "1"):
                story.agrees(user)
        assert story.memory.audit.verify().ok
        story.memory.close()


def test_changes_of_several_users_are_one_transaction(memory):
    """All, or none."""
    memory.items.put(PLACE, "held", {"n": 1}, user_id="bob")
    memory.hold(item_id(PLACE, "held"), user_id="bob", why="a lawsuit")
    with pytest.raises(HoldError):
        memory.items.write(
            [
                ("alice", Put(namespace=PLACE, key="k", value={"n": 1})),
                ("bob", Drop(namespace=PLACE, key="held")),
            ]
        )
    assert memory.items.get(PLACE, "k", user_id="alice") is None


def test_a_search_sees_what_became_of_items_since_the_one_before(memory, clock):
    """Put, deleted and expired ones, and their namespaces."""
    for key in ("a", "b"):
        memory.items.put(PLACE, key, {"n": 1}, user_id="alice")
        assert len(memory.items.search(PLACE, user_id="alice")) == "ab".index(key) + 1
    memory.items.put(PLACE, "over", {"n": 1}, user_id="alice", ttl=timedelta(seconds=1))
    memory.items.search(PLACE, user_id="alice")
    for key in ("a", "b"):
        memory.items.delete(PLACE, key, user_id="alice")
    clock.advance(timedelta(seconds=1))
    assert memory.items.namespaces(user_id="alice") == memory.items.search(PLACE, user_id="alice") == []


def test_an_item_is_changed_by_its_key_alone(memory):
    """Neither `update` nor `add` can make a record whose text and value say different things."""
    memory.items.put(PLACE, "k", {"text": "tea"}, user_id="alice")
    record_id = item_id(PLACE, "k")
    for change in ({"text": "coffee"}, {"metadata": {}}):
        with pytest.raises(ValidationError, match=r"call memory\.items\.put"):
            memory.update(record_id, user_id="alice", **change)
    with pytest.raises(ValidationError, match=r"memory\.items"):
        memory.add("tea", user_id="alice", source="item")
    memory.update(record_id, user_id="alice", tags=["drinks"])
    memory.items.put(PLACE, "k", {"text": "cacao"}, user_id="alice")
    assert memory.get(record_id, user_id="alice").tags == ("drinks",)


def test_a_deletion_leaves_nothing_in_memory_either(memory):
    """Neither in the shelf that a search reads, nor in a recall that is kept."""
    memory.items.put(PLACE, "k", {"text": "Zyxomma flies at dusk."}, user_id="alice")
    memory.search("Zyxomma", user_id="alice")
    memory.items.search(PLACE, user_id="alice", query="Zyxomma")
    memory.items.delete(PLACE, "k", user_id="alice")
    shelf = memory._searcher.indexes._indexes["s:alice"]
    assert [stored for stored in shelf._stored if stored is not None] == []
    assert not memory._searcher.cache._recalls
    assert memory._searcher.indexes.of("s:alice") is shelf


def test_what_is_expired_is_not_listed_by_a_dry_run(memory, clock):
    """A deletion counts what there is to its user."""
    memory.items.put(PLACE, "over", {"n": 1}, user_id="alice", ttl=timedelta(seconds=1))
    memory.items.put(PLACE, "k", {"n": 1}, user_id="alice")
    clock.advance(timedelta(seconds=1))
    assert memory.items.delete_namespace(PLACE, user_id="alice", dry_run=True).erased == (item_id(PLACE, "k"),)
    assert memory.items.delete_namespace(PLACE, user_id="alice").erased == (item_id(PLACE, "k"),)
    assert memory.stats().records == 0


@pytest.mark.parametrize("way", ["get", "search"])
def test_a_reading_that_refreshes_tells_the_new_end(memory, clock, way):
    """And the log tells of it once; what would move by less than a second isn't written."""
    memory.items.put(PLACE, "k", {"n": 1}, user_id="alice", ttl=timedelta(minutes=2))
    clock.advance(timedelta(minutes=1))
    for _ in range(2):
        if way == "get":
            item = memory.items.get(PLACE, "k", user_id="alice", refresh=True)
        else:
            (item,) = memory.items.search(PLACE, user_id="alice", refresh=True)
        assert item.expires_at == clock.now() + timedelta(minutes=2)
        assert item == memory.items.get(PLACE, "k", user_id="alice")
    assert [e.detail["changed"] for e in memory.audit.events(user_id="alice", action="update")] == [["expires_at"]]


@pytest.mark.parametrize("namespace", ["notes", None, (1.5,), (True,), (None,), {"a"}])
def test_a_namespace_that_cannot_be_is_refused(memory, namespace):
    with pytest.raises(ValidationError):
        memory.items.put(namespace, "k", {"n": 1}, user_id="alice")
    with pytest.raises(ValidationError):
        memory.items.search(namespace, user_id="alice")


@pytest.mark.parametrize("user", [None, "", True, 1.5])
def test_nobody_has_no_items(memory, user):
    for done in (
        lambda: memory.items.put(PLACE, "k", {"n": 1}, user_id=user),
        lambda: memory.items.get(PLACE, "k", user_id=user),
        lambda: memory.items.search(PLACE, user_id=user),
        lambda: memory.items.namespaces(user_id=user),
        lambda: memory.items.delete_namespace(PLACE, user_id=user),
    ):
        with pytest.raises(ValidationError, match="user_id"):
            done()
