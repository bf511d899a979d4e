"""A vector store whose words keep in step: additions, replacements, removals, and LangChain's indexing API."""

import asyncio
import uuid

import pytest
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_meve import MeVeEmbeddings, MeVeRetriever, MeVeVectorStore
from meve.testing.fakes import WordEmbedder
from tests.langchain_skin.stores import KINDS

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
    assert not store.as_verified_retriever().engine.stale


def test_ids_that_are_made_are_those_of_both_sides(store):
    """A document that words find can be deleted by the id that it comes back with."""
    (made,) = store.add_documents([Document("zebra facts")])
    (found,) = store.as_verified_retriever().invoke("zebra facts", sources="lexical")
    store.delete([found.id])
    assert store.get_by_ids([made]) == []
    assert by_words(store, "zebra") == set()
    assert not store.as_verified_retriever().engine.stale


def test_of_equal_ids_the_last_counts_on_both_sides(store):
    i = uid("i")
    store.add_documents([Document(text, id=i, metadata={"n": 1}) for text in ("zebra facts", "yak facts")])
    assert [d.page_content for d in store.get_by_ids([i])] == ["yak facts"]
    assert by_words(store, "zebra") == set()
    assert by_words(store, "yak") == {i}


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
