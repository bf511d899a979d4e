"""MeVe as LlamaIndex users have it: a postprocessor after their index, or a retriever over it.

meve bench quality --data DATA --peer benchmarks.peers.llamaindex_ours:postprocessor
"""

from collections.abc import Callable, Sequence
from typing import Unpack

import faiss
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.schema import TextNode
from llama_index.vector_stores.faiss import FaissVectorStore

from benchmarks.peers.llamaindex_stock import SharedEmbedding
from llama_index_meve import MeVePostprocessor, MeVeRetriever
from meve.evaluation.types import SharedComponents
from meve.pipeline.config import Overrides
from meve.types import Passage

Retrieve = Callable[[str], Sequence[Passage]]


def postprocessor(passages: Sequence[Passage], components: SharedComponents) -> Retrieve:
    """Run phases 2 to 5 after the index's own retriever."""
    known = {p.id: p for p in passages}
    stock = _index(passages, components).as_retriever(similarity_top_k=components.config.candidates)
    last = MeVePostprocessor.make(
        config=components.config, embedder=components.embedder, verifier=components.verifier, tokens=components.tokens
    )
    return lambda query: [
        known[each.node.node_id] for each in last.postprocess_nodes(stock.retrieve(query), query_str=query)
    ]


def retriever(passages: Sequence[Passage], components: SharedComponents) -> Retrieve:
    """Run all five phases with the index as the first; all settings are the defaults."""
    return _retrieve_with(_retriever(passages, components))


def few_sentences(passages: Sequence[Passage], components: SharedComponents) -> Retrieve:
    """Retrieve for short prompts: ten candidates per source, and only the sentences with evidence."""
    return _retrieve_with(_retriever(passages, components, candidates=10, packing="sentences"))


def _retriever(
    passages: Sequence[Passage], components: SharedComponents, **settings: Unpack[Overrides]
) -> MeVeRetriever:
    return MeVeRetriever.from_index(
        _index(passages, components),
        config=components.config.override(**settings),
        embedder=components.embedder,
        verifier=components.verifier,
        tokens=components.tokens,
    )


def _retrieve_with(retriever: MeVeRetriever) -> Retrieve:
    def ask(query: str) -> list[Passage]:
        return [Passage(id=each.node.node_id, text=each.node.get_content()) for each in retriever.retrieve(query)]

    return ask


def _index(passages: Sequence[Passage], components: SharedComponents) -> VectorStoreIndex:
    nodes = [TextNode(id_=p.id, text=p.content) for p in passages]
    store = FaissVectorStore(faiss_index=faiss.IndexFlatIP(components.embedder.dimension))
    storage = StorageContext.from_defaults(vector_store=store)
    return VectorStoreIndex(nodes, storage_context=storage, embed_model=SharedEmbedding(components.embedder))
