"""A vector store whose words keep in step: additions, replacements, removals, and LangChain's indexing API."""

import asyncio

import pytest
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_meve import MeVeEmbeddings, MeVeVectorStore
from meve.testing.fakes import WordEmbedder


@pytest.fixture
def store(parts):
    return MeVeVectorStore(InMemoryVectorStore(MeVeEmbeddings(WordEmbedder())), **parts)


def by_words(store, query):
    return {c.id for c in store.as_verified_retriever().context(query, sources="lexical").trace.candidates}


def test_both_sides_keep_in_step(store):
    """Sync and async; what is replaced is found by its new words alone."""
    store.add_documents([Document("zebra facts", id="a"), Document("blue sky", id="b")])
    assert by_words(store, "zebra") == {"a"}
    store.add_documents([Document("yak facts", id="a")])
    assert by_words(store, "zebra") == set()
    assert by_words(store, "yak") == {"a"}
    asyncio.run(store.aadd_documents([Document("walrus", id="w")]))
    assert by_words(store, "walrus") == {"w"}
    store.delete(["a"])
    asyncio.run(store.adelete(["w"]))
    assert by_words(store, "yak walrus") == set()
    assert not store.as_verified_retriever().engine.stale
    assert store.add_texts(["zoo"], [{"n": 1}], ids=["z"]) == ["z"]
    assert by_words(store, "zoo") == {"z"}


def test_its_retrievers_verify_and_share_one_engine(store):
    store.add_documents([Document("blue sky", id="b"), Document("grass", id="g")])
    one, other = store.as_verified_retriever(k=1), store.as_verified_retriever()
    assert one.engine is other.engine
    assert [d.id for d in one.invoke("blue sky")] == ["b"]


def test_langchains_indexing_works_and_its_cleanup_reaches_the_words(store):
    manager = InMemoryRecordManager("test")
    manager.create_schema()

    def put(*texts):
        documents = [Document(text, metadata={"source": "s"}) for text in texts]
        return index(documents, manager, store, cleanup="full", source_id_key="source", key_encoder="sha256")

    assert put("zebra facts", "blue sky")["num_added"] == 2
    assert put("zebra facts", "blue sky")["num_skipped"] == 2
    assert put("blue sky")["num_deleted"] == 1
    assert by_words(store, "zebra") == set()
    assert len(by_words(store, "blue")) == 1
