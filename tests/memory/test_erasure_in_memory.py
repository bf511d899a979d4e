"""Erased text is in no cache, index or deferred reflection of the process."""

import gc
from datetime import timedelta

import pytest

from tests.memories import Interrupted, open_memory

TEXT = "Zyxomma petiolatum flies over the pond at dusk."
QUESTION = "What flies over the pond at dusk?"


def find_text(memory):
    """Return the caches and indexes that contain the text."""
    gc.collect()
    places = []
    for recall_id, (_, recall) in memory._searcher.cache._recalls.items():
        places += [("cache", recall_id)] if TEXT in recall.text or TEXT in recall_id else []
    for user, index in memory._searcher.indexes._indexes.items():
        places += [("index", user) for stored in index._stored if stored is not None and TEXT in str(stored.record)]
        places += [("passages", user) for passage in index._shown.values() if TEXT in str((passage, passage._shown))]
        places += [("statements", user) for text in index.compared._statements if TEXT in text]
    places += [
        ("deferred", r.id) for r, _ in memory._reflector._deferred if any(TEXT in str(each) for each in r.records)
    ]
    return places


ERASURES = {
    "by id": (0, lambda memory: memory.delete("s", user_id="alice")),
    "by origin": (0, lambda memory: memory.delete("origin", user_id="alice")),
    "by user": (0, lambda memory: memory.forget_user(user_id="alice")),
    "by session": (0, lambda memory: memory.forget_session("talk", user_id="alice")),
    "by update": (0, lambda memory: memory.update("s", user_id="alice", text="Another text.")),
    "by message": (0, lambda memory: memory.messages.pop("talk", limit=1, user_id="alice")),
    "by replacing messages": (0, lambda memory: memory.messages.replace("talk", [{"text": "Hello."}], user_id="alice")),
    "by expiry": (9, lambda memory: memory._maintainer.maintain()),  # maintain() runs deferred reflections before
    "by reusing the expired id": (9, lambda memory: memory.add("Another text.", user_id="alice", id="s")),
}
"""Days to wait, and the call that erases."""


@pytest.mark.parametrize(("days", "erase"), ERASURES.values(), ids=ERASURES)
def test_erased_record_is_in_no_cache(memory, clock, days, erase):
    (message,) = memory.messages.add("talk", [{"text": "Look!"}], user_id="alice")
    memory.add("The origin.", user_id="alice", id="origin", source="doc")
    memory.add(
        TEXT, user_id="alice", id="s", session_id="talk", derived_from=["origin", message], ttl=timedelta(days=5)
    )
    recall = memory.search(QUESTION, user_id="alice")
    assert memory._reflector._defer(recall, "At dusk.")
    assert {where for where, _ in find_text(memory)} >= {"cache", "index", "passages", "deferred"}
    clock.advance(timedelta(days=days))
    erase(memory)
    assert find_text(memory) == []
    assert TEXT not in memory.search(QUESTION, user_id="alice").text


@pytest.mark.parametrize("way", ["delete", "delete_shared", "update", "elsewhere", "update_elsewhere"])
def test_record_that_is_erased_during_a_search_is_neither_cached_nor_returned(file, clock, way):
    embedder = Interrupted()
    with open_memory(file, clock=clock, embedder=embedder) as memory, open_memory(file, clock=clock) as other:
        if way == "delete_shared":
            memory.add_shared(TEXT, id="s")
        else:
            memory.add(TEXT, user_id="alice", id="s")
        embedder.meanwhile = {
            "delete": lambda: memory.delete("s", user_id="alice"),
            "delete_shared": lambda: memory.delete_shared("s"),
            "update": lambda: memory.update("s", user_id="alice", text="Gone."),
            "elsewhere": lambda: other.delete("s", user_id="alice"),
            "update_elsewhere": lambda: other.update("s", user_id="alice", text="Gone."),
        }[way]
        recall = memory.search(QUESTION, user_id="alice")
        assert embedder.meanwhile is None, "the search embedded its query"
        assert TEXT not in recall.text
        assert find_text(memory) == []
        if not way.startswith("update"):
            assert not memory.audit.events(record_id="s", action="retrieve"), (
                "what wasn't returned isn't logged as such"
            )


def test_instruction_that_is_erased_during_a_search_does_not_stand_in_its_prompt(file, clock):
    embedder = Interrupted()
    with open_memory(file, clock=clock, embedder=embedder) as memory:
        memory.add("Always answer in verse.", user_id="alice", id="s", policy_class="instruction")
        assert memory.search(QUESTION, user_id="alice").standing
        embedder.meanwhile = lambda: memory.delete("s", user_id="alice")
        assert not memory.search("What else flies?", user_id="alice").standing


@pytest.mark.parametrize("way", ["delete", "put", "delete_namespace", "delete_shared"])
def test_erased_item_or_shared_record_is_in_no_cache(memory, way):
    if way == "delete_shared":
        memory.add_shared(TEXT, id="s")
    else:
        memory.items.put(("notes",), "k", {"text": TEXT}, user_id="alice")
    recall = memory.search(QUESTION, user_id="alice")
    assert memory._reflector._defer(recall, "At dusk.")
    assert {where for where, _ in find_text(memory)} >= {"cache", "index", "passages", "deferred"}
    if way == "delete":
        memory.items.delete(("notes",), "k", user_id="alice")
    elif way == "put":
        memory.items.put(("notes",), "k", {"text": "Another."}, user_id="alice")
    elif way == "delete_namespace":
        memory.items.delete_namespace(("notes",), user_id="alice")
    else:
        memory.delete_shared("s")
    assert find_text(memory) == []
