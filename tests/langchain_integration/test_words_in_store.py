"""MeVeRetriever over vector stores that search words themselves: MeVe keeps no copy of the words."""

import uuid
import zlib

import pytest
from langchain_core.documents import Document

from langchain_meve import MeVeEmbeddings, MeVeRetriever
from meve.components.lexical.analyzers import content_words
from meve.errors import ConfigurationError
from meve.testing.fakes import WordEmbedder
from tests.langchain_integration.vector_stores import KINDS, UnknownVectorStore

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning:chromadb")

QUESTION = "xylophone quaint"
NEAR = [Document(f"xa{n} qa{n}", metadata={"lang": "en"}) for n in range(30)]
"""The nearest by vectors, of initials; they share no word with the question."""
FAR = Document("An old book about every wooden xylophone of Norway.", metadata={"lang": "de"})


@pytest.fixture
def hybrid():
    from langchain_qdrant import QdrantVectorStore, RetrievalMode, SparseEmbeddings, SparseVector
    from qdrant_client import QdrantClient, models

    class Words(SparseEmbeddings):
        def embed_documents(self, texts):
            return [self.embed_query(text) for text in texts]

        def embed_query(self, text):
            numbers = sorted({zlib.crc32(word.encode()) for word in content_words(text)})
            return SparseVector(indices=numbers, values=[1.0] * len(numbers))

    client = QdrantClient(":memory:")
    client.create_collection(
        "c",
        vectors_config=models.VectorParams(size=27, distance=models.Distance.COSINE),
        sparse_vectors_config={"langchain-sparse": models.SparseVectorParams(modifier=models.Modifier.IDF)},
    )
    return QdrantVectorStore(
        client=client, collection_name="c", embedding=MeVeEmbeddings(WordEmbedder()), sparse_embedding=Words(),
        retrieval_mode=RetrievalMode.HYBRID,
    )  # fmt: skip


def candidates(retriever, **options):
    context = retriever.context(QUESTION, candidates=2, fallback_k=0, fill=False, **options)
    return {c.id: c for c in context.trace.candidates}


def test_qdrant_finds_by_its_own_words_what_is_added_later(hybrid, parts):
    hybrid.add_documents(NEAR)
    retriever = MeVeRetriever.from_vectorstore(hybrid, keyword_search="store", **parts)
    added = str(uuid.uuid4())
    assert added not in candidates(retriever)
    hybrid.add_documents([FAR], ids=[added])
    found = candidates(retriever)
    assert {c.origin for c in found.values()} == {"hybrid"}
    assert len(found) == 4, "as many as two sources have together"
    assert found[added].scores == {"verifier": 0.5}, "joined scores are no cosines"
    assert retriever.invoke(QUESTION)[0].page_content == FAR.page_content
    without = MeVeRetriever.from_vectorstore(hybrid, keyword_search=False, **parts)
    assert added in {c.id for c in without.context(QUESTION, candidates=40).trace.candidates}
    from qdrant_client import models

    english = models.Filter(must=[models.FieldCondition(key="metadata.lang", match=models.MatchValue(value="en"))])
    assert added not in candidates(retriever, filter=english)
    hybrid.delete([added])
    assert added not in candidates(retriever)
    assert len(retriever.retriever._keywords) == 0, "no word is kept here"


def test_store_that_searches_vectors_alone_is_refused(parts):
    for kind in KINDS:
        with pytest.raises(ConfigurationError, match="keyword_search"):
            MeVeRetriever.from_vectorstore(kind.make(MeVeEmbeddings(WordEmbedder())), keyword_search="store", **parts)


def test_other_uses_of_the_words_are_refused(hybrid, parts):
    hybrid.add_documents(NEAR)
    retriever = MeVeRetriever.from_vectorstore(hybrid, keyword_search="store", **parts)
    with pytest.raises(ConfigurationError, match="nothing to refresh"):
        retriever.retriever.refresh()
    with pytest.raises(ConfigurationError, match=r"sources must be 'hybrid' where QdrantVectorStore.*got 'dense'"):
        retriever.context(QUESTION, sources="dense")
    documents = [Document("x", id=str(uuid.uuid4()))]
    with pytest.raises(ConfigurationError, match="left out"):
        MeVeRetriever.from_vectorstore(hybrid, documents=documents, keyword_search="store", **parts)
    with pytest.raises(ConfigurationError, match="True, False or 'store', got 'here'"):
        MeVeRetriever.from_vectorstore(hybrid, keyword_search="here", **parts)


def test_store_without_adapter_gets_its_own_arguments(parts):
    """As OpenSearch takes them; Elasticsearch gives no scores for a hybrid search."""

    class Search(UnknownVectorStore):
        def similarity_search(self, query, k=4, **kwargs):
            asked.append((k, kwargs))
            return super().similarity_search(query, k=k)

        def similarity_search_with_score(self, query, k=4, **kwargs):
            raise ValueError("scores are currently not supported in hybrid mode")

    asked = []
    store = Search(MeVeEmbeddings(WordEmbedder()))
    store.add_documents([FAR])
    retriever = MeVeRetriever.from_vectorstore(
        store, keyword_search="store", filter_keyword="filter",
        search_kwargs={"search_type": "hybrid_search", "search_pipeline": "mine"}, **parts,
    )  # fmt: skip
    assert len(retriever.context(QUESTION, candidates=3, fallback_k=0, filter=[{"term": {"lang": "de"}}]).passages) == 1
    mine = {"search_type": "hybrid_search", "search_pipeline": "mine", "filter": [{"term": {"lang": "de"}}]}
    assert asked == [(6, mine)]
