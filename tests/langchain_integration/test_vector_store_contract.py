"""The contract of external stores on each adapted vector store, and on an unknown one."""

import pytest
from langchain_core.documents import Document

from langchain_meve import MeVeEmbeddings, MeVeVectorStore
from langchain_meve._vector_store_adapters import adapt_vector_store
from meve.testing.external_store_contract import AttachedStore, StoreContract
from meve.testing.fakes import WordEmbedder
from tests.langchain_integration.vector_stores import KINDS, UnknownVectorStore

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning:chromadb")


def attach_store(vectorstore, english, **options):
    """Attach a vector store whose user writes to it directly."""
    store = adapt_vector_store(vectorstore, **options)

    def put(passages):
        if not store.replaces and (existing := [d.id for d in vectorstore.get_by_ids([p.id for p in passages])]):
            vectorstore.delete(existing)
        documents = [Document(p.text, id=p.id, metadata=dict(p.metadata)) for p in passages]
        vectorstore.add_documents(documents, ids=[d.id for d in documents])

    return AttachedStore(store=store, put=put, drop=vectorstore.delete, english=english())


class TestAdaptedVectorStore(StoreContract):
    @pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
    def attach(self, request):
        return lambda: attach_store(request.param.make(MeVeEmbeddings(WordEmbedder())), request.param.english)


class TestMeVeVectorStore(StoreContract):
    """A MeVeVectorStore is attached as the store that it wraps."""

    @pytest.fixture
    def attach(self, parts):
        inner = lambda: KINDS[0].make(MeVeEmbeddings(WordEmbedder()))  # noqa: E731
        return lambda: attach_store(MeVeVectorStore(inner(), **parts), KINDS[0].english)


class TestUnknownVectorStore(StoreContract):
    can_list = False
    can_filter_ids = False

    @pytest.fixture
    def attach(self):
        return lambda: attach_store(
            UnknownVectorStore(MeVeEmbeddings(WordEmbedder())), KINDS[0].english, filter_keyword="filter"
        )
