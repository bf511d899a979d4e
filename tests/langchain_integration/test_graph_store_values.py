"""MeVeStore as LangGraph's own tests use a store: names of fields, None as a value, short TTLs."""

import pickle
from datetime import timedelta

import pytest

pytest.importorskip("langgraph")

from langchain_meve import MeVeCompressor, MeVeStore
from meve.errors import ConfigurationError
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder

ALICE = ("memories", "alice")


@pytest.fixture
def memory(word_memory):
    return word_memory


@pytest.fixture
def store(memory):
    return MeVeStore(memory, namespaces="memories/{user_id}/*")


def test_value_with_one_field_is_found_by_the_name_of_the_field(store):
    """`text` and the like say nothing, and stay out of the text."""
    store.put(ALICE, "job", {"employer": "Acme"})
    store.put(ALICE, "tea", {"data": "Alice drinks tea."})
    texts = {record.metadata["key"]: record.text for record in store.memory.list(user_id="alice")}
    assert texts == {"job": "employer: Acme", "tea": "Alice drinks tea."}
    assert store.search(ALICE, query="employer")[0].key == "job"


def test_putting_none_erases_the_item(store):
    store.put(ALICE, "job", {"employer": "Acme"})
    store.put(ALICE, "job", None)
    assert store.get(ALICE, "job") is None
    assert store.memory.list(user_id="alice") == []


@pytest.mark.parametrize("seconds", [0.5, 1.0, 10.0])
def test_each_read_restarts_a_short_ttl_too(memory, clock, seconds):
    store = MeVeStore(memory, namespaces="{user_id}/*")
    store.put(("alice", "x"), "mood", {"text": "hurry"}, ttl=timedelta(seconds=seconds))
    for _ in range(5):
        clock.advance(timedelta(seconds=0.6 * seconds))
        assert store.get(("alice", "x"), "mood") is not None
    clock.advance(timedelta(seconds=1.1 * seconds))
    assert store.get(("alice", "x"), "mood") is None


BOOK = {"name": "north", "chapters": [{"content": "polar night"}, {"content": "reindeer move with all the seasons"}]}


@pytest.mark.parametrize("query", ["north", "polar night"])
def test_texts_of_several_paths_are_rated_each_by_itself(memory, query):
    """As in LangGraph's stores, the best text counts, however many others there are."""
    store = MeVeStore(memory, namespaces="memories/{user_id}/*", fields=["name", "chapters[*].content"])
    store.put(ALICE, "book", BOOK)
    store.put(ALICE, "near", {"name": f"{query} and more"})
    store.put(ALICE, "same", {"name": query})
    scores = {item.key: item.score for item in store.search(ALICE, query=query)}
    assert scores["book"] == pytest.approx(scores["same"])
    assert scores["book"] > scores["near"]


def test_pickling_is_refused_with_what_to_do(store):
    for each in (store, store.memory):
        with pytest.raises(ConfigurationError, match="another process opens its file by GovernedMemory"):
            pickle.dumps(each)
    with pytest.raises(ConfigurationError, match="make another one in the other process"):
        pickle.dumps(MeVeCompressor.make(embedder=WordEmbedder(), verifier=OverlapVerifier(), tokens=WordCounter()))
