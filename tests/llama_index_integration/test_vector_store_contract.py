"""Run the external store contract on every known vector store."""

import pytest
from llama_index.core.schema import TextNode

from llama_index_meve._vector_stores import make_store
from meve.testing.external_store_contract import AttachedStore, StoreContract
from tests.llama_index_integration.test_retriever import ENGLISH, build_index

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Payload indexes have no effect")


def attached(kind):
    index = build_index(kind, [])

    def drop(ids):
        index.delete_nodes(list(ids), delete_from_docstore=True)

    def put(passages):
        store = make_store(index)
        if stored_ids := [p.id for p in store.fetch([p.id for p in passages], None)]:
            drop(stored_ids)
        nodes = [TextNode(id_=p.id, text=p.text, metadata=dict(p.metadata)) for p in passages]
        for node in nodes:
            node.excluded_embed_metadata_keys = node.excluded_llm_metadata_keys = list(node.metadata)
        index.insert_nodes(nodes)

    return AttachedStore(store=make_store(index), put=put, drop=drop, english=ENGLISH)


class OfKind(StoreContract):
    kind = ""

    @pytest.fixture
    def attach(self):
        return lambda: attached(self.kind)


class TestSimple(OfKind):
    kind = "SimpleVectorStore"
    accepts_blank_text = False  # it divides by the vector norm, which is 0 for the fake embedding of a blank text


class TestFaissMap(OfKind):
    kind = "FaissMapVectorStore"
    keeps_ids_after_removals = False  # it numbers new vectors by its size


class TestQdrant(OfKind):
    kind = "QdrantVectorStore"
