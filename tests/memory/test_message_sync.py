"""Syncing a session with a whole history: equal beginnings are kept, other messages replaced."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest

from meve.errors import HoldError, PassageError
from tests.memory.test_messages import add_messages, message_texts


def values(*texts):
    return [{"text": text} for text in texts]


def sync(memory, *texts, **options):
    ids, previous = memory.messages.sync("s", values(*texts), user_id="alice", **options)
    return ids, [message.value["text"] for message in previous]


def test_history_that_extends_the_session_is_appended(memory, clock):
    first = add_messages(memory, "a", "b")
    clock.advance(timedelta(days=1))
    ids, before = sync(memory, "a", "b", "a", "c")
    assert (ids[:2], before, message_texts(memory)) == (first, ["a", "b"], ["a", "b", "a", "c"])
    assert [m.id for m in memory.messages.page("s", user_id="alice")] == ids
    ends = [m.expires_at for m in memory.messages.page("s", user_id="alice")]
    assert ends[0] == ends[1] < ends[2]
    assert sync(memory, "a", "b", "a", "c") == (ids, ["a", "b", "a", "c"])


@pytest.mark.parametrize("texts", ["b", "a", "ba", "bab", "", "acb"])
def test_other_history_replaces_all_messages(memory, texts):
    first = add_messages(memory, "a", "b")
    ids, before = sync(memory, *texts)
    assert (before, message_texts(memory)) == (["a", "b"], list(texts))
    assert not set(first) & set(ids)
    assert memory.audit.verify().ok


def test_values_are_compared_as_json(memory):
    memory.messages.add("s", [{"n": 1, "m": 2}], user_id="alice")
    same, _ = memory.messages.sync("s", [{"m": 2, "n": 1}], user_id="alice")
    other, _ = memory.messages.sync("s", [{"m": 2, "n": True}], user_id="alice")
    assert same != other
    assert memory.messages.page("s", user_id="alice")[0].value["n"] is True


def test_archived_messages_stay_while_the_session_is_kept(memory):
    add_messages(memory, "a", "b")
    memory.messages.pop("s", user_id="alice", limit=1, archive=True)
    sync(memory, "b", "c")
    assert (message_texts(memory), message_texts(memory, archived=True)) == (["b", "c"], ["a"])
    sync(memory, "d")
    assert (message_texts(memory), message_texts(memory, archived=True)) == (["d"], [])


def test_held_message_or_invalid_value_raises_and_changes_nothing(memory):
    ids = add_messages(memory, "a", "b")
    memory.hold(ids[0], user_id="alice", why="a court")
    with pytest.raises(HoldError, match="a court"):
        sync(memory, "c")
    with pytest.raises(PassageError):
        memory.messages.sync("s", [*values("a", "b"), {"it": object()}], user_id="alice")
    assert message_texts(memory) == ["a", "b"]
    sync(memory, "a", "b", "c")  # appending deletes nothing
    assert message_texts(memory) == ["a", "b", "c"]


def test_concurrent_syncs_add_new_messages_once(memory):
    add_messages(memory, "a")
    barrier = Barrier(8)

    def sync_once(_):
        barrier.wait()
        return sync(memory, "a", "b", "c")

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(sync_once, range(8)))
    assert message_texts(memory) == ["a", "b", "c"]
    assert len({tuple(ids) for ids, _ in results}) == 1
    assert sorted(len(before) for _, before in results) == [1, *[3] * 7]
