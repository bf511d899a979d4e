"""Items: values stored under namespaces and keys."""

import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meve.errors import HoldError, ValidationError
from meve.memory import GovernedMemory, Policy
from meve.memory.items.item import Drop, Put, item_id
from meve.testing.fakes import FakeClock, OverlapVerifier
from tests.memories import LastLetters, open_memory

NAMESPACE = ("notes",)
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


class MemoryAndModel:
    """A memory, and a dict of the expected items: (user, path) to (value, end)."""

    def __init__(self, folder):
        self.clock = FakeClock()
        self.now = 0
        self.expected = {}
        self._file = Path(folder) / "memory.db"
        self.reopen()

    def reopen(self):
        if hasattr(self, "memory"):
            self.memory.close()
        self.memory = open_memory(self._file, clock=self.clock, verifier=OverlapVerifier())

    def put(self, user, path, value, ttl):
        self.memory.items.put(*path, value, user_id=user, ttl=None if ttl is None else timedelta(seconds=ttl))
        self.expected[user, path] = (value, None if ttl is None else self.now + ttl)

    def drop(self, user, path):
        self.memory.items.delete(*path, user_id=user)
        self.expected.pop((user, path), None)

    def clear(self, user, prefix):
        self.memory.items.delete_namespace(prefix, user_id=user)
        for owner, path in list(self.expected):
            if owner == user and path[0][: len(prefix)] == prefix:
                del self.expected[owner, path]

    def wait(self, seconds):
        self.clock.advance(timedelta(seconds=seconds))
        self.now += seconds

    def maintain(self):
        self.memory.maintain()

    def live_items(self, user):
        items_with_end = {path: item for (owner, path), item in self.expected.items() if owner == user}
        return {path: value for path, (value, end) in items_with_end.items() if end is None or end > self.now}

    def check(self, user):
        live_items, items = self.live_items(user), self.memory.items
        for question in (None, "k"):
            results = items.search(user_id=user, query=question, limit=100)
            assert {(i.namespace, i.key): i.value for i in results} == live_items
        assert set(items.namespaces(user_id=user)) == {namespace for namespace, _ in live_items}
        assert {path: items.get(*path, user_id=user).value for path in live_items} == live_items


@settings(max_examples=40, deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=14))
def test_random_operations_match_a_dict(steps):
    with tempfile.TemporaryDirectory() as folder:
        memory_and_model = MemoryAndModel(folder)
        for name, *arguments in steps:
            getattr(memory_and_model, name)(*arguments)
            for user in ("alice", "bob", 1, "1"):
                memory_and_model.check(user)
        assert memory_and_model.memory.audit.verify().ok
        memory_and_model.memory.close()


def test_failing_write_of_several_users_changes_nothing(memory):
    memory.items.put(NAMESPACE, "held", {"n": 1}, user_id="bob")
    memory.hold(item_id(NAMESPACE, "held"), user_id="bob", why="a lawsuit")
    put, drop = Put(namespace=NAMESPACE, key="k", value={"n": 1}), Drop(namespace=NAMESPACE, key="held")
    with pytest.raises(HoldError):
        memory.items.write(memory.items.prepare([("alice", put), ("bob", drop)]))
    with pytest.raises(ValidationError, match=r"^drafts must come from prepare\(\), got \["):
        memory.items.write([("alice", put)])
    assert memory.items.get(NAMESPACE, "k", user_id="alice") is None


def test_search_sees_items_added_deleted_or_expired_since_the_last(memory, clock):
    for key in ("a", "b"):
        memory.items.put(NAMESPACE, key, {"n": 1}, user_id="alice")
        assert len(memory.items.search(NAMESPACE, user_id="alice")) == "ab".index(key) + 1
    memory.items.put(NAMESPACE, "over", {"n": 1}, user_id="alice", ttl=timedelta(seconds=1))
    memory.items.search(NAMESPACE, user_id="alice")
    for key in ("a", "b"):
        memory.items.delete(NAMESPACE, key, user_id="alice")
    clock.advance(timedelta(seconds=1))
    assert memory.items.namespaces(user_id="alice") == memory.items.search(NAMESPACE, user_id="alice") == []


def test_item_is_edited_only_through_items(memory):
    memory.items.put(NAMESPACE, "k", {"text": "tea"}, user_id="alice")
    record_id = item_id(NAMESPACE, "k")
    for change in ({"text": "coffee"}, {"metadata": {}}):
        with pytest.raises(ValidationError, match=r"call memory\.items\.put"):
            memory.update(record_id, user_id="alice", **change)
    with pytest.raises(ValidationError, match=r"memory\.items"):
        memory.add("tea", user_id="alice", source="item")
    memory.update(record_id, user_id="alice", tags=["drinks"])
    memory.items.put(NAMESPACE, "k", {"text": "cacao"}, user_id="alice")
    assert memory.get(record_id, user_id="alice").tags == ("drinks",)


def test_deleted_item_is_in_no_index_or_cache(memory):
    memory.items.put(NAMESPACE, "k", {"text": "Zyxomma flies at dusk."}, user_id="alice")
    memory.search("Zyxomma", user_id="alice")
    memory.items.search(NAMESPACE, user_id="alice", query="Zyxomma")
    memory.items.delete(NAMESPACE, "k", user_id="alice")
    index = memory._searcher.indexes._indexes["s:alice"]
    assert [stored for stored in index._stored if stored is not None] == []
    assert not memory._searcher.cache._recalls
    assert memory._searcher.indexes.of("s:alice") is index


def test_deletion_and_its_dry_run_omit_expired_items(memory, clock):
    memory.items.put(NAMESPACE, "over", {"n": 1}, user_id="alice", ttl=timedelta(seconds=1))
    memory.items.put(NAMESPACE, "k", {"n": 1}, user_id="alice")
    clock.advance(timedelta(seconds=1))
    assert memory.items.delete_namespace(NAMESPACE, user_id="alice", dry_run=True).erased == (item_id(NAMESPACE, "k"),)
    assert memory.items.delete_namespace(NAMESPACE, user_id="alice").erased == (item_id(NAMESPACE, "k"),)
    assert memory.stats().records == 0


def test_deletion_of_a_namespace_erases_archived_items(file, clock):
    with open_memory(file, clock=clock, policy=Policy.from_dict({"limits": {"per_user": 1}})) as memory:
        for key in ("a", "b"):
            memory.items.put(NAMESPACE, key, {"text": "A text."}, user_id="alice", policy_class="factual")
            clock.advance(timedelta(days=1))
        assert memory.maintain().archived == {"alice": [item_id(NAMESPACE, "a")]}
        both = (item_id(NAMESPACE, "a"), item_id(NAMESPACE, "b"))
        assert memory.items.delete_namespace(NAMESPACE, user_id="alice", dry_run=True).erased == both
        assert memory.items.delete_namespace(NAMESPACE, user_id="alice").erased == both
        assert memory.items.get(NAMESPACE, "a", user_id="alice") is None


def test_restored_item_stays_protected_when_it_is_put_again(file, clock):
    with open_memory(file, clock=clock, policy=Policy.from_dict({"limits": {"per_user": 1}})) as memory:
        for key in ("a", "b"):
            memory.items.put(NAMESPACE, key, {"text": "A text."}, user_id="alice", policy_class="factual")
            clock.advance(timedelta(days=1))
        memory.maintain()
        memory.restore(item_id(NAMESPACE, "a"), user_id="alice")
        memory.items.put(NAMESPACE, "a", {"text": "Another text."}, user_id="alice", policy_class="factual")
        assert memory.maintain().archived == {"alice": [item_id(NAMESPACE, "b")]}


@pytest.mark.parametrize(("change", "hours"), [("ttl", 1), ("expires_at", 1), ("policy_class", 24)])
def test_refreshing_read_keeps_to_the_lifetime_of_an_update(tmp_path, clock, change, hours):
    with open_memory(tmp_path / "memory.db", clock=clock) as memory:
        memory.items.put(NAMESPACE, "k", {"text": "tea"}, user_id="alice", ttl=timedelta(days=30))
        end = clock.now() + timedelta(hours=hours)
        value = {"ttl": timedelta(hours=1), "expires_at": end, "policy_class": "intent_bound"}[change]
        memory.update(item_id(NAMESPACE, "k"), user_id="alice", **{change: value})
        assert memory.items.get(NAMESPACE, "k", user_id="alice", refresh=True).expires_at == end
        clock.advance(timedelta(minutes=30))
        again = memory.items.get(NAMESPACE, "k", user_id="alice", refresh=True).expires_at
        assert again == end + timedelta(minutes=30 if change == "ttl" else 0)


@pytest.mark.parametrize("way", ["get", "search"])
def test_refreshing_read_returns_the_new_end(memory, clock, way):
    """Refreshes that move the end by less than a second aren't written or logged."""
    memory.items.put(NAMESPACE, "k", {"n": 1}, user_id="alice", ttl=timedelta(minutes=2))
    clock.advance(timedelta(minutes=1))
    for _ in range(2):
        if way == "get":
            item = memory.items.get(NAMESPACE, "k", user_id="alice", refresh=True)
        else:
            (item,) = memory.items.search(NAMESPACE, user_id="alice", refresh=True)
        assert item.expires_at == clock.now() + timedelta(minutes=2)
        assert item == memory.items.get(NAMESPACE, "k", user_id="alice")
    assert [e.detail["changed"] for e in memory.audit.events(user_id="alice", action="update")] == [["expires_at"]]


@pytest.mark.parametrize("namespace", ["notes", None, (1.5,), (True,), (None,), {"a"}])
def test_invalid_namespace_raises(memory, namespace):
    with pytest.raises(ValidationError):
        memory.items.put(namespace, "k", {"n": 1}, user_id="alice")
    with pytest.raises(ValidationError):
        memory.items.search(namespace, user_id="alice")


@pytest.mark.parametrize("user", [None, "", True, 1.5])
def test_items_with_invalid_user_id_raise(memory, user):
    for call in (
        lambda: memory.items.put(NAMESPACE, "k", {"n": 1}, user_id=user),
        lambda: memory.items.get(NAMESPACE, "k", user_id=user),
        lambda: memory.items.search(NAMESPACE, user_id=user),
        lambda: memory.items.namespaces(user_id=user),
        lambda: memory.items.delete_namespace(NAMESPACE, user_id=user),
    ):
        with pytest.raises(ValidationError, match="user_id"):
            call()


SAYINGS = ["zebra", "polar night", "reindeer move with the seasons"]


@pytest.mark.parametrize("way", ["as put", "reopened", "embedded again", "imported"])
def test_each_text_of_an_item_is_searched_by_itself(tmp_path, way):
    """An item of several texts is as relevant as one that has only the best of them."""
    memory = open_memory(tmp_path / "memory.db")
    memory.items.put(NAMESPACE, "all", {"n": 1}, text=SAYINGS, user_id="alice")
    for text in SAYINGS:
        memory.items.put(NAMESPACE, text, {"n": 2}, text=text, user_id="alice")
    if way == "imported":
        other = open_memory(tmp_path / "other.db")
        other.import_(memory.export(user_id="alice"), user_id="alice")
        memory.close()
        memory = other
    elif way != "as put":
        memory.close()
        memory = open_memory(
            tmp_path / "memory.db", **({"embedder": LastLetters(), "reembed": True} if "again" in way else {})
        )
        if way == "embedded again":
            memory.reembed()
    for text in SAYINGS:
        scores = {item.key: item.score for item in memory.items.search(NAMESPACE, query=text, user_id="alice")}
        assert scores["all"] == pytest.approx(scores[text], abs=1e-3)  # passages are stored in half precision
    memory.items.put(NAMESPACE, "all", {"n": 1}, text="other words", user_id="alice")
    assert memory.items.search(NAMESPACE, query="zebra", user_id="alice")[0].key == "zebra"
    memory.close()


def test_text_of_an_item_is_one_or_several_strings(tmp_path):
    with open_memory(tmp_path / "memory.db") as memory:
        with pytest.raises(ValidationError, match="text must be a string, a list of strings, or None, got"):
            memory.items.put(NAMESPACE, "k", {"n": 1}, text=["tea", 7], user_id="alice")
        many = [f"word{n}" for n in range(1_000)]
        memory.items.put(NAMESPACE, "k", {"n": 1}, text=many, user_id="alice")
        assert {memory.items.search(query=word, user_id="alice")[0].key for word in many[::333]} == {"k"}
        assert memory._searcher.indexes.of("s:alice").vectors < 300  # not one for each of any number of texts


def test_item_asked_for_in_other_words_comes_before_one_that_shares_a_word(tmp_path):
    said = {
        "job": ("I work as a welder at the shipyard.", "How does he earn his living?"),
        "repository": ("The repository lives on Codeberg.", "Where is the source kept?"),
        "pet": ("My cat is called Biscuit.", "What is the name of the pet?"),
        "pills": ("I take blood pressure pills in the evening.", "What medication does he need?"),
        "twins": ("We have twins, Mira and Jonas.", "How many kids are there?"),
        "payment": ("I'd rather pay in instalments.", "How does he want to settle the price?"),
        "invoice": ("The invoice goes to the Leipzig branch.", "Which office pays the bill?"),
    }
    with GovernedMemory.open(tmp_path / "memory.db", embedder="minilm") as memory:
        for key, (text, _) in said.items():
            memory.items.put(NAMESPACE, key, {"text": text}, text=text, user_id="ann")
        for key, (_, question) in said.items():
            assert memory.items.search(NAMESPACE, query=question, user_id="ann", limit=1)[0].key == key, question
