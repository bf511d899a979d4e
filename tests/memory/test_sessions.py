"""Conversations of a user: erased as a whole; and async callers, whose loop never waits."""

import asyncio
import contextlib
import os
import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from meve.errors import HoldError, StorageError, ValidationError
from meve.memory._async_runner import MAX_WORKERS
from tests.memories import archive

LASTING = {"user_id": "ann", "source": "chat_user", "ttl": timedelta(days=5_000)}


def test_a_session_is_forgotten_with_what_was_made_from_it_but_for_holds(memory):
    for name, session in (("a", "s1"), ("b", "s1"), ("c", "s2"), ("d", None)):
        memory.add(f"Turn {name}.", user_id="ann", id=name, session_id=session)
    memory.add("Of a.", user_id="ann", id="of-a", derived_from=["a"])
    memory.add("Turn a.", user_id="bob", id="a", session_id="s1")
    memory.hold("b", user_id="ann", why="a lawsuit")
    archive(memory, "s:ann", "a")
    done = memory.forget_session("s1", user_id="ann")
    assert (done.erased, done.held) == (("a", "of-a"), {"b": "a lawsuit"})
    assert [r.id for r in memory.list(user_id="ann", include_archived=True)] == ["b", "c", "d"]
    assert [r.id for r in memory.list(user_id="bob")] == ["a"]
    with pytest.raises(ValidationError, match="session_id must not be blank"):
        memory.forget_session(" ", user_id="ann")


def test_a_session_may_go_as_a_whole_or_not_at_all(memory, clock):
    memory.add("Turn a.", user_id="ann", id="a", session_id="s1", ttl=timedelta(hours=1))
    memory.add("Turn b.", user_id="ann", id="b", session_id="s1")
    memory.hold("a", user_id="ann", why="a lawsuit")
    with pytest.raises(HoldError, match="a lawsuit"):
        memory.forget_session("s1", user_id="ann", all_or_none=True)
    assert [r.id for r in memory.list(user_id="ann")] == ["a", "b"]
    clock.advance(timedelta(hours=1))  # what is over, and kept for a court alone, keeps nothing else
    assert memory.forget_session("s1", user_id="ann", all_or_none=True).erased == ("b",)


def test_a_summary_of_several_sessions_goes_with_any_of_them(memory, clock):
    for n, what in enumerate(("sun", "water", "warmth", "compost", "shelter")):
        memory.add(f"Tomatoes want {what} in the garden.", id=what, session_id=f"s{n % 2}", **LASTING)
    clock.advance(timedelta(days=8))
    with memory._runtime.store.writing() as transaction:
        for stored in transaction.all_records("s:ann"):
            transaction.replace("s:ann", replace(stored, record=replace(stored.record, reflection=25)))
    assert memory.maintain().summarised
    [made] = memory.list(user_id="ann")
    assert made.metadata == {"sessions": ["s0", "s1"]}
    assert memory.forget_session("s1", user_id="ann").erased == (made.id,)


async def test_async_callers_have_few_threads_that_are_not_the_loop_s(memory):
    running, most, guard, gate = set(), [], threading.Lock(), threading.Event()

    def work(n):
        with guard:
            running.add(n)
            most.append(len(running))
        gate.wait(0.01)
        with guard:
            running.remove(n)
        return n, threading.current_thread().name

    done = await asyncio.gather(*(memory.run_async(work, n) for n in range(20)))
    assert [n for n, _ in done] == list(range(20))
    assert all(name.startswith("meve-memory") for _, name in done)
    assert max(most) == MAX_WORKERS
    with pytest.raises(ValidationError, match="user_id"):
        await memory.run_async(memory.search, "tea", user_id=None)


async def test_what_works_aside_may_itself_ask_for_it(memory):
    """And doesn't wait for itself for ever."""

    def outer():
        return asyncio.run(asyncio.wait_for(memory.run_async(lambda: threading.current_thread().name), 20))

    assert (await memory.run_async(outer)).startswith("meve-memory")


def test_a_forked_process_has_threads_of_its_own(memory):
    asyncio.run(memory.run_async(memory.add, "I like tea.", user_id="ann"))
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            found = asyncio.run(asyncio.wait_for(memory.run_async(memory.search, "tea", user_id="ann"), 20))
            os._exit(len(found.records))
        os._exit(99)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


async def test_a_memory_that_was_closed_starts_nothing_more(memory):
    await memory.run_async(memory.add, "I like tea.", user_id="ann")
    assert [r.text for r in (await memory.run_async(memory.search, "tea", user_id="ann")).records] == ["I like tea."]
    memory.close()
    with pytest.raises(StorageError, match="is closed"):
        await memory.run_async(memory.search, "tea", user_id="ann")
    assert memory.run_async._threads is None
