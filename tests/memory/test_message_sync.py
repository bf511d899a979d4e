"""Histories that callers hand in whole: what a session holds of one stays as it is, and all else goes, at once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest

from meve.errors import HoldError, PassageError
from tests.memory.test_messages import say, told


def values(*texts):
    return [{"text": text} for text in texts]


def become(memory, *texts, **more):
    ids, before = memory.messages.sync("s", values(*texts), user_id="alice", **more)
    return ids, [message.value["text"] for message in before]


def test_what_begins_with_all_that_is_held_is_added_to(memory, clock):
    first = say(memory, "a", "b")
    clock.advance(timedelta(days=1))
    ids, before = become(memory, "a", "b", "a", "c")
    assert (ids[:2], before, told(memory)) == (first, ["a", "b"], ["a", "b", "a", "c"])
    assert [m.id for m in memory.messages.page("s", user_id="alice")] == ids
    ends = [m.expires_at for m in memory.messages.page("s", user_id="alice")]
    assert ends[0] == ends[1] < ends[2]
    assert become(memory, "a", "b", "a", "c") == (ids, ["a", "b", "a", "c"])


@pytest.mark.parametrize("texts", ["b", "a", "ba", "bab", "", "acb"])
def test_anything_else_takes_the_place_of_all(memory, texts):
    first = say(memory, "a", "b")
    ids, before = become(memory, *texts)
    assert (before, told(memory)) == (["a", "b"], list(texts))
    assert not set(first) & set(ids)
    assert memory.audit.verify().ok


def test_values_are_compared_as_they_are_written(memory):
    memory.messages.add("s", [{"n": 1, "m": 2}], user_id="alice")
    same, _ = memory.messages.sync("s", [{"m": 2, "n": 1}], user_id="alice")
    other, _ = memory.messages.sync("s", [{"m": 2, "n": True}], user_id="alice")
    assert same != other
    assert memory.messages.page("s", user_id="alice")[0].value["n"] is True


def test_what_was_put_away_stays_where_the_rest_does(memory):
    say(memory, "a", "b")
    memory.messages.pop("s", user_id="alice", limit=1, archive=True)
    become(memory, "b", "c")
    assert (told(memory), told(memory, archived=True)) == (["b", "c"], ["a"])
    become(memory, "d")
    assert (told(memory), told(memory, archived=True)) == (["d"], [])


def test_a_hold_or_what_can_not_be_kept_changes_nothing(memory):
    ids = say(memory, "a", "b")
    memory.hold(ids[0], user_id="alice", why="a court")
    with pytest.raises(HoldError, match="a court"):
        become(memory, "c")
    with pytest.raises(PassageError):
        memory.messages.sync("s", [*values("a", "b"), {"it": object()}], user_id="alice")
    assert told(memory) == ["a", "b"]
    become(memory, "a", "b", "c")  # nothing of it goes
    assert told(memory) == ["a", "b", "c"]


def test_many_at_once_add_what_is_new_once(memory):
    say(memory, "a")
    together = Barrier(8)

    def one(_):
        together.wait()
        return become(memory, "a", "b", "c")

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(one, range(8)))
    assert told(memory) == ["a", "b", "c"]
    assert len({tuple(ids) for ids, _ in made}) == 1
    assert sorted(len(before) for _, before in made) == [1, *[3] * 7]
