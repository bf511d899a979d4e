"""MeVeRetriever over indexes whose vector store searches words itself: MeVe keeps no copy of the words."""

import zlib

import pytest
from llama_index.core.vector_stores.types import ExactMatchFilter, MetadataFilters, VectorStoreQueryMode

from llama_index_meve import MeVeRetriever
from meve.components.lexical.analyzers import content_words
from meve.errors import ConfigurationError
from tests.llama_index_integration.conftest import node, uid
from tests.llama_index_integration.vector_stores import TextStore, build_index

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect")

QUESTION = "xylophone quaint"
NEAR = [node(f"near {n}", f"xa{n} qa{n}" + " b" * (n % 5), lang="en") for n in range(30)]
"""The nearest by vectors, of initials; they share no word with the question."""
FAR = node("far", "An old book about every wooden xylophone of Norway.", lang="de")


def count_words(texts):
    numbers = [sorted({zlib.crc32(word.encode()) for word in content_words(text)}) for text in texts]
    return numbers, [[1.0] * len(each) for each in numbers]


@pytest.fixture
def index():
    from llama_index.vector_stores.qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient

    store = QdrantVectorStore(
        "c", client=QdrantClient(":memory:"), enable_hybrid=True, sparse_doc_fn=count_words, sparse_query_fn=count_words
    )
    return build_index("", NEAR, store)


def candidates(retriever, **options):
    return {
        c.id: c for c in retriever.context(QUESTION, candidates=2, fallback_k=0, fill=False, **options).trace.candidates
    }


def test_qdrant_finds_by_its_own_words_what_is_added_later(index, parts):
    retriever = MeVeRetriever.from_index(index, keyword_search="store", **parts)
    assert uid("far") not in candidates(retriever)
    index.insert_nodes([FAR])
    found = candidates(retriever)
    assert {c.origin for c in found.values()} == {"hybrid"}
    assert len(found) == 3, "two by vectors, one by words"
    assert found[uid("far")].scores == {"verifier": 0.5}, "joined scores are no cosines"
    english = MetadataFilters(filters=[ExactMatchFilter(key="lang", value="en")])
    filtered = MeVeRetriever.from_index(index, keyword_search="store", filters=english, **parts)
    assert uid("far") not in candidates(filtered)
    index.delete_nodes([uid("far")])
    assert uid("far") not in candidates(retriever)
    assert len(retriever.retriever._keywords) == 0, "no word is kept here"


@pytest.mark.parametrize("kind", ["SimpleVectorStore", "FaissMapVectorStore", "QdrantVectorStore"])
def test_store_that_searches_vectors_alone_is_refused(kind, parts):
    with pytest.raises(ConfigurationError, match="keyword_search"):
        MeVeRetriever.from_index(build_index(kind, NEAR), keyword_search="store", **parts)


def test_other_store_is_asked_for_its_hybrid_search(parts):
    class Search(TextStore):
        def query(self, query, **kwargs):
            asked.append((query.mode, query.similarity_top_k, query.query_str, query.filters))
            return self._search(query.__class__(query_embedding=query.query_embedding, similarity_top_k=50))

    asked = []
    english = MetadataFilters(filters=[ExactMatchFilter(key="lang", value="en")])
    retriever = MeVeRetriever.from_index(
        build_index("", NEAR, Search()), keyword_search="store", filters=english, **parts
    )
    assert len(candidates(retriever)) == 4
    assert asked == [(VectorStoreQueryMode.HYBRID, 2, QUESTION, english)]
