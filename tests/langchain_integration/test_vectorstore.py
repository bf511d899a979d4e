"""A vector store whose words keep in step: additions, replacements, removals, and LangChain's indexing API."""

import asyncio
import threading
import uuid

import pytest
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, aindex, index
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_meve import MeVeEmbeddings, MeVeRetriever, MeVeVectorStore
from meve.testing.fakes import WordEmbedder
from tests.langchain_integration.vector_stores import KINDS

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning:chromadb")


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def store(request, parts):
    return MeVeVectorStore(request.param.make(MeVeEmbeddings(WordEmbedder())), **parts)


def uid(name):
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def by_words(store, query):
    return {c.id for c in store.as_verified_retriever().context(query, sources="lexical").trace.candidates}


def test_both_sides_keep_in_step(store):
    """Sync and async; what is replaced is found by its new words alone."""
    a, b, w, z = map(uid, "abwz")
    store.add_documents([Document("zebra facts", id=a), Document("blue sky", id=b)])
    assert by_words(store, "zebra") == {a}
    store.add_documents([Document("yak facts", id=a)])
    assert by_words(store, "zebra") == set()
    assert by_words(store, "yak") == {a}
    asyncio.run(store.aadd_documents([Document("walrus", id=w)]))
    assert by_words(store, "walrus") == {w}
    store.delete([a, uid("missing")])
    asyncio.run(store.adelete([w]))
    assert by_words(store, "yak walrus") == set()
    assert store.add_texts(["zoo"], [{"n": 1}], ids=[z]) == [z]
    assert by_words(store, "zoo") == {z}
    assert not store.as_verified_retriever().engine.is_stale


def test_ids_that_are_made_are_those_of_both_sides(store):
    """A document that words find can be deleted by the id that it comes back with."""
    (made,) = store.add_documents([Document("zebra facts")])
    (found,) = store.as_verified_retriever().invoke("zebra facts", sources="lexical")
    store.delete([found.id])
    assert store.get_by_ids([made]) == []
    assert by_words(store, "zebra") == set()
    assert not store.as_verified_retriever().engine.is_stale


def test_of_equal_ids_the_last_counts_on_both_sides(store):
    i = uid("i")
    store.add_documents([Document(text, id=i, metadata={"n": 1}) for text in ("zebra facts", "yak facts")])
    assert [d.page_content for d in store.get_by_ids([i])] == ["yak facts"]
    assert by_words(store, "zebra") == set()
    assert by_words(store, "yak") == {i}


def test_any_text_can_be_an_id(store, parts):
    """Also where the store itself takes numbers and UUIDs alone; a retriever that is made later knows it too."""
    names = ["report.txt#3", "007", str(2**64), "²"]
    documents = [Document(f"zebra {n}", id=i, metadata={"n": n}) for n, i in enumerate(names)]
    assert store.add_documents(documents) == names
    assert {d.id for d in store.get_by_ids(names)} == set(names)
    later = MeVeRetriever.from_vectorstore(store.inner, **parts)
    for made in (store.as_verified_retriever(), later):
        for sources in ("dense", "lexical"):
            assert {d.id for d in made.invoke("zebra", sources=sources)} == set(names)
    store.delete(names[:3])
    assert by_words(store, "zebra") == {"²"}
    assert [d.id for d in store.similarity_search("zebra", k=9)] == ["²"]


def test_what_its_searches_return_is_what_went_in(store):
    """Id and metadata, whichever search, and without what the store adds of its own."""
    one = Document("blue sky", id=uid("b"), metadata={"lang": "en"})
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


def test_words_are_indexed_off_the_event_loop(store, monkeypatch):
    """Adding and deleting alike."""
    where = []
    for name in ("index", "forget"):
        whole = getattr(store._engine, name)
        monkeypatch.setattr(
            store._engine, name, lambda told, whole=whole: (where.append(threading.get_ident()), whole(told))
        )

    async def change():
        await store.aadd_documents([Document("blue sky", id=uid("b"))])
        await store.adelete([uid("b")])

    asyncio.run(change())
    assert len(where) >= 2
    assert threading.get_ident() not in where


def test_what_the_store_did_not_delete_is_not_forgotten(parts):
    """Deleting may fail, and says so by False; all is deleted where the store takes None for all."""

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
    assert not store.as_verified_retriever().engine.is_stale


def test_its_retrievers_verify_and_share_one_engine(store):
    store.add_documents([Document("blue sky", id=uid("b")), Document("grass", id=uid("g"))])
    one, other = store.as_verified_retriever(k=1), store.as_verified_retriever()
    assert one.engine is other.engine
    assert [d.page_content for d in one.invoke("blue sky")] == ["blue sky"]


def test_options_of_a_retriever_are_not_swallowed(parts):
    """They belong to the retrievers that it makes."""
    with pytest.raises(TypeError, match="filter"):
        MeVeVectorStore(InMemoryVectorStore(MeVeEmbeddings(WordEmbedder())), filter={"lang": "en"}, **parts)


def test_a_retriever_over_it_is_one_over_what_it_goes_around(store, parts):
    store.add_documents([Document("zebra facts", id=uid("z"))])
    made = MeVeRetriever.from_vectorstore(store, **parts)
    assert {c.id for c in made.context("zebra", sources="lexical").trace.candidates} == {uid("z")}


def test_its_own_searches_are_the_inner_stores(store):
    """Those by diversity too."""
    store.add_documents([Document("blue sky", id=uid("b")), Document("grass", id=uid("g"))])
    found = store.as_retriever(search_type="mmr", search_kwargs={"k": 1, "fetch_k": 2}).invoke("blue sky")
    assert [d.page_content for d in found] == ["blue sky"]


def test_langchains_indexing_works_and_its_cleanup_reaches_the_words(store):
    manager = InMemoryRecordManager("test")
    manager.create_schema()

    def key(document):  # a UUID, as Qdrant demands
        return uid(document.page_content)

    def put(*texts):
        documents = [Document(text, metadata={"source": "s"}) for text in texts]
        return index(documents, manager, store, cleanup="full", source_id_key="source", key_encoder=key)

    assert put("zebra facts", "blue sky")["num_added"] == 2
    assert put("zebra facts", "blue sky")["num_skipped"] == 2
    assert put("blue sky")["num_deleted"] == 1
    assert by_words(store, "zebra") == set()
    assert len(by_words(store, "blue")) == 1


def test_langchains_indexing_works_on_a_loop_and_with_long_keys(store):
    """Keys by SHA-256 are no UUIDs, and every store takes them here."""
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
