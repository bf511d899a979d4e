"""Async calls: native async methods are awaited on the loop, blocking methods run in a thread."""

import asyncio
import gc
import threading

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

from llama_index_meve import MeVeEmbedding, MeVePostprocessor, MeVeRetriever, create_meve_tool
from llama_index_meve._async_bridge import await_or_call, run_in_thread
from meve.errors import ConfigurationError, RetrievalError, StaleWarning
from meve.testing.fakes import WordEmbedder
from tests.llama_index_integration.conftest import RecordingRetriever, ids, node, uid
from tests.llama_index_integration.vector_stores import TextStore, build_index

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Payload indexes have no effect")

BLUE = "blue sky"
TIMEOUT = 60
"""Seconds after which a hanging test fails."""


def thread_id():
    return threading.get_ident()


class RecordingSimpleStore(SimpleVectorStore):
    """A SimpleVectorStore that records the thread of each query."""

    calls: list = []  # noqa: RUF012 - pydantic's

    def query(self, query, **kwargs):
        self.calls.append(("query", thread_id()))
        return super().query(query, **kwargs)


class BlockingStore(TextStore):
    calls: list = []  # noqa: RUF012 - pydantic's

    def query(self, query, **kwargs):
        self.calls.append(("query", thread_id()))
        return self._search(query)


class AsyncStore(BlockingStore):
    async def aquery(self, query, **kwargs):
        self.calls.append(("aquery", thread_id()))
        await asyncio.sleep(0)
        return self._search(query)


class HangingStore(AsyncStore):
    """Never answers."""

    async def aquery(self, query, **kwargs):
        await asyncio.sleep(0.05)  # by then the thread waits for this coroutine
        self.calls.append("waits")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.calls.append("cancelled")
            raise


def retriever_over(kind, nodes, parts):
    store = kind(calls=[])
    return MeVeRetriever.from_index(build_index(None, nodes, store), **parts), store.calls


async def test_store_with_async_methods_is_awaited_on_the_loop(nodes, parts):
    retriever, calls = retriever_over(AsyncStore, nodes, parts)
    result = await retriever.aretrieve(BLUE)
    assert calls == [("aquery", thread_id())]
    assert ids(result) == ids(retriever.retrieve(BLUE))
    assert calls[1:] == [("query", thread_id())]


async def test_blocking_store_is_queried_off_the_loop(nodes, parts):
    retriever, calls = retriever_over(BlockingStore, nodes, parts)
    await retriever.aretrieve(BLUE)
    assert [how for how, _ in calls] == ["query"]
    assert calls[0][1] != thread_id()


async def test_in_memory_store_is_searched_on_the_loop(nodes, parts):
    """Neither dicts nor FAISS may be searched in one thread while another adds to them."""
    retriever, calls = retriever_over(RecordingSimpleStore, nodes, parts)
    await retriever.aretrieve(BLUE)
    assert calls == [("query", thread_id())]


@pytest.mark.filterwarnings("ignore::meve.errors.StaleWarning")
@pytest.mark.parametrize("kind", ["SimpleVectorStore", "FaissVectorStore", "FaissMapVectorStore"])
async def test_index_can_be_queried_while_it_grows(kind, nodes, parts):
    index = build_index(kind, nodes)
    retriever = MeVeRetriever.from_index(index, **parts)

    async def grow(n):
        await index.ainsert_nodes([node(f"{n}-{i}", f"grey field {n} {i}") for i in range(5)])
        return [uid("sky")]

    async def first_id():
        return ids(await retriever.aretrieve(BLUE))[:1]

    assert await asyncio.gather(*[each for n in range(40) for each in (grow(n), first_id())]) == [[uid("sky")]] * 80
    assert await retriever.arefresh() == 204


async def test_many_concurrent_calls_do_not_deadlock(nodes, parts):
    retriever, _ = retriever_over(AsyncStore, nodes, parts)
    postprocessor = MeVePostprocessor.make(fallback=retriever, **parts)
    given = [NodeWithScore(node=nodes[2])]
    alone = ids(await retriever.aretrieve(BLUE)), ids(await postprocessor.apostprocess_nodes(given, query_str=BLUE))
    async with asyncio.timeout(TIMEOUT):
        plain = await asyncio.gather(*[retriever.aretrieve(BLUE) for _ in range(60)])
        nested = await asyncio.gather(*[postprocessor.apostprocess_nodes(given, query_str=BLUE) for _ in range(60)])
    assert [ids(result) for result in plain] == [alone[0]] * 60
    assert [ids(result) for result in nested] == [alone[1]] * 60


def test_threads_end_with_their_loop(nodes, parts):
    retriever, _ = retriever_over(AsyncStore, nodes, parts)

    async def several():
        await asyncio.gather(*[retriever.aretrieve(BLUE) for _ in range(5)])
        return [each for each in threading.enumerate() if each.name.startswith("meve_")]  # threads of the pool

    threads = asyncio.run(several())
    assert threads
    gc.collect()
    for thread in threads:
        thread.join(TIMEOUT)
    assert not any(thread.is_alive() for thread in threads)


async def test_cancelling_the_caller_cancels_the_awaited_query(nodes, parts):
    retriever, calls = retriever_over(HangingStore, nodes, parts)
    task = asyncio.create_task(retriever.aretrieve(BLUE))
    async with asyncio.timeout(TIMEOUT):
        while not calls:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while "cancelled" not in calls:
            await asyncio.sleep(0.001)
    assert calls == ["waits", "cancelled"]


async def test_work_of_a_cancelled_caller_awaits_nothing_more():
    going, left, calls = threading.Event(), threading.Event(), []

    async def native():
        calls.append("on the loop")

    def work():
        going.set()
        left.wait(TIMEOUT)
        try:
            await_or_call(lambda: calls.append("here"), native)
        finally:
            left.clear()

    task = asyncio.create_task(run_in_thread(work))
    async with asyncio.timeout(TIMEOUT):
        while not going.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        left.set()
        while left.is_set():
            await asyncio.sleep(0.001)
    assert calls == []


class AsyncRetriever(RecordingRetriever):
    async def _aretrieve(self, query_bundle):
        return self._retrieve(query_bundle)


async def test_async_fallback_is_awaited_and_blocking_fallback_runs_off_the_loop(nodes, parts):
    given = [NodeWithScore(node=nodes[2])]
    native, blocking = AsyncRetriever(nodes[:1]), RecordingRetriever(nodes[:1])
    for other in (native, blocking):
        postprocessor = MeVePostprocessor.make(fallback=other, **parts)
        assert ids(await postprocessor.apostprocess_nodes(given, query_str=BLUE)) == [uid("sky")]
    assert native.threads == [thread_id()]
    assert len(blocking.threads) == 1
    assert blocking.threads != [thread_id()]


async def test_async_fallback_that_blocks_the_loop_does_not_deadlock(nodes, parts):
    """It calls another retriever synchronously, which must not wait for the loop."""
    inner, _ = retriever_over(AsyncStore, nodes, parts)

    class BlockingAsyncRetriever(RecordingRetriever):
        async def _aretrieve(self, query_bundle):
            return inner.retrieve(query_bundle)

    postprocessor = MeVePostprocessor.make(fallback=BlockingAsyncRetriever(nodes), **parts)
    async with asyncio.timeout(TIMEOUT):
        result = await postprocessor.apostprocess_nodes([NodeWithScore(node=nodes[2])], query_str=BLUE)
    assert ids(result)[0] == uid("sky")


async def test_tool_awaits_an_async_store(nodes, parts):
    retriever, calls = retriever_over(AsyncStore, nodes, parts)
    answer = await create_meve_tool(retriever).acall(query=BLUE)
    assert "A blue sky today." in answer.content
    assert calls == [("aquery", thread_id())]


async def test_error_of_an_awaited_store_names_the_store(nodes, parts):
    class Broken(AsyncStore):
        async def aquery(self, query, **kwargs):
            raise OSError("unplugged")

    retriever, _ = retriever_over(Broken, nodes, parts)
    with pytest.raises(RetrievalError, match=r"searching Broken failed: OSError: unplugged"):
        await retriever.aretrieve(BLUE)


async def test_qdrant_with_only_an_async_client_works_when_awaited(nodes, parts):
    from llama_index.vector_stores.qdrant import QdrantVectorStore
    from qdrant_client import AsyncQdrantClient

    client = AsyncQdrantClient(":memory:")
    store = QdrantVectorStore("c", aclient=client)
    index = VectorStoreIndex.from_vector_store(store, embed_model=MeVeEmbedding(WordEmbedder()))
    english = MetadataFilters(filters=[MetadataFilter(key="lang", value="en")])
    retriever = MeVeRetriever.from_index(index, filters=english, **parts)
    assert await retriever.aretrieve(BLUE) == []
    await index.ainsert_nodes(nodes)
    result = await retriever.aretrieve(BLUE)
    assert ids(result)[0] == uid("sky")
    assert result[0].node.text == nodes[0].text
    assert result[0].node.metadata == {**nodes[0].metadata, "meve_verified": True}
    assert await retriever.arefresh() == 4
    by_words = MeVeRetriever(retriever.retriever, sources="lexical", threshold=0.0, fallback_floor=0.0)
    assert uid("zebra") in ids(await by_words.aretrieve("zebra facts"))
    kept_out = MeVeRetriever(retriever.retriever, filters=english, sources="lexical", threshold=0.0, fallback_floor=0.0)
    assert await kept_out.aretrieve("zebra facts") == []
    with pytest.raises(ConfigurationError, match="has only an async client: await aretrieve"):
        retriever.retrieve(BLUE)
    await index.adelete_ref_doc("doc-zebra")
    with pytest.warns(StaleWarning):
        assert await by_words.aretrieve("zebra") == []
    await client.close()


async def test_arefresh_indexes_new_nodes_for_keyword_search(nodes, parts):
    retriever, _ = retriever_over(RecordingSimpleStore, nodes, parts)
    retriever.retriever.store.index.insert_nodes([node("yak", "Yaks yawn.")])
    assert await retriever.arefresh() == 5
    assert uid("yak") in ids(await retriever.aretrieve("yaks yawn"))
    with pytest.raises(ConfigurationError, match="nothing to refresh"):
        await MeVeRetriever.from_nodes(nodes, **parts).arefresh()


async def test_sync_calls_work_within_a_running_loop(nodes, parts):
    retriever, calls = retriever_over(AsyncStore, nodes, parts)
    postprocessor = MeVePostprocessor.make(**parts)
    result = retriever.retrieve(BLUE)
    assert ids(postprocessor.postprocess_nodes(result, query_bundle=QueryBundle(BLUE)))[0] == uid("sky")
    assert calls == [("query", thread_id())]
