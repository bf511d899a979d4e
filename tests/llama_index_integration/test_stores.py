"""Each store that users run: every operator of filters, what was saved and read back, what fails."""

import pytest
from llama_index.core import StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters

from llama_index_meve import MeVeEmbedding, MeVeRetriever
from llama_index_meve._metadata_filters import filter_predicate
from llama_index_meve._vector_stores import make_store
from meve.errors import ConfigurationError, RetrievalError, StaleWarning
from meve.testing.fakes import WordEmbedder
from tests.llama_index_integration.conftest import node, uid
from tests.llama_index_integration.stores import STORES, indexed
from tests.llama_index_integration.test_filters import CASES, ROWS

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Payload indexes have no effect")

OPEN = {"threshold": 0.0, "fallback_floor": 0.0, "candidates": 10, "fallback_k": 10}
"""Whatever is found comes back."""
ALIKE = "blue sky"
LACKING = {FilterOperator.ALL, FilterOperator.ANY, FilterOperator.CONTAINS}
"""What Qdrant can't be asked."""


@pytest.fixture
def rows():
    return [node(f"row{n}", f"{ALIKE} {n}", **row) for n, row in enumerate(ROWS)]


def found(retriever, question=ALIKE):
    return {c.id for c in retriever.context(question).trace.candidates}


@pytest.mark.parametrize("sources", ["dense", "lexical", "hybrid"])
@pytest.mark.parametrize(("key", "operator", "value"), CASES)
@pytest.mark.parametrize("kind", STORES)
def test_each_operator_holds_in_every_phase(kind, key, operator, value, sources, rows, parts):
    """What the stock retriever finds under a filter is what is found here; words bring nothing else back."""
    filters = MetadataFilters(filters=[MetadataFilter(key=key, operator=operator, value=value)])
    index = indexed(kind, rows)
    mine = MeVeRetriever.from_index(index, filters=filters, sources=sources, **OPEN, **parts)
    if kind == "QdrantVectorStore" and operator in LACKING:
        with pytest.raises(RetrievalError, match="QdrantVectorStore failed: NotImplementedError"):
            mine.retrieve(ALIKE)
        return
    if kind == "QdrantVectorStore":
        stock = index.as_retriever(similarity_top_k=10, filters=filters).retrieve(ALIKE)
        expected = {each.node.node_id for each in stock}
    else:
        expected = {each.node_id for each in rows if filter_predicate(filters)(each.metadata)}
    assert found(mine) == expected


def test_nodes_alone_know_every_operator(rows, parts):
    engine = MeVeRetriever.from_nodes(rows, **parts).engine
    for key, operator, value in CASES:
        filters = MetadataFilters(filters=[MetadataFilter(key=key, operator=operator, value=value)])
        expected = {each.node_id for each in rows if filter_predicate(filters)(each.metadata)}
        assert found(MeVeRetriever(engine, filters=filters, **OPEN)) == expected


@pytest.mark.parametrize("sources", ["dense", "lexical", "hybrid"])
def test_a_filter_that_excludes_everything_finds_nothing_and_breaks_nothing(sources, rows, parts):
    nobody = MetadataFilters(filters=[MetadataFilter(key="lang", value="xx")])
    retrievers = [MeVeRetriever.from_nodes(rows, filters=nobody, sources=sources, **parts)]
    retrievers += [MeVeRetriever.from_index(indexed(k, rows), filters=nobody, sources=sources, **parts) for k in STORES]
    assert [retriever.retrieve(ALIKE) for retriever in retrievers] == [[]] * len(retrievers)


def saved_simple(nodes, folder):
    indexed("SimpleVectorStore", nodes).storage_context.persist(str(folder))
    return StorageContext.from_defaults(persist_dir=str(folder))


def saved_faiss(kind):
    def save(nodes, folder):
        index = indexed(kind, nodes)
        index.storage_context.persist(str(folder))
        store = type(index.vector_store).from_persist_dir(str(folder))
        return StorageContext.from_defaults(vector_store=store, persist_dir=str(folder))

    return save


SAVED = {"SimpleVectorStore": saved_simple} | {k: saved_faiss(k) for k in ("FaissVectorStore", "FaissMapVectorStore")}


@pytest.mark.parametrize("kind", SAVED)
def test_an_index_that_was_read_back_is_as_good_as_new(kind, nodes, parts, tmp_path):
    model = MeVeEmbedding(WordEmbedder())
    index = load_index_from_storage(SAVED[kind](nodes, tmp_path), embed_model=model)
    retriever = MeVeRetriever.from_index(index, **parts)
    assert retriever.retrieve(ALIKE)[0].node.node_id == uid("sky")
    assert retriever.retrieve(ALIKE)[0].node.relationships == nodes[0].relationships
    assert uid("zebra") in found(MeVeRetriever(retriever.engine, sources="lexical", **OPEN), "zebra")
    if kind != "FaissVectorStore":  # which can't delete
        index.delete_ref_doc("doc-sky")
        with pytest.warns(StaleWarning):
            assert uid("sky") not in found(retriever)


def test_a_collection_that_was_read_back_is_as_good_as_new(nodes, parts, tmp_path):
    from llama_index.vector_stores.qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient

    for opened in range(2):
        client = QdrantClient(path=str(tmp_path))
        store = QdrantVectorStore("c", client=client)
        if opened:
            index = VectorStoreIndex.from_vector_store(store, embed_model=MeVeEmbedding(WordEmbedder()))
            retriever = MeVeRetriever.from_index(index, **parts)
            assert retriever.retrieve(ALIKE)[0].node.node_id == uid("sky")
            assert uid("zebra") in found(MeVeRetriever(retriever.engine, sources="lexical", **OPEN), "zebra")
        else:
            indexed(None, nodes, store)
        client.close()


class Broken(SimpleVectorStore):
    """One that was unplugged after it was filled."""

    def query(self, query, **kwargs):
        raise OSError("unplugged")


def test_what_a_store_raises_names_it_and_is_no_empty_answer(nodes, parts):
    retriever = MeVeRetriever.from_index(indexed(None, nodes, Broken()), when_empty="best", **parts)
    with pytest.raises(RetrievalError, match="searching Broken failed: OSError: unplugged") as raised:
        retriever.retrieve(ALIKE)
    assert isinstance(raised.value.__cause__, OSError)


class Bare(SimpleVectorStore):
    """One that nobody knows, which keeps its nodes itself and can do nothing but search."""

    stores_text: bool = True

    def __init__(self):
        super().__init__()
        self._nodes = {}

    def add(self, nodes, **kwargs):
        self._nodes |= {each.node_id: each for each in nodes}
        return super().add(nodes, **kwargs)

    def query(self, query, **kwargs):
        made = super().query(query, **kwargs)
        made.nodes = [self._nodes[i] for i in made.ids]
        return made

    def get_nodes(self, node_ids=None, filters=None):
        raise NotImplementedError


def test_a_store_that_nobody_knows_is_searched_by_its_vectors(nodes, parts, monkeypatch):
    """Its filters hold; and by words it is searched only where it can say what it still holds."""
    monkeypatch.setattr("llama_index_meve._vector_stores.STORE_TYPES", {})
    retriever = MeVeRetriever.from_index(indexed(None, nodes, Bare()), **OPEN, **parts)
    assert retriever.retrieve(ALIKE)[0].node.node_id == uid("sky")
    english = MetadataFilters(filters=[MetadataFilter(key="lang", value="en")])
    assert uid("zebra") not in found(MeVeRetriever(retriever.engine, filters=english, **OPEN))
    with pytest.raises(ConfigurationError, match="Bare can't list what it holds: give from_index"):
        list(make_store(retriever.engine.store.index).list_passages())
    told = MeVeRetriever.from_index(retriever.engine.store.index, nodes=nodes, sources="lexical", **OPEN, **parts)
    assert told.retrieve("zebra") == []
