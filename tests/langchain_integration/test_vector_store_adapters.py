"""Phase 1 over stores that users run: filters, removals, additions behind one's back, and fidelity. The real stores."""

import asyncio
import uuid

import pytest
from langchain_core.documents import Document

from langchain_meve import MeVeEmbeddings, MeVeRetriever
from langchain_meve._vector_store_adapters import VectorStoreAdapter, adapt_vector_store
from meve.errors import ConfigurationError, StaleWarning
from meve.testing.fakes import WordEmbedder
from tests.langchain_integration.vector_stores import KINDS

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning:chromadb")


def uid(name):
    """An id that every store takes."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def named(documents):
    return [d.model_copy(update={"id": uid(d.id)}) for d in documents]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request):
    return request.param


@pytest.fixture
def filled(kind, documents):
    store = kind.make(MeVeEmbeddings(WordEmbedder()))
    given = named(documents)
    store.add_documents(given, ids=[d.id for d in given])
    return store


@pytest.fixture
def retriever(filled, parts):
    return MeVeRetriever.from_vectorstore(filled, **parts)


def found_ids(context):
    return {c.id for c in context.trace.candidates}


def test_it_is_known_here(kind, filled):
    """So that it can be listed, counted, and asked what a filter admits."""
    store = adapt_vector_store(filled)
    assert type(store) is not VectorStoreAdapter
    assert store.name == kind.name
    assert store.size() == 4
    assert {p.id for p in store.list_passages()} == {uid(i) for i in ("sky", "sea", "zebra", "grass")}


def test_documents_come_back_as_they_went_in(retriever, documents):
    """Id, text and metadata, with the account beside; sync and async."""
    found = retriever.invoke("blue sky")
    assert found[0].id == uid("sky")
    assert found[0].page_content == "A blue sky today."
    assert {**found[0].metadata, **documents[0].metadata} == found[0].metadata
    assert found[0].metadata["meve_verified"]
    assert asyncio.run(retriever.ainvoke("blue sky")) == found


def test_words_find_what_vectors_miss(retriever):
    """The store brings one candidate, the words another."""
    context = retriever.context("blue zebra", candidates=1, fallback_k=0)
    assert uid("zebra") in found_ids(context)
    assert {c.origin for c in context.trace.candidates} == {"dense", "lexical"}


def test_a_filter_reaches_the_store_and_the_words_alike(kind, retriever):
    """What it excludes never comes back, not even with every bar lowered."""
    for options in ({}, {"sources": "lexical"}, {"sources": "dense"}, {"mode": "standard_rag"}):
        context = retriever.context("zebra facts", filter=kind.english(), threshold=0.0, fallback_floor=0.0, **options)
        assert uid("zebra") not in found_ids(context), options
    assert retriever.context("blue sky", filter=kind.english(), sources="lexical").passages


def test_a_filter_leaves_as_many_as_were_asked_for(kind, parts):
    """A store that filters what it fetched first must fetch enough: of fifty, two are admitted, and both are found."""
    store = kind.make(MeVeEmbeddings(WordEmbedder()))
    many = [Document(f"zebra zebra number {n}", id=uid(f"z{n}"), metadata={"lang": "de"}) for n in range(50)]
    mine = [Document(f"an animal like a zebra {n}", id=uid(f"m{n}"), metadata={"lang": "en"}) for n in range(2)]
    store.add_documents([*many, *mine], ids=[d.id for d in [*many, *mine]])
    retriever = MeVeRetriever.from_vectorstore(store, filter=kind.english(), **parts)
    for sources in ("dense", "lexical"):
        context = retriever.context("zebra", sources=sources, candidates=2)
        assert found_ids(context) == {uid("m0"), uid("m1")}, sources


def test_what_is_removed_behind_its_back_is_gone_from_every_phase(filled, retriever):
    """Although its words are still known; that they lag is said once the store can count."""
    filled.delete([uid("zebra")])
    with pytest.warns(StaleWarning, match="refresh"):
        context = retriever.context("zebra facts", threshold=0.0, fallback_floor=0.0)
    assert uid("zebra") not in found_ids(context)
    assert retriever.engine.refresh() == 3


def test_what_is_added_behind_its_back_is_told_and_can_be_read(filled, retriever):
    new = Document("Yaks yawn.", id=uid("yak"), metadata={"lang": "en"})
    filled.add_documents([new], ids=[new.id])
    assert retriever.engine.is_stale
    with pytest.warns(StaleWarning):
        assert uid("yak") in found_ids(retriever.context("yaks yawn"))
    retriever.engine.refresh()
    assert not retriever.engine.is_stale
    assert uid("yak") in found_ids(retriever.context("yawn", sources="lexical"))


def test_langsmith_is_told_which_store(kind, retriever):
    assert retriever._get_ls_params()["ls_vector_store_provider"] == kind.name


def test_a_store_that_is_not_known_is_searched_by_vectors_and_words_if_given(documents, parts):
    """Without documents by vectors alone; with a filter, words admit none."""
    inner = KINDS[0].make(MeVeEmbeddings(WordEmbedder()))

    class Mine(type(inner).__mro__[1]):  # a VectorStore, and no InMemoryVectorStore
        def similarity_search(self, query, k=4, **kwargs):
            return inner.similarity_search(query, k=k, **kwargs)

        def get_by_ids(self, ids, /):
            return inner.get_by_ids(ids)

        @classmethod
        def from_texts(cls, *args, **kwargs):
            raise NotImplementedError

    given = named(documents)
    inner.add_documents(given, ids=[d.id for d in given])
    alone = MeVeRetriever.from_vectorstore(Mine(), **parts)
    assert {c.origin for c in alone.context("blue zebra").trace.candidates} == {"dense"}
    with pytest.raises(ConfigurationError, match="can't list its documents"):
        alone.engine.refresh()
    both = MeVeRetriever.from_vectorstore(Mine(), documents=given, filter_keyword="filter", **parts)
    assert "lexical" in {c.origin for c in both.context("blue zebra", candidates=1).trace.candidates}
    english = lambda document: document.metadata["lang"] == "en"  # noqa: E731
    assert uid("zebra") not in found_ids(both.context("zebra", filter=english, threshold=0.0, fallback_floor=0.0))
    with pytest.raises(ConfigurationError, match="filter_keyword"):
        alone.invoke("zebra", filter=english)
    with pytest.raises(ConfigurationError, match="1 of 2 documents have no id"):
        MeVeRetriever.from_vectorstore(Mine(), documents=[given[0], Document("nameless")], **parts)
    Mine.get_by_ids = type(inner).__mro__[1].get_by_ids
    with pytest.raises(ConfigurationError, match="can't get documents by id"):
        MeVeRetriever.from_vectorstore(Mine(), documents=given, **parts)


def test_words_can_be_left_alone(filled, parts):
    """Nothing is read, then."""
    made = MeVeRetriever.from_vectorstore(filled, keyword_search=False, **parts)
    assert {c.origin for c in made.context("blue zebra").trace.candidates} == {"dense"}
    assert not made.engine.is_stale


def test_a_record_without_text_is_no_reason_to_be_stale(kind, parts):
    store = kind.make(MeVeEmbeddings(WordEmbedder()))
    store.add_documents([Document(" ", id=uid("blank")), Document("a blue sky", id=uid("sky"))])
    made = MeVeRetriever.from_vectorstore(store, **parts)
    assert not made.engine.is_stale
    assert found_ids(made.context("blue sky")) == {uid("sky")}


def test_wrappers_that_hand_on_no_filter_leave_the_retrievers_own_in_force(kind, filled, parts):
    """EnsembleRetriever forwards no options, ContextualCompressionRetriever no configuration: so it is the field."""
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    mine = MeVeRetriever.from_vectorstore(filled, filter=kind.english(), threshold=0.0, **parts)
    ensemble = retrievers.EnsembleRetriever(retrievers=[mine])
    assert "de" not in {d.metadata["lang"] for d in ensemble.invoke("zebra facts")}


def test_qdrants_numbers_are_ids_too(parts):
    """Zero among them."""
    store = KINDS[3].make(MeVeEmbeddings(WordEmbedder()))
    store.add_texts(["a blue sky", "zebra facts"], ids=[0, 1])
    made = MeVeRetriever.from_vectorstore(store, **parts)
    assert [d.id for d in made.invoke("blue sky", sources="lexical")] == ["0"]
    assert not made.engine.is_stale


def test_chroma_takes_more_hits_than_it_takes_ids_at_once(parts):
    """Of many hits by words a filter leaves one."""
    store = KINDS[2].make(MeVeEmbeddings(WordEmbedder()))
    many = [Document(f"zebra {n}", id=f"z{n:04}", metadata={"lang": "de"}) for n in range(1_200)]
    store.add_documents([*many, Document("zebra and nothing else than many words", id="m", metadata={"lang": "en"})])
    made = MeVeRetriever.from_vectorstore(store, filter={"lang": "en"}, **parts)
    assert found_ids(made.context("zebra", sources="lexical", fallback_k=0)) == {"m"}
