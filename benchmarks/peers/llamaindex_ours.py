"""MeVe as a LlamaIndex user has it: one postprocessor after his index, or a retriever over it.

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

Ask = Callable[[str], Sequence[Passage]]


def postprocessor(passages: Sequence[Passage], parts: SharedComponents) -> Ask:
    """Phases 2 to 5 after the index's own retriever."""
    known = {p.id: p for p in passages}
    stock = _index(passages, parts).as_retriever(similarity_top_k=parts.candidates)
    last = MeVePostprocessor.make(
        config=parts.config, embedder=parts.embedder, verifier=parts.verifier, tokens=parts.tokens
    )
    return lambda query: [
        known[each.node.node_id] for each in last.postprocess_nodes(stock.retrieve(query), query_str=query)
    ]


def retriever(passages: Sequence[Passage], parts: SharedComponents) -> Ask:
    """All five phases, of which the index is the first; all settings are the defaults."""
    return _asking(_retriever(passages, parts))


def few_sentences(passages: Sequence[Passage], parts: SharedComponents) -> Ask:
    """The same, set for short prompts: ten candidates a source, of each passage the sentences that carry evidence."""
    return _asking(_retriever(passages, parts, candidates=10, packing="sentences"))


def _retriever(passages: Sequence[Passage], parts: SharedComponents, **settings: Unpack[Overrides]) -> MeVeRetriever:
    return MeVeRetriever.from_index(
        _index(passages, parts),
        config=parts.config.override(**settings),
        embedder=parts.embedder,
        verifier=parts.verifier,
        tokens=parts.tokens,
    )


def _asking(retriever: MeVeRetriever) -> Ask:
    def ask(query: str) -> list[Passage]:
        return [Passage(id=each.node.node_id, text=each.node.get_content()) for each in retriever.retrieve(query)]

    return ask


def _index(passages: Sequence[Passage], parts: SharedComponents) -> VectorStoreIndex:
    nodes = [TextNode(id_=p.id, text=p.content) for p in passages]
    store = FaissVectorStore(faiss_index=faiss.IndexFlatIP(parts.embedder.dimension))
    storage = StorageContext.from_defaults(vector_store=store)
    return VectorStoreIndex(nodes, storage_context=storage, embed_model=SharedEmbedding(parts.embedder))
