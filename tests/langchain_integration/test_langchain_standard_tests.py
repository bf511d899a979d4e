"""LangChain's own standard tests, unmodified: retrievers, tools, vector stores."""

import pytest

pytest.importorskip("langchain_tests")

from langchain_core.embeddings import Embeddings
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import (
    RetrieversIntegrationTests,
    ToolsIntegrationTests,
    VectorStoreIntegrationTests,
)
from langchain_tests.unit_tests import ToolsUnitTests

from langchain_meve import MeVeEmbeddings, MeVeRetriever, MeVeVectorStore, create_meve_tool
from meve import RetrieverConfig
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder
from tests.langchain_integration.vector_stores import KINDS

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning:chromadb")

PARTS = {
    "embedder": WordEmbedder(),
    "verifier": OverlapVerifier(),
    "tokens": WordCounter(),
    "config": RetrieverConfig(redundancy=1.0),
}
TEXTS = ["A blue sky today.", "The sky was blue at noon.", "Blue is the colour of the sky.", "No sky is as blue."]


def build_retriever() -> MeVeRetriever:
    return MeVeRetriever.from_texts(TEXTS, **PARTS)


class TestRetriever(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[MeVeRetriever]:
        return MeVeRetriever

    @property
    def retriever_constructor_params(self) -> dict:
        return {"retriever": build_retriever().retriever}

    @property
    def retriever_query_example(self) -> str:
        return "blue sky"


class TestRetrieverOverAStore(TestRetriever):
    @property
    def retriever_constructor_params(self) -> dict:
        store = KINDS[0].make(MeVeEmbeddings(WordEmbedder()))
        store.add_texts(TEXTS)
        return {"retriever": MeVeRetriever.from_vectorstore(store, **PARTS).retriever}


class _Tool:
    @property
    def tool_constructor(self) -> BaseTool:
        return create_meve_tool(build_retriever())

    @property
    def tool_invoke_params_example(self) -> dict:
        return {"query": "blue sky"}


class TestTool(_Tool, ToolsUnitTests):
    pass


class TestToolAtWork(_Tool, ToolsIntegrationTests):
    pass


class TestVectorStore(VectorStoreIntegrationTests):
    """FAISS itself refuses ids that are taken or missing; Qdrant's are numbers and UUIDs, and it adds metadata."""

    @pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
    def vectorstore(self, request) -> MeVeVectorStore:
        return MeVeVectorStore(request.param.make(self.get_embeddings()), **PARTS)


class TestFromTexts(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self) -> MeVeVectorStore:
        return MeVeVectorStore.from_texts([], self.get_embeddings(), **PARTS)


def test_embeddings_equal_embedder() -> None:
    embeddings: Embeddings = MeVeEmbeddings(WordEmbedder())
    assert embeddings.embed_documents(["a b"])[0] == embeddings.embed_query("a b")
