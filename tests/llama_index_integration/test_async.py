"""Async calls: what a store or a retriever can be asked natively is awaited, what would block the loop is not on it."""

import asyncio
import gc
import threading

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore, MetadataFilter, MetadataFilters
from pydantic import PrivateAttr

from llama_index_meve import MeVeEmbedding, MeVePostprocessor, MeVeRetriever, create_meve_tool
from llama_index_meve._async_bridge import ask, off_loop
from meve.errors import ConfigurationError, RetrievalError, StaleWarning
from meve.testing.fakes import WordEmbedder
from tests.llama_index_integration.conftest import node, uid
from tests.llama_index_integration.stores import indexed

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Payload indexes have no effect")

BLUE = "blue sky"
PATIENCE = 60
"""Seconds, for what would else hang."""


def ids(found):
    return [each.node.node_id for each in found]


def here():
    return threading.get_ident()


class InMemory(SimpleVectorStore):
    """The stock one, with a record of where it was asked."""

    asked: list = []  # noqa: RUF012 - pydantic's

    def query(self, query, **kwargs):
        self.asked.append(("query", here()))
        return super().query(query, **kwargs)


class Blocking(BasePydanticVectorStore):
    """One that keeps nodes itself, as databases do, and has no async methods of its own."""

    stores_text: bool = True
    asked: list = []  # noqa: RUF012 - pydantic's
    _vectors: SimpleVectorStore = PrivateAttr(default_factory=SimpleVectorStore)
    _nodes: dict = PrivateAttr(default_factory=dict)

    @property
    def client(self):
        return None

    def add(self, nodes, **kwargs):
        self._nodes |= {each.node_id: each for each in nodes}
        return self._vectors.add(nodes, **kwargs)

    def delete(self, ref_doc_id, **kwargs):
        self._vectors.delete(ref_doc_id)

    def query(self, query, **kwargs):
        self.asked.append(("query", here()))
        return self._found(query)

    def _found(self, query):
        made = self._vectors.query(query)
        made.nodes = [self._nodes[i] for i in made.ids]
        return made


class Native(Blocking):
    """One that has."""

    async def aquery(self, query, **kwargs):
        self.asked.append(("aquery", here()))
        await asyncio.sleep(0)
        return self._found(query)


class Never(Native):
    """One that doesn't answer."""

    async def aquery(self, query, **kwargs):
        await asyncio.sleep(0.05)  # by then the thread waits for this; were it late, it would see that nobody waits
        self.asked.append("waits")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.asked.append("cancelled")
            raise


def over(kind, nodes, parts):
    store = kind(asked=[])
    return MeVeRetriever.from_index(indexed(None, nodes, store), **parts), store.asked


async def test_a_store_with_async_methods_is_awaited_on_the_loop(nodes, parts):
    retriever, asked = over(Native, nodes, parts)
    found = await retriever.aretrieve(BLUE)
    assert asked == [("aquery", here())]
    assert ids(found) == ids(retriever.retrieve(BLUE))
    assert asked[1:] == [("query", here())]


async def test_a_store_without_is_asked_off_the_loop(nodes, parts):
    retriever, asked = over(Blocking, nodes, parts)
    await retriever.aretrieve(BLUE)
    assert [how for how, _ in asked] == ["query"]
    assert asked[0][1] != here()


async def test_what_lives_in_memory_is_searched_on_the_loop_which_changes_it(nodes, parts):
    """As LlamaIndex does: neither dicts nor FAISS can be searched in one thread while another adds to them."""
    retriever, asked = over(InMemory, nodes, parts)
    await retriever.aretrieve(BLUE)
    assert asked == [("query", here())]


@pytest.mark.filterwarnings("ignore::meve.errors.StaleWarning")
@pytest.mark.parametrize("kind", ["SimpleVectorStore", "FaissVectorStore", "FaissMapVectorStore"])
async def test_an_index_grows_while_it_is_asked(kind, nodes, parts):
    index = indexed(kind, nodes)
    retriever = MeVeRetriever.from_index(index, **parts)

    async def grow(n):
        await index.ainsert_nodes([node(f"{n}-{i}", f"grey field {n} {i}") for i in range(5)])
        return [uid("sky")]

    async def found():
        return ids(await retriever.aretrieve(BLUE))[:1]

    assert await asyncio.gather(*[each for n in range(40) for each in (grow(n), found())]) == [[uid("sky")]] * 80
    assert await retriever.arefresh() == 204


async def test_many_at_once_wait_for_nobody(nodes, parts):
    """Neither for a store that answers on the loop, nor for embeddings in a pool of threads, nor for one another."""
    retriever, _ = over(Native, nodes, parts)
    last = MeVePostprocessor.make(fallback=retriever, **parts)
    given = [NodeWithScore(node=nodes[2])]
    alone = ids(await retriever.aretrieve(BLUE)), ids(await last.apostprocess_nodes(given, query_str=BLUE))
    async with asyncio.timeout(PATIENCE):
        plain = await asyncio.gather(*[retriever.aretrieve(BLUE) for _ in range(60)])
        nested = await asyncio.gather(*[last.apostprocess_nodes(given, query_str=BLUE) for _ in range(60)])
    assert [ids(found) for found in plain] == [alone[0]] * 60
    assert [ids(found) for found in nested] == [alone[1]] * 60


def test_threads_end_with_their_loop(nodes, parts):
    retriever, _ = over(Native, nodes, parts)

    async def several():
        await asyncio.gather(*[retriever.aretrieve(BLUE) for _ in range(5)])
        return [each for each in threading.enumerate() if each.name.startswith("meve_")]  # of the loop's pool alone

    threads = asyncio.run(several())
    assert threads
    gc.collect()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads)


async def test_who_leaves_cancels_what_is_awaited(nodes, parts):
    retriever, asked = over(Never, nodes, parts)
    task = asyncio.create_task(retriever.aretrieve(BLUE))
    async with asyncio.timeout(PATIENCE):
        while not asked:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while "cancelled" not in asked:
            await asyncio.sleep(0.001)
    assert asked == ["waits", "cancelled"]


async def test_who_has_left_asks_nothing_more():
    """Work that goes on in its thread after its caller was cancelled."""
    going, left, asked = threading.Event(), threading.Event(), []

    async def native():
        asked.append("on the loop")

    def work():
        going.set()
        left.wait(PATIENCE)
        try:
            ask(lambda: asked.append("here"), native)
        finally:
            left.clear()

    task = asyncio.create_task(off_loop(work))
    async with asyncio.timeout(PATIENCE):
        while not going.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        left.set()
        while left.is_set():
            await asyncio.sleep(0.001)
    assert asked == []


class Fallback(BaseRetriever):
    def __init__(self, nodes):
        self.nodes, self.asked = nodes, []
        super().__init__()

    def _retrieve(self, query_bundle):
        self.asked.append(("retrieve", here()))
        return [NodeWithScore(node=n, score=1.0) for n in self.nodes]


class NativeFallback(Fallback):
    async def _aretrieve(self, query_bundle):
        self.asked.append(("aretrieve", here()))
        return [NodeWithScore(node=n, score=1.0) for n in self.nodes]


async def test_a_fallback_with_an_async_way_is_awaited_and_another_is_asked_off_the_loop(nodes, parts):
    given = [NodeWithScore(node=nodes[2])]
    native, blocking = NativeFallback(nodes[:1]), Fallback(nodes[:1])
    for other in (native, blocking):
        made = MeVePostprocessor.make(fallback=other, **parts)
        assert ids(await made.apostprocess_nodes(given, query_str=BLUE)) == [uid("sky")]
    assert native.asked == [("aretrieve", here())]
    assert [how for how, _ in blocking.asked] == ["retrieve"]
    assert blocking.asked[0][1] != here()


async def test_a_fallback_may_block_the_loop_itself(nodes, parts):
    """It asks another retriever without awaiting it: that one mustn't wait for the loop."""
    inner, _ = over(Native, nodes, parts)

    class Rude(Fallback):
        async def _aretrieve(self, query_bundle):
            return inner.retrieve(query_bundle)

    made = MeVePostprocessor.make(fallback=Rude(nodes), **parts)
    async with asyncio.timeout(PATIENCE):
        found = await made.apostprocess_nodes([NodeWithScore(node=nodes[2])], query_str=BLUE)
    assert ids(found)[0] == uid("sky")


async def test_the_tool_awaits_too(nodes, parts):
    retriever, asked = over(Native, nodes, parts)
    answer = await create_meve_tool(retriever).acall(query=BLUE)
    assert "A blue sky today." in answer.content
    assert asked == [("aquery", here())]


async def test_what_an_awaited_store_raises_names_it(nodes, parts):
    class Broken(Native):
        async def aquery(self, query, **kwargs):
            raise OSError("unplugged")

    retriever, _ = over(Broken, nodes, parts)
    with pytest.raises(RetrievalError, match=r"searching Broken failed: OSError: unplugged"):
        await retriever.aretrieve(BLUE)


async def test_qdrant_with_an_async_client_alone(nodes, parts):
    """Everything but what can't be awaited, which says so."""
    from llama_index.vector_stores.qdrant import QdrantVectorStore
    from qdrant_client import AsyncQdrantClient

    client = AsyncQdrantClient(":memory:")
    store = QdrantVectorStore("c", aclient=client)
    index = VectorStoreIndex.from_vector_store(store, embed_model=MeVeEmbedding(WordEmbedder()))
    english = MetadataFilters(filters=[MetadataFilter(key="lang", value="en")])
    retriever = MeVeRetriever.from_index(index, filters=english, **parts)
    assert await retriever.aretrieve(BLUE) == []
    await index.ainsert_nodes(nodes)
    found = await retriever.aretrieve(BLUE)
    assert (ids(found)[0], found[0].node.text, found[0].node.metadata) == (uid("sky"), nodes[0].text, nodes[0].metadata)
    assert await retriever.arefresh() == 4
    by_words = MeVeRetriever(retriever.engine, sources="lexical", threshold=0.0, fallback_floor=0.0)
    assert uid("zebra") in ids(await by_words.aretrieve("zebra facts"))
    kept_out = MeVeRetriever(retriever.engine, filters=english, sources="lexical", threshold=0.0, fallback_floor=0.0)
    assert await kept_out.aretrieve("zebra facts") == []
    with pytest.raises(ConfigurationError, match="has an async client alone: await aretrieve"):
        retriever.retrieve(BLUE)
    await index.adelete_ref_doc("doc-zebra")
    with pytest.warns(StaleWarning):
        assert await by_words.aretrieve("zebra") == []
    await client.close()


async def test_words_are_read_anew_on_the_loop(nodes, parts):
    retriever, _ = over(InMemory, nodes, parts)
    retriever.engine.store.index.insert_nodes([node("yak", "Yaks yawn.")])
    assert await retriever.arefresh() == 5
    assert uid("yak") in ids(await retriever.aretrieve("yaks yawn"))
    with pytest.raises(ConfigurationError, match="nothing to refresh"):
        await MeVeRetriever.from_nodes(nodes, **parts).arefresh()


async def test_sync_calls_work_within_a_running_loop(nodes, parts):
    retriever, asked = over(Native, nodes, parts)
    last = MeVePostprocessor.make(**parts)
    found = retriever.retrieve(BLUE)
    assert ids(last.postprocess_nodes(found, query_bundle=QueryBundle(BLUE)))[0] == uid("sky")
    assert asked == [("query", here())]
