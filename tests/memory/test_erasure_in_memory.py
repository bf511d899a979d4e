"""Erased text is in no cache, index or deferred reflection of the process."""

import gc
from datetime import timedelta

import pytest

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
        places += [("statements", user) for text in index._statements if TEXT in text]
    places += [
        ("deferred", r.id) for r, _ in memory._reflector._deferred if any(TEXT in str(each) for each in r.records)
    ]
    return places


def erase_by_id(memory, clock):
    memory.delete("s", user_id="alice")


def erase_by_origin(memory, clock):
    memory.delete("origin", user_id="alice")


def erase_by_user(memory, clock):
    memory.forget_user(user_id="alice")


def erase_by_session(memory, clock):
    memory.forget_session("talk", user_id="alice")


def erase_by_update(memory, clock):
    memory.update("s", user_id="alice", text="Another text.")


def erase_by_expiry(memory, clock):
    clock.advance(timedelta(days=9))
    memory._maintainer.maintain()  # without the deferred reflections, which maintain() runs before


def erase_by_reusing_the_expired_id(memory, clock):
    clock.advance(timedelta(days=9))
    memory.add("Another text.", user_id="alice", id="s")


def erase_by_message(memory, clock):
    memory.messages.pop("talk", limit=1, user_id="alice")


def erase_by_replacing_messages(memory, clock):
    memory.messages.replace("talk", [{"text": "Hello."}], user_id="alice")


ERASURES = [
    erase_by_id, erase_by_origin, erase_by_user, erase_by_session, erase_by_update, erase_by_expiry,
    erase_by_reusing_the_expired_id, erase_by_message, erase_by_replacing_messages,
]  # fmt: skip


@pytest.mark.parametrize("erase", ERASURES)
def test_erased_record_is_in_no_cache(memory, clock, erase):
    (message,) = memory.messages.add("talk", [{"text": "Look!"}], user_id="alice")
    memory.add("The origin.", user_id="alice", id="origin", source="doc")
    memory.add(
        TEXT, user_id="alice", id="s", session_id="talk", derived_from=["origin", message], ttl=timedelta(days=5)
    )
    recall = memory.search(QUESTION, user_id="alice")
    assert memory._reflector._defer(recall, "At dusk.")
    assert {where for where, _ in find_text(memory)} >= {"cache", "index", "deferred"}
    erase(memory, clock)
    assert find_text(memory) == []
    assert TEXT not in memory.search(QUESTION, user_id="alice").text


@pytest.mark.parametrize("way", ["delete", "put", "delete_namespace", "delete_shared"])
def test_erased_item_or_shared_record_is_in_no_cache(memory, way):
    if way == "delete_shared":
        memory.add_shared(TEXT, id="s")
    else:
        memory.items.put(("notes",), "k", {"text": TEXT}, user_id="alice")
    recall = memory.search(QUESTION, user_id="alice")
    assert memory._reflector._defer(recall, "At dusk.")
    assert {where for where, _ in find_text(memory)} >= {"cache", "index", "deferred"}
    if way == "delete":
        memory.items.delete(("notes",), "k", user_id="alice")
    elif way == "put":
        memory.items.put(("notes",), "k", {"text": "Another."}, user_id="alice")
    elif way == "delete_namespace":
        memory.items.delete_namespace(("notes",), user_id="alice")
    else:
        memory.delete_shared("s")
    assert find_text(memory) == []
