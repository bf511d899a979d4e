"""MeVe as LlamaIndex users have it: a postprocessor after their index, or a retriever over it.

meve bench quality --data DATA --peer benchmarks.peers.llamaindex_ours:postprocessor
"""

from collections.abc import Sequence
from typing import Unpack

from benchmarks.peers.llamaindex_stock import Retrieve, build_index
from llama_index_meve import MeVePostprocessor, MeVeRetriever
from meve.evaluation.types import SharedComponents
from meve.pipeline.config import Overrides
from meve.types import Passage


def postprocessor(passages: Sequence[Passage], components: SharedComponents) -> Retrieve:
    """Run phases 2 to 5 after the index's own retriever."""
    known = {p.id: p for p in passages}
    stock = build_index(passages, components).as_retriever(similarity_top_k=components.config.candidates)
    last = MeVePostprocessor.make(
        config=components.config, embedder=components.embedder, verifier=components.verifier, tokens=components.tokens
    )
    return lambda query: [
        known[each.node.node_id] for each in last.postprocess_nodes(stock.retrieve(query), query_str=query)
    ]


def retriever(passages: Sequence[Passage], components: SharedComponents) -> Retrieve:
    """Run all five phases with the index as the first; all settings are the defaults."""
    return _over_index(passages, components)


def few_sentences(passages: Sequence[Passage], components: SharedComponents) -> Retrieve:
    """Retrieve for short prompts: ten candidates per source, and only the sentences with evidence."""
    return _over_index(passages, components, candidates=10, packing="sentences")


def _over_index(passages: Sequence[Passage], components: SharedComponents, **settings: Unpack[Overrides]) -> Retrieve:
    retriever = MeVeRetriever.from_index(
        build_index(passages, components),
        config=components.config.override(**settings),
        embedder=components.embedder,
        verifier=components.verifier,
        tokens=components.tokens,
    )
    return lambda query: [Passage(id=n.node.node_id, text=n.node.get_content()) for n in retriever.retrieve(query)]
