"""The contract of external stores on each adapted vector store, and on an unknown one."""

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from langchain_meve import MeVeEmbeddings, MeVeVectorStore
from langchain_meve._vector_store_adapters import adapt_vector_store
from meve.testing.external_store_contract import AttachedStore, StoreContract
from meve.testing.fakes import WordEmbedder
from tests.langchain_integration.vector_stores import KINDS

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


class OfKind(StoreContract):
    kind = KINDS[0]

    @pytest.fixture
    def attach(self):
        return lambda: attach_store(self.kind.make(MeVeEmbeddings(WordEmbedder())), self.kind.english)


class TestInMemory(OfKind):
    pass


class TestFaiss(OfKind):
    kind = KINDS[1]


class TestChroma(OfKind):
    kind = KINDS[2]


class TestQdrant(OfKind):
    kind = KINDS[3]


class TestMeVeVectorStore(StoreContract):
    """A MeVeVectorStore is attached as the store that it wraps."""

    @pytest.fixture
    def attach(self, parts):
        inner = lambda: KINDS[0].make(MeVeEmbeddings(WordEmbedder()))  # noqa: E731
        return lambda: attach_store(MeVeVectorStore(inner(), **parts), KINDS[0].english)


class UnknownVectorStore(VectorStore):
    """A store without an adapter, which can search and get by id."""

    def __init__(self):
        self._inner = InMemoryVectorStore(MeVeEmbeddings(WordEmbedder()))
        self.add_documents, self.delete = self._inner.add_documents, self._inner.delete

    def similarity_search(self, query, k=4, **kwargs):
        return self._inner.similarity_search(query, k=k, **kwargs)

    def get_by_ids(self, ids, /):
        return self._inner.get_by_ids(ids)

    @classmethod
    def from_texts(cls, *args, **kwargs):
        raise NotImplementedError


class TestUnknownVectorStore(StoreContract):
    can_list = False
    can_filter_ids = False

    @pytest.fixture
    def attach(self):
        return lambda: attach_store(UnknownVectorStore(), KINDS[0].english, filter_keyword="filter")
