"""MeVeVectorStore keeps its keyword index in step with the vectors, also under LangChain's indexing API."""

import asyncio
import threading

import pytest
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, aindex, index
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_meve import MeVeEmbeddings, MeVeRetriever, MeVeVectorStore
from meve.errors import ConfigurationError
from meve.testing.external_store_contract import make_id
from meve.testing.fakes import WordEmbedder
from tests.langchain_integration.vector_stores import KINDS

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning:chromadb")


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def store(request, parts):
    return MeVeVectorStore(request.param.make(MeVeEmbeddings(WordEmbedder())), **parts)


def by_words(store, query):
    return {c.id for c in store.as_verified_retriever().context(query, sources="lexical").trace.candidates}


def test_additions_and_deletions_update_keyword_index(store):
    a, b, w, z = map(make_id, "abwz")
    store.add_documents([Document("zebra facts", id=a), Document("blue sky", id=b)])
    assert by_words(store, "zebra") == {a}
    store.add_documents([Document("yak facts", id=a)])
    assert by_words(store, "zebra") == set()
    assert by_words(store, "yak") == {a}
    asyncio.run(store.aadd_documents([Document("walrus", id=w)]))
    assert by_words(store, "walrus") == {w}
    store.delete([a, make_id("missing")])
    asyncio.run(store.adelete([w]))
    assert by_words(store, "yak walrus") == set()
    assert store.add_texts(["zoo"], [{"n": 1}], ids=[z]) == [z]
    assert by_words(store, "zoo") == {z}
    assert not store.as_verified_retriever().retriever.is_stale


@pytest.mark.parametrize("is_async", [False, True])
def test_texts_may_come_from_a_generator(store, is_async):
    texts = (text for text in ("zebra facts", "blue sky"))
    metadatas = [{"n": 1}, {"n": 2}]
    ids = asyncio.run(store.aadd_texts(texts, metadatas)) if is_async else store.add_texts(texts, metadatas)
    assert {d.page_content for d in store.get_by_ids(ids)} == {"zebra facts", "blue sky"}
    assert by_words(store, "zebra") == {ids[0]}


def test_async_additions_await_the_embeddings(parts):
    class AsyncOnly(MeVeEmbeddings):
        async def aembed_documents(self, texts):
            await asyncio.sleep(0)
            return MeVeEmbeddings(WordEmbedder()).embed_documents(texts)

        def embed_documents(self, texts):
            raise AssertionError("the blocking method must not be called")

    store = MeVeVectorStore(InMemoryVectorStore(AsyncOnly(WordEmbedder())), **parts)
    assert asyncio.run(store.aadd_texts(["zebra facts"], ids=["a"])) == ["a"]
    assert asyncio.run(store.aadd_documents([Document("yak facts", id="b")])) == ["b"]
    assert by_words(store, "zebra") == {"a"}
    assert by_words(store, "yak") == {"b"}
    assert not store.as_verified_retriever().retriever.is_stale


@pytest.mark.parametrize("options", [{"ids": ["1"]}, {"ids": ["1", "2", "3"]}, {"metadatas": [{}]}])
def test_each_text_needs_its_id_and_metadata(parts, options):
    store = MeVeVectorStore(InMemoryVectorStore(MeVeEmbeddings(WordEmbedder())), **parts)
    with pytest.raises(ValueError, match=r"must have one entry per \w+, got \d for 2"):
        store.add_texts(["zebra facts", "blue sky"], **options)
    with pytest.raises(ValueError, match=r"must have one entry per \w+, got \d for 2"):
        asyncio.run(store.aadd_texts(["zebra facts", "blue sky"], **options))
    assert store.similarity_search("zebra facts") == []


def test_generated_id_deletes_from_store_and_keyword_index(store):
    (new_id,) = store.add_documents([Document("zebra facts")])
    (document,) = store.as_verified_retriever().invoke("zebra facts", sources="lexical")
    store.delete([document.id])
    assert store.get_by_ids([new_id]) == []
    assert by_words(store, "zebra") == set()
    assert not store.as_verified_retriever().retriever.is_stale


def test_last_document_of_equal_ids_is_kept(store):
    i = make_id("i")
    store.add_documents([Document(text, id=i, metadata={"n": 1}) for text in ("zebra facts", "yak facts")])
    assert [d.page_content for d in store.get_by_ids([i])] == ["yak facts"]
    assert by_words(store, "zebra") == set()
    assert by_words(store, "yak") == {i}


def test_any_text_is_a_valid_id(store, parts):
    """Also over Qdrant, and for a retriever that is built later."""
    names = ["report.txt#3", "007", str(2**64), "²"]
    documents = [Document(f"zebra {n}", id=i, metadata={"n": n}) for n, i in enumerate(names)]
    assert store.add_documents(documents) == names
    assert {d.id for d in store.get_by_ids(names)} == set(names)
    later = MeVeRetriever.from_vectorstore(store.inner, **parts)
    for retriever in (store.as_verified_retriever(), later):
        for sources in ("dense", "lexical"):
            assert {d.id for d in retriever.invoke("zebra", sources=sources)} == set(names)
    store.delete(names[:3])
    assert by_words(store, "zebra") == {"²"}
    assert [d.id for d in store.similarity_search("zebra", k=9)] == ["²"]


def test_searches_return_documents_as_added(store):
    one = Document("blue sky", id=make_id("b"), metadata={"lang": "en"})
    store.add_documents([one])
    vector = store.embeddings.embed_query("blue sky")
    assert store.similarity_search("blue sky") == [one]
    assert asyncio.run(store.asimilarity_search("blue sky")) == [one]
    assert [document for document, _ in store.similarity_search_with_score("blue sky")] == [one]
    assert store.similarity_search_by_vector(vector) == [one]
    assert store.max_marginal_relevance_search("blue sky", k=1) == [one]
    assert store.max_marginal_relevance_search_by_vector(vector, k=1) == [one]
    assert store.get_by_ids([one.id]) == asyncio.run(store.aget_by_ids([one.id])) == [one]
    assert one.metadata == {"lang": "en"}


def test_keyword_index_is_updated_off_event_loop(store, monkeypatch):
    threads = []
    for name in ("index", "unindex"):
        original = getattr(store._retriever, name)
        monkeypatch.setattr(
            store._retriever, name, lambda ids, call=original: (threads.append(threading.get_ident()), call(ids))
        )

    async def change():
        await store.aadd_documents([Document("blue sky", id=make_id("b"))])
        await store.adelete([make_id("b")])

    asyncio.run(change())
    assert len(threads) >= 2
    assert threading.get_ident() not in threads


def test_failed_delete_keeps_keyword_index(parts):

    class Reluctant(InMemoryVectorStore):
        def delete(self, ids=None, **kwargs):
            if ids is not None:
                return False
            self.store.clear()
            return True

    store = MeVeVectorStore(Reluctant(MeVeEmbeddings(WordEmbedder())), **parts)
    store.add_documents([Document("zebra facts", id="z")])
    assert store.delete(["z"]) is False
    assert by_words(store, "zebra") == {"z"}
    assert store.delete()
    assert by_words(store, "zebra") == set()
    assert not store.as_verified_retriever().retriever.is_stale


def test_retrievers_of_store_share_index(store):
    store.add_documents([Document("blue sky", id=make_id("b")), Document("grass", id=make_id("g"))])
    one, other = store.as_verified_retriever(k=1), store.as_verified_retriever()
    assert one.retriever is other.retriever
    assert [d.page_content for d in one.invoke("blue sky")] == ["blue sky"]


def test_retriever_options_are_refused(parts):
    with pytest.raises(ConfigurationError, match="unknown option 'filter'"):
        MeVeVectorStore(InMemoryVectorStore(MeVeEmbeddings(WordEmbedder())), filter={"lang": "en"}, **parts)


@pytest.mark.parametrize("door", [MeVeVectorStore, MeVeRetriever.from_vectorstore])
def test_what_is_no_vector_store_is_refused(door, parts):
    with pytest.raises(ConfigurationError, match="must be a LangChain VectorStore, got MeVeEmbeddings"):
        door(MeVeEmbeddings(WordEmbedder()), **parts)


def test_retriever_over_wrapper_uses_inner_store(store, parts):
    store.add_documents([Document("zebra facts", id=make_id("z"))])
    new_retriever = MeVeRetriever.from_vectorstore(store, **parts)
    assert {c.id for c in new_retriever.context("zebra", sources="lexical").trace.candidates} == {make_id("z")}


def test_mmr_search_is_that_of_inner_store(store):
    store.add_documents([Document("blue sky", id=make_id("b")), Document("grass", id=make_id("g"))])
    results = store.as_retriever(search_type="mmr", search_kwargs={"k": 1, "fetch_k": 2}).invoke("blue sky")
    assert [d.page_content for d in results] == ["blue sky"]


def test_indexing_api_cleanup_updates_keyword_index(store):
    manager = InMemoryRecordManager("test")
    manager.create_schema()

    def key(document):  # a UUID, as Qdrant demands
        return make_id(document.page_content)

    def put(*texts):
        documents = [Document(text, metadata={"source": "s"}) for text in texts]
        return index(documents, manager, store, cleanup="full", source_id_key="source", key_encoder=key)

    assert put("zebra facts", "blue sky")["num_added"] == 2
    assert put("zebra facts", "blue sky")["num_skipped"] == 2
    assert put("blue sky")["num_deleted"] == 1
    assert by_words(store, "zebra") == set()
    assert len(by_words(store, "blue")) == 1


def test_async_indexing_api_accepts_sha256_keys(store):
    """Keys by SHA-256 are no UUIDs."""
    manager = InMemoryRecordManager("test")
    manager.create_schema()

    async def put(*texts):
        documents = [Document(text, metadata={"source": "s"}) for text in texts]
        how = {"cleanup": "full", "source_id_key": "source", "key_encoder": "sha256"}
        return await aindex(documents, manager, store, **how)

    assert asyncio.run(put("zebra facts", "blue sky"))["num_added"] == 2
    assert asyncio.run(put("blue sky"))["num_deleted"] == 1
    assert by_words(store, "zebra") == set()
    assert len(by_words(store, "blue")) == 1
