"""The async methods: the same results off the event loop; a cancelled write is carried out and leaves no lock."""

import asyncio
import inspect
import threading

import pytest

from meve.errors import ModelError, ValidationError
from meve.memory import GovernedMemory
from meve.memory._operations import Operations
from meve.memory.items.items import Items
from meve.memory.messages.messages import Messages
from meve.testing.fakes import WordEmbedder
from tests.memories import open_memory


class Blocking(WordEmbedder):
    """Waits for `go` before it embeds passages; `begun` is set meanwhile."""

    def __init__(self):
        self.begun, self.go, self.fails = threading.Event(), threading.Event(), False

    def embed_passages(self, texts):
        self.begun.set()
        assert self.go.wait(30)
        if self.fails:
            raise RuntimeError("the device is gone")
        return super().embed_passages(texts)


async def begin_and_cancel(embedder, call):
    """Cancel a call while it embeds, then let it go on."""
    task = asyncio.create_task(call)
    assert await asyncio.to_thread(embedder.begun.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    embedder.go.set()


@pytest.mark.parametrize("of", [GovernedMemory, Operations, Items, Messages])
def test_an_async_method_is_named_after_its_method(of):
    methods = {name: value for name, value in vars(of).items() if inspect.iscoroutinefunction(value)}
    named = {name for name in methods if not name.startswith("__")} - {"aclose"}
    assert named
    assert all(inspect.isfunction(getattr(of, name.removeprefix("a"))) for name in named)
    assert all(methods[name].__name__ == name and methods[name].__doc__ for name in named)


async def test_async_methods_return_what_the_others_do(file):
    async with open_memory(file) as memory:
        record = await memory.aadd("The cat eats fish.", user_id="alice", source="doc")
        assert await memory.aget(record.id, user_id="alice") == record
        assert [r.id for r in await memory.alist(user_id="alice")] == [record.id]
        recall = await memory.asearch("What does the cat eat?", user_id="alice")
        assert recall.records[0].id == record.id
        assert (await memory.areflect(recall, answer="The cat eats fish.")).verdicts[record.id].outcome == "used"
        assert "fish" in (await memory.aprompt("What does the cat eat?", user_id="alice")).text
        await memory.items.aput(("a",), "k", {"n": 1}, user_id="alice")
        assert (await memory.items.aget(("a",), "k", user_id="alice")).value == {"n": 1}
        await memory.messages.aadd("s", [{"n": 1}], user_id="alice")
        assert await memory.messages.asessions(user_id="alice") == ["s"]
        assert (await memory.astats()).records == 3
        with pytest.raises(ValidationError, match="user_id"):
            await memory.asearch("tea", user_id=None)
        assert (await memory.aforget_user(user_id="alice")).found
    assert memory.closed


async def test_a_cancelled_write_that_has_begun_is_carried_out_and_leaves_no_lock(file):
    embedder = Blocking()
    memory = open_memory(file, embedder=embedder)
    await begin_and_cancel(embedder, memory.aadd("I like tea.", user_id="alice", id="tea"))
    await asyncio.wait_for(memory.aadd("I like chess.", user_id="alice", id="chess"), 30)
    assert [r.id for r in memory.list(user_id="alice")] == ["tea", "chess"]
    memory.close()


async def test_a_cancelled_write_that_waits_is_carried_out_too_even_before_close(file):
    embedder = Blocking()
    memory = open_memory(file, embedder=embedder)
    first = asyncio.create_task(memory.aadd("I like tea.", user_id="alice", id="tea"))
    second = asyncio.create_task(memory.aadd("I like chess.", user_id="alice", id="chess"))
    assert await asyncio.to_thread(embedder.begun.wait, 30)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    closing = asyncio.create_task(memory.aclose())
    await asyncio.sleep(0.05)
    assert not memory.closed
    embedder.go.set()
    await first
    await asyncio.wait_for(closing, 30)
    with open_memory(file) as again:
        assert [r.id for r in again.list(user_id="alice")] == ["tea", "chess"]


async def test_a_cancelled_read_that_waits_isnt_made(file):
    embedder = Blocking()
    memory = open_memory(file, embedder=embedder)
    writing = asyncio.create_task(memory.aadd("I like tea.", user_id="alice", id="tea"))
    assert await asyncio.to_thread(embedder.begun.wait, 30)
    reading = asyncio.create_task(memory.asearch("tea", user_id="alice"))
    await asyncio.sleep(0.05)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    embedder.go.set()
    await writing
    assert await memory.run_async(lambda: memory.audit.events(action="retrieve")) == []
    await memory.aclose()


async def test_the_event_loop_hears_of_a_cancelled_write_that_fails(file):
    embedder, heard = Blocking(), []
    embedder.fails = True
    asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))
    memory = open_memory(file, embedder=embedder)
    await begin_and_cancel(embedder, memory.aadd("I like tea.", user_id="alice"))
    await memory.run_async(lambda: None)
    await asyncio.sleep(0)
    assert [type(context["exception"]) for context in heard] == [ModelError]
    assert "caller was cancelled" in heard[0]["message"]
    await memory.aclose()


def test_the_end_of_an_event_loop_loses_no_write(file):
    """`asyncio.run` cancels what is left when its main task ends."""
    embedder = Blocking()
    memory = open_memory(file, embedder=embedder)

    async def main():
        calls = [memory.aadd(f"fact {n}", user_id="alice", id=str(n)) for n in range(3)]
        tasks = [asyncio.create_task(call) for call in calls]
        assert not any(task.done() for task in tasks)
        assert await asyncio.to_thread(embedder.begun.wait, 30)

    asyncio.run(main())
    embedder.go.set()
    memory.close()
    with open_memory(file) as again:
        assert [r.id for r in again.list(user_id="alice")] == ["0", "1", "2"]
