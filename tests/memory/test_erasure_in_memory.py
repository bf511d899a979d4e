"""After any erasure nothing in this process holds the erased text: no cache, no index, no deferred reflection."""

import gc
from datetime import timedelta

import pytest

TEXT = "Zyxomma petiolatum flies over the pond at dusk."
QUESTION = "What flies over the pond at dusk?"


def holders(memory):
    """Return what the memory's caches hold of the text."""
    gc.collect()
    held = []
    for recall_id, (_, recall) in memory._searcher.cache._recalls.items():
        held += [("cache", recall_id)] if TEXT in recall.text or TEXT in recall_id else []
    for user, index in memory._searcher.indexes._indexes.items():
        held += [("index", user) for stored in index._stored if stored is not None and TEXT in str(stored.record)]
        held += [("statements", user) for text in index._statements if TEXT in text]
    held += [("deferred", r.id) for r, _ in memory._reflector._deferred if any(TEXT in str(each) for each in r.records)]
    return held


def by_id(memory, clock):
    memory.delete("s", user_id="alice")


def by_origin(memory, clock):
    memory.delete("origin", user_id="alice")


def by_user(memory, clock):
    memory.forget_user(user_id="alice")


def by_session(memory, clock):
    memory.forget_session("talk", user_id="alice")


def by_update(memory, clock):
    memory.update("s", user_id="alice", text="Another text.")


def by_expiry(memory, clock):
    clock.advance(timedelta(days=9))
    memory._keeper.maintain()  # without the deferred reflections, which maintain() runs before


def by_reuse_of_the_expired_id(memory, clock):
    clock.advance(timedelta(days=9))
    memory.add("Another text.", user_id="alice", id="s")


def by_message(memory, clock):
    memory.messages.delete("talk", [memory.messages.page("talk", user_id="alice")[0].id], user_id="alice")


def by_message_replacement(memory, clock):
    memory.messages.replace("talk", [{"text": "Hello."}], user_id="alice")


ERASURES = [
    by_id, by_origin, by_user, by_session, by_update, by_expiry, by_reuse_of_the_expired_id, by_message,
    by_message_replacement,
]  # fmt: skip


@pytest.mark.parametrize("erase", ERASURES)
def test_erased_record_is_held_nowhere(memory, clock, erase):
    (message,) = memory.messages.add("talk", [{"text": "Look!"}], user_id="alice")
    memory.add("The origin.", user_id="alice", id="origin", source="doc")
    memory.add(
        TEXT, user_id="alice", id="s", session_id="talk", derived_from=["origin", message], ttl=timedelta(days=5)
    )
    recall = memory.search(QUESTION, user_id="alice")
    assert memory._reflector._defer(recall, "At dusk.")
    assert {where for where, _ in holders(memory)} >= {"cache", "index", "deferred"}
    erase(memory, clock)
    assert holders(memory) == []
    assert TEXT not in memory.search(QUESTION, user_id="alice").text


@pytest.mark.parametrize("way", ["delete", "put", "delete_namespace", "delete_shared"])
def test_erased_item_or_shared_record_is_held_nowhere(memory, way):
    if way == "delete_shared":
        memory.add_shared(TEXT, id="s")
    else:
        memory.items.put(("notes",), "k", {"text": TEXT}, user_id="alice")
    recall = memory.search(QUESTION, user_id="alice")
    assert memory._reflector._defer(recall, "At dusk.")
    assert {where for where, _ in holders(memory)} >= {"cache", "index", "deferred"}
    if way == "delete":
        memory.items.delete(("notes",), "k", user_id="alice")
    elif way == "put":
        memory.items.put(("notes",), "k", {"text": "Another."}, user_id="alice")
    elif way == "delete_namespace":
        memory.items.delete_namespace(("notes",), user_id="alice")
    else:
        memory.delete_shared("s")
    assert holders(memory) == []
