"""The closest thing to MeVe's five phases that can be put together from LlamaIndex's stock parts.

`fusion` is what its documentation teaches: dense and BM25 search always both run, their ranks are fused, a
cross-encoder reranks, and what fits the budget stays. `fallback` is MeVe's own control flow around the same parts. The
`…_shared_runtime` variants verify with MeVe's loaded model where the others load its weights into LlamaIndex's own
class, so that a difference of runtimes can be told from one of pipelines.

Stock: `VectorStoreIndex` on `FaissVectorStore` (inner product, exact), `BM25Retriever` (bm25s), `QueryFusionRetriever`,
`SentenceTransformerRerank`, `SimilarityPostprocessor` for the threshold.

Written by hand, because LlamaIndex ships nothing for it:

- `TokenBudget`: no postprocessor trims to tokens. Whole passages only; one that doesn't fit is skipped.
- The fallback: no retriever asks a second one where the first brought too little. As in MeVe, `fallback_k` keyword hits
  that share a word with the query are judged like all others, and those that reach `fallback_floor` take their place
  by score.
- `Calibrated`: `SimilarityPostprocessor` cuts on whatever scale a reranker's scores are, so they are made
  probabilities first, as the shared verifier makes its own.
- Wrappers of the shared embedder and verifier.

Left out: near-duplicates stay. The one postprocessor that compares passages' embeddings,
`EmbeddingRecencyPostprocessor`, wants dates and drops the older, and the Faiss store has no search for diversity.

What to know of the stock behaviour, in llama-index-core 0.14.25 and llama-index-retrievers-bm25 0.8.0:

- `QueryFusionRetriever` keeps as many as it is told; here `candidates`, as each search brings, so that the verifier
  reads no more than in MeVe's first phase. Left alone it has a language model write three more queries, and keeps two
  hits. Passages of the same text are one to it.
- `BM25Retriever` leaves English stop words out, stems, and fills up its number with passages of score 0, which `fusion`
  lets in by rank. It builds each hit anew from JSON. Its index can't be changed, only made anew.
- `SentenceTransformerRerank` reads 512 tokens whatever the model's window: it cuts the rest unsaid, and fails on a long
  passage where the model reads fewer. Unless told not to, it runs code that comes with a model. Its scores are what the
  model's config says, logits or probabilities, and it has no setting for that; here they are made logits.
- A verifier that judges by embeddings makes them anew for each query: nodes come out of the Faiss store without theirs.
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

from meve.evaluation.types import SharedComponents
from meve.ports import Calibration, Embedder, Verifier
from meve.types import Passage

Retrieve = Callable[[str], Sequence[Passage]]


def fusion(passages: Sequence[Passage], components: SharedComponents) -> Retrieve:
    """Run both searches, fuse them by reciprocal ranks, rerank, and cut to the budget."""
    if not passages:
        return lambda _: []
    fused = QueryFusionRetriever(
        list(_searches(passages, components)),
        llm=MockLLM(),
        mode=FUSION_MODES.RECIPROCAL_RANK,
        similarity_top_k=components.candidates,
        num_queries=1,
        use_async=False,
    )
    steps = [*_rerank(components), TokenBudget(components)]
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
    threshold = SimilarityPostprocessor(similarity_cutoff=components.threshold)
    floor = SimilarityPostprocessor(similarity_cutoff=components.config.fallback_floor)
    budget = TokenBudget(components)
    known = {p.id: p for p in passages}

    def ask(query: str) -> Sequence[Passage]:
        bundle = QueryBundle(query)
        judged = _through(judge, dense.retrieve(bundle), bundle)
        kept = threshold.postprocess_nodes(judged, bundle)
        if len(kept) < components.min_verified:
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


class SharedRerank(BaseNodePostprocessor):
    """The shared verifier with LlamaIndex's interface: best first, scored by probability."""

    _verifier: Verifier = PrivateAttr()

    def __init__(self, verifier: Verifier) -> None:
        super().__init__()
        self._verifier = verifier

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None or not nodes:
            return []
        texts = [n.node.get_content(metadata_mode=MetadataMode.EMBED) for n in nodes]
        return sorted(_scored(nodes, self._verifier.score(query_bundle.query_str, texts)), key=_falling)


class Calibrated(BaseNodePostprocessor):
    """A postprocessor that turns logits into probabilities."""

    _calibration: Calibration = PrivateAttr()

    def __init__(self, calibration: Calibration) -> None:
        super().__init__()
        self._calibration = calibration

    def _postprocess_nodes(
        self,
        nodes: list[NodeWithScore],
        query_bundle: QueryBundle | None = None,  # noqa: ARG002
    ) -> list[NodeWithScore]:
        return _scored(nodes, self._calibration.apply(np.array([n.score for n in nodes], dtype=np.float32)))


class TokenBudget(BaseNodePostprocessor):
    """A postprocessor that keeps nodes in order while they fit, and skips those that don't."""

    _parts: SharedComponents = PrivateAttr()

    def __init__(self, components: SharedComponents) -> None:
        super().__init__()
        self._parts = components

    def _postprocess_nodes(
        self,
        nodes: list[NodeWithScore],
        query_bundle: QueryBundle | None = None,  # noqa: ARG002
    ) -> list[NodeWithScore]:
        counter, separator, limit = self._parts.tokens, self._parts.separator, self._parts.max_tokens
        seam = counter.count(separator)
        kept: list[NodeWithScore] = []
        used = -seam
        for node, count in zip(nodes, counter.count_many([n.get_content() for n in nodes]), strict=True):
            if used + seam + count <= limit:
                kept.append(node)
                used += seam + count
        while kept and counter.count(separator.join(n.get_content() for n in kept)) > limit:
            kept.pop()  # texts may count for more together than apart
        return kept


def _searches(passages: Sequence[Passage], components: SharedComponents) -> tuple[BaseRetriever, BaseRetriever]:
    nodes = [TextNode(id_=p.id, text=p.content) for p in passages]
    store = FaissVectorStore(faiss_index=faiss.IndexFlatIP(components.embedder.dimension))
    index = VectorStoreIndex(
        nodes,
        storage_context=StorageContext.from_defaults(vector_store=store),
        embed_model=SharedEmbedding(components.embedder),
    )
    dense = index.as_retriever(similarity_top_k=components.candidates)
    keywords = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=min(components.candidates, len(nodes)))
    return dense, keywords


def _rerank(components: SharedComponents) -> list[BaseNodePostprocessor]:
    """Return LlamaIndex's own runtime if there are weights to load, otherwise the shared verifier."""
    if components.verifier_model is None:
        return [SharedRerank(components.verifier)]
    return [_loaded(components.verifier_model, components.candidates), Calibrated(components.verifier.calibration)]


@cache
def _loaded(model: str, top_n: int) -> BaseNodePostprocessor:
    """Load a model once a process, since a peer is created for every pool of passages."""
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
