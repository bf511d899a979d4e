"""Erasing whole sessions, and async callers."""

import asyncio
import contextlib
import os
import threading
from datetime import timedelta

import pytest

from meve.errors import HoldError, StorageError, ValidationError
from meve.memory._async_runner import MAX_WORKERS
from tests.memories import add_with_score, archive

LASTING = {"user_id": "ann", "source": "chat_user", "ttl": timedelta(days=5_000)}


def test_forget_session_erases_derived_records_and_keeps_held_ones(memory):
    for name, session in (("a", "s1"), ("b", "s1"), ("c", "s2"), ("d", None)):
        memory.add(f"Turn {name}.", user_id="ann", id=name, session_id=session)
    memory.add("Of a.", user_id="ann", id="of-a", derived_from=["a"])
    memory.add("Turn a.", user_id="bob", id="a", session_id="s1")
    memory.hold("b", user_id="ann", why="a lawsuit")
    archive(memory, "s:ann", "a")
    result = memory.forget_session("s1", user_id="ann")
    assert (result.erased, result.held) == (("a", "of-a"), {"b": "a lawsuit"})
    assert [r.id for r in memory.list(user_id="ann", include_archived=True)] == ["b", "c", "d"]
    assert [r.id for r in memory.list(user_id="bob")] == ["a"]
    with pytest.raises(ValidationError, match="session_id must not be blank"):
        memory.forget_session(" ", user_id="ann")


def test_forget_session_all_or_none_raises_for_held_record(memory, clock):
    memory.add("Turn a.", user_id="ann", id="a", session_id="s1", ttl=timedelta(hours=1))
    memory.add("Turn b.", user_id="ann", id="b", session_id="s1")
    memory.hold("a", user_id="ann", why="a lawsuit")
    with pytest.raises(HoldError, match="a lawsuit"):
        memory.forget_session("s1", user_id="ann", all_or_none=True)
    assert [r.id for r in memory.list(user_id="ann")] == ["a", "b"]
    clock.advance(timedelta(hours=1))  # an expired held record doesn't block the session
    assert memory.forget_session("s1", user_id="ann", all_or_none=True).erased == ("b",)


def test_summary_of_several_sessions_is_erased_with_any_of_them(paper_memory, clock):
    memory = paper_memory
    for n, what in enumerate(("sun", "water", "warmth", "compost", "shelter")):
        text = f"Tomatoes want {what} in the garden."
        add_with_score(memory, 25, text=text, id=what, session_id=f"s{n % 2}", **LASTING)
    clock.advance(timedelta(days=8))
    assert memory.maintain().summarised
    [summary] = memory.list(user_id="ann")
    assert summary.metadata == {"sessions": ["s0", "s1"]}
    assert memory.forget_session("s1", user_id="ann").erased == tuple(sorted([summary.id, "water", "compost"]))


@pytest.mark.parametrize("forgotten", ["s1", "s2"])
def test_text_told_in_two_sessions_is_found_at_once_after_one_of_them_is_forgotten(memory, clock, forgotten):
    for session in ("s1", "s2"):
        memory.add("I like green tea.", id=session, user_id="ann", session_id=session, tags=[f"of-{session}"])
        clock.advance(timedelta(hours=1))
    assert sum(map(len, memory.maintain().merged.values())) == 1
    assert memory.forget_session(forgotten, user_id="ann").erased == (forgotten,)
    (left,) = {"s1", "s2"} - {forgotten}
    assert [r.id for r in memory.search("green tea", user_id="ann").records] == [left]
    (record,) = memory.list(user_id="ann")
    assert (record.id, record.derived_from, f"of-{forgotten}" in record.tags) == (left, (), False)
    assert memory.maintain().restored == {}
    assert memory.audit.verify().ok


async def test_async_calls_run_on_a_limited_number_of_threads(memory):
    running, running_counts, lock, never_set = set(), [], threading.Lock(), threading.Event()

    def work(n):
        with lock:
            running.add(n)
            running_counts.append(len(running))
        never_set.wait(0.01)
        with lock:
            running.remove(n)
        return n, threading.current_thread().name

    results = await asyncio.gather(*(memory.run_async(work, n) for n in range(20)))
    assert [n for n, _ in results] == list(range(20))
    assert all(name.startswith("meve-memory") for _, name in results)
    assert max(running_counts) == MAX_WORKERS
    with pytest.raises(ValidationError, match="user_id"):
        await memory.run_async(memory.search, "tea", user_id=None)


async def test_nested_run_async_does_not_deadlock(memory):

    def outer():
        return asyncio.run(asyncio.wait_for(memory.run_async(lambda: threading.current_thread().name), 20))

    assert (await memory.run_async(outer)).startswith("meve-memory")


def test_forked_process_starts_its_own_threads(memory):
    asyncio.run(memory.run_async(memory.add, "I like tea.", user_id="ann"))
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            recall = asyncio.run(asyncio.wait_for(memory.run_async(memory.search, "tea", user_id="ann"), 20))
            os._exit(len(recall.records))
        os._exit(99)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


async def test_run_async_on_closed_memory_raises(memory):
    await memory.run_async(memory.add, "I like tea.", user_id="ann")
    assert [r.text for r in (await memory.run_async(memory.search, "tea", user_id="ann")).records] == ["I like tea."]
    memory.close()
    with pytest.raises(StorageError, match="is closed"):
        await memory.run_async(memory.search, "tea", user_id="ann")
    assert memory.run_async._threads == {}
