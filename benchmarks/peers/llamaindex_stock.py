"""The closest pipelines to MeVe's five phases from LlamaIndex's stock parts.

`fusion` follows LlamaIndex's documentation: dense and BM25 search always both run, their ranks are fused, a
cross-encoder reranks, and the rest is cut to the budget. `fallback` is MeVe's own control flow around the same parts.
The `…_shared_runtime` variants verify with MeVe's loaded model; the others load its weights into LlamaIndex's class.
That separates differences of runtimes from those of pipelines.

Stock: `VectorStoreIndex` on `FaissVectorStore` (inner product, exact), `BM25Retriever` (bm25s), `QueryFusionRetriever`,
`SentenceTransformerRerank`, `SimilarityPostprocessor` for the threshold.

Written by hand, because LlamaIndex has nothing for it:
- `token_budget`: no postprocessor trims to tokens. Whole passages only; one that doesn't fit is skipped.
- The fallback: no retriever calls a second one if the first returns too little. As in MeVe, `fallback_k` keyword hits
  that share a word with the query are scored like all others; those that reach `fallback_floor` are ranked by score.
- `calibrate_with`: `SimilarityPostprocessor` cuts on the reranker's own scale, so scores become probabilities first.
- Wrappers of the shared embedder and verifier.

Near-duplicates stay: `EmbeddingRecencyPostprocessor`, which alone compares embeddings, needs dates and drops the older
passage; the Faiss store has no diversity search.

The stock behaviour in llama-index-core 0.14.25 and llama-index-retrievers-bm25 0.8.0:
- `QueryFusionRetriever` keeps a given number, here `candidates`, so the verifier reads no more than in MeVe's phase 1.
  By default a language model writes three more queries, and two hits are kept. Passages of equal text are merged.
- `BM25Retriever` drops English stop words, stems, and pads its results with passages of score 0, which `fusion` ranks.
  It rebuilds each hit from JSON. Its index can't be changed, only rebuilt.
- `SentenceTransformerRerank` silently cuts passages at 512 tokens, and fails on longer ones if the model reads fewer.
  By default it runs code that comes with a model. Its scores are logits or probabilities, as the model's config says;
  here they are logits.
- A verifier that uses embeddings computes them again for each query: the Faiss store returns nodes without them.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import faiss
import numpy as np
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import SentenceTransformerRerank, SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index.retrievers.bm25 import BM25Retriever
from llama_index.vector_stores.faiss import FaissVectorStore

from benchmarks.peers.budget import fit_budget
from meve.evaluation.types import SharedComponents
from meve.ports import Calibration, Embedder, Verifier
from meve.types import Passage

Retrieve = Callable[[str], Sequence[Passage]]
NodesToNodes = Callable[[list[NodeWithScore], str], list[NodeWithScore]]


def fusion(passages: Sequence[Passage], components: SharedComponents) -> Retrieve:
    """Run both searches, fuse them by reciprocal ranks, rerank, and cut to the budget."""
    if not passages:
        return lambda _: []
    fused = QueryFusionRetriever(
        list(_searches(passages, components)),
        llm=MockLLM(),
        mode=FUSION_MODES.RECIPROCAL_RANK,
        similarity_top_k=components.config.candidates,
        num_queries=1,
        use_async=False,
    )
    steps = [*_rerank(components), token_budget(components)]
    known = {p.id: p for p in passages}

    def ask(query: str) -> Sequence[Passage]:
        bundle = QueryBundle(query)
        return _passages(_through(steps, fused.retrieve(bundle), bundle), known)

    return ask


def fallback(passages: Sequence[Passage], components: SharedComponents) -> Retrieve:
    """Run dense search with a threshold, and keywords only if too few reach it; then cut to the budget."""
    if not passages:
        return lambda _: []
    dense, keywords = _searches(passages, components)
    judge = _rerank(components)
    threshold = SimilarityPostprocessor(similarity_cutoff=components.config.threshold)
    floor = SimilarityPostprocessor(similarity_cutoff=components.config.fallback_floor)
    budget = token_budget(components)
    known = {p.id: p for p in passages}

    def ask(query: str) -> Sequence[Passage]:
        bundle = QueryBundle(query)
        judged = _through(judge, dense.retrieve(bundle), bundle)
        kept = threshold.postprocess_nodes(judged, bundle)
        if len(kept) < components.config.min_verified:
            have, verdicts = {n.node_id for n in kept}, {n.node_id: n for n in judged}
            hits = [n for n in keywords.retrieve(bundle) if n.score and n.node_id not in have]
            hits = hits[: components.config.fallback_k]
            added = [verdicts[n.node_id] for n in hits if n.node_id in verdicts]
            added += _through(judge, [n for n in hits if n.node_id not in verdicts], bundle)
            kept = sorted([*kept, *floor.postprocess_nodes(added, bundle)], key=_falling)
        return _passages(budget.postprocess_nodes(kept, bundle), known)

    return ask


def fusion_shared_runtime(passages: Sequence[Passage], components: SharedComponents) -> Retrieve:
    """Run `fusion` with the shared verifier itself."""
    return fusion(passages, replace(components, verifier_model=None))


def fallback_shared_runtime(passages: Sequence[Passage], components: SharedComponents) -> Retrieve:
    """Run `fallback` with the shared verifier itself."""
    return fallback(passages, replace(components, verifier_model=None))


class SharedEmbedding(BaseEmbedding):
    """The shared embedder with LlamaIndex's interface."""

    _embedder: Embedder = PrivateAttr()

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(model_name=embedder.name, embed_batch_size=2048)
        self._embedder = embedder

    def _get_query_embedding(self, query: str) -> list[float]:
        vector: list[float] = self._embedder.embed_query(query).tolist()
        return vector

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._embedder.embed_passages(texts).tolist()
        return vectors


class NodeFunction(BaseNodePostprocessor):
    """A postprocessor that applies a function to the nodes and the question."""

    _apply: NodesToNodes = PrivateAttr()

    def __init__(self, apply: NodesToNodes) -> None:
        super().__init__()
        self._apply = apply

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return self._apply(nodes, query_bundle.query_str) if query_bundle and nodes else []


def rerank_with(verifier: Verifier) -> NodeFunction:
    """Return a reranker by the shared verifier: best first, scored by probability."""

    def rerank(nodes: list[NodeWithScore], question: str) -> list[NodeWithScore]:
        texts = [n.node.get_content(metadata_mode=MetadataMode.EMBED) for n in nodes]
        return sorted(_scored(nodes, verifier.score(question, texts)), key=_falling)

    return NodeFunction(rerank)


def calibrate_with(calibration: Calibration) -> NodeFunction:
    """Return a postprocessor that turns logits into probabilities."""
    return NodeFunction(
        lambda nodes, _: _scored(nodes, calibration.apply(np.array([n.score for n in nodes], dtype=np.float32)))
    )


def token_budget(components: SharedComponents) -> NodeFunction:
    """Return a filter that keeps nodes in order while they fit, and skips those that don't."""
    return NodeFunction(lambda nodes, _: fit_budget(nodes, [n.get_content() for n in nodes], components))


def build_index(passages: Sequence[Passage], components: SharedComponents) -> VectorStoreIndex:
    """Return an exact index with the shared embedder."""
    nodes = [TextNode(id_=p.id, text=p.content) for p in passages]
    store = FaissVectorStore(faiss_index=faiss.IndexFlatIP(components.embedder.dimension))
    storage = StorageContext.from_defaults(vector_store=store)
    return VectorStoreIndex(nodes, storage_context=storage, embed_model=SharedEmbedding(components.embedder))


def _searches(passages: Sequence[Passage], components: SharedComponents) -> tuple[BaseRetriever, BaseRetriever]:
    index = build_index(passages, components)
    nodes = [TextNode(id_=p.id, text=p.content) for p in passages]
    dense = index.as_retriever(similarity_top_k=components.config.candidates)
    keywords = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=min(components.config.candidates, len(nodes)))
    return dense, keywords


def _rerank(components: SharedComponents) -> list[BaseNodePostprocessor]:
    """Return a reranker on LlamaIndex's own runtime if there are weights to load, otherwise on the shared verifier."""
    if components.verifier_model is None:
        return [rerank_with(components.verifier)]
    return [
        _loaded(components.verifier_model, components.config.candidates),
        calibrate_with(components.verifier.calibration),
    ]


@cache
def _loaded(model: str, top_n: int) -> BaseNodePostprocessor:
    """Load a model once per process, since a peer is created for every pool of passages."""
    rerank = SentenceTransformerRerank(model=model, top_n=top_n, trust_remote_code=False)
    rerank._model.activation_fn = lambda logits: logits
    return rerank


def _through(
    steps: Iterable[BaseNodePostprocessor], nodes: list[NodeWithScore], query: QueryBundle
) -> list[NodeWithScore]:
    for step in steps:
        nodes = step.postprocess_nodes(nodes, query)
    return nodes


def _falling(node: NodeWithScore) -> float:
    return -(node.score or 0.0)


def _scored(nodes: Iterable[NodeWithScore], scores: Any) -> list[NodeWithScore]:
    return [NodeWithScore(node=n.node, score=score) for n, score in zip(nodes, scores.tolist(), strict=True)]


def _passages(nodes: Iterable[NodeWithScore], known: dict[str, Passage]) -> list[Passage]:
    return [known[n.node_id] for n in nodes]
