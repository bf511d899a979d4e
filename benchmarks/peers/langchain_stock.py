"""The closest pipelines to MeVe's five phases from LangChain's stock parts.

`hybrid` follows LangChain's documentation: dense and BM25 search always both run, their ranks are fused, a
cross-encoder reranks, near-duplicates go, and the rest is cut to the budget. `fallback` is MeVe's own control flow
around the same parts. The `…_shared_runtime` variants verify with MeVe's loaded model, the others load its weights into
LangChain's own class. That separates differences of runtimes from those of pipelines.

Stock: `FAISS` (inner product, exact), `BM25Retriever` (rank_bm25), `EnsembleRetriever`,
`ContextualCompressionRetriever`, `DocumentCompressorPipeline`, `HuggingFaceCrossEncoder`, `CrossEncoderReranker`,
`EmbeddingsRedundantFilter`.

Written by hand, because LangChain has nothing for it:

- `TokenBudget`: LangChain trims messages, not documents. Whole passages only; one that doesn't fit is skipped.
- The threshold in `fallback`, and the fallback itself: `CrossEncoderReranker` discards its scores, and
  `with_fallbacks` only reacts to exceptions. As in MeVe, `fallback_k` keyword hits are scored like all others, and
  those that reach `fallback_floor` are ranked by score.
- The words for BM25: lower-cased, without punctuation. The stock ones are split at white space and keep their case.
- Wrappers of the shared embedder and verifier.

The stock behaviour in langchain-classic 1.0.8 and langchain-community 0.4.2:

- `EnsembleRetriever` has no limit, so the verifier of `hybrid` reads up to twice `candidates` passages.
- `BM25Retriever` gives no scores, and pads its results with passages that share no word with the query. Its index
  can't be changed, only rebuilt.
- `EmbeddingsRedundantFilter` drops the better-ranked of two near-duplicates. It embeds each candidate again for each
  query, though the store holds the vectors; an embedder with a cache hides that cost. Its results have lost their ids,
  so the ids are in the metadata here.
- `HuggingFaceCrossEncoder` silently cuts passages at the model's window. Its scores are logits or probabilities, as the
  model's config says; here they are logits, which `fallback` calibrates as the shared verifier does.
- A cross-encoder only gets texts, so a verifier that uses embeddings computes them again for each query.
- langchain-community is no longer maintained, and warns about it when imported.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message=".*langchain-community.*being sunset", category=DeprecationWarning)
    from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever
    from langchain_classic.retrievers.document_compressors import CrossEncoderReranker, DocumentCompressorPipeline
    from langchain_community.cross_encoders import HuggingFaceCrossEncoder
    from langchain_community.document_transformers import EmbeddingsRedundantFilter
    from langchain_community.retrievers import BM25Retriever
    from langchain_community.vectorstores import FAISS
    from langchain_community.vectorstores.utils import DistanceStrategy
    from langchain_core.cross_encoders import BaseCrossEncoder
    from langchain_core.documents import BaseDocumentTransformer, Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever

from benchmarks.peers.budget import fit_budget
from meve.evaluation.types import SharedComponents
from meve.ports import Embedder, Verifier
from meve.types import Passage

ID = "passage"
"""The metadata key of a passage's id."""

Retrieve = Callable[[str], Sequence[Passage]]


def hybrid(passages: Sequence[Passage], components: SharedComponents) -> Retrieve:
    """Run both searches, fuse them by reciprocal ranks, rerank, remove near-duplicates, and cut to the budget."""
    if not passages:
        return lambda _: []
    embeddings = SharedEmbeddings(components.embedder)
    fused = EnsembleRetriever(
        retrievers=list(_searches(passages, components, embeddings)), weights=[0.5, 0.5], id_key=ID
    )
    reranker = CrossEncoderReranker(model=_cross_encoder(components), top_n=2 * components.config.candidates)
    pipeline = DocumentCompressorPipeline(transformers=[reranker, *_last_steps(components, embeddings)])
    retriever = ContextualCompressionRetriever(base_compressor=pipeline, base_retriever=fused)
    known = {p.id: p for p in passages}
    return lambda query: _passages(retriever.invoke(query), known)


def fallback(passages: Sequence[Passage], components: SharedComponents) -> Retrieve:
    """Run dense search with a threshold, and keywords only if too few reach it; then remove near-duplicates and cut."""
    if not passages:
        return lambda _: []
    embeddings = SharedEmbeddings(components.embedder)
    dense, keywords = _searches(passages, components, embeddings)
    cross_encoder = _cross_encoder(components)
    last_steps = DocumentCompressorPipeline(transformers=_last_steps(components, embeddings))
    known = {p.id: p for p in passages}

    def judge(query: str, documents: Sequence[Document]) -> dict[str, float]:
        """Probabilities by id."""
        if not documents:
            return {}
        scores = cross_encoder.score([(query, d.page_content) for d in documents])
        raw = np.array(list(scores), dtype=np.float32)
        probabilities = components.verifier.calibration.apply(raw) if components.verifier_model else raw
        return dict(zip((d.metadata[ID] for d in documents), probabilities.tolist(), strict=True))

    def ask(query: str) -> Sequence[Passage]:
        dense_hits = dense.invoke(query)
        scores = judge(query, dense_hits)
        kept = [d for d in dense_hits if scores[d.metadata[ID]] >= components.config.threshold]
        if len(kept) < components.config.min_verified:
            have = {d.metadata[ID] for d in kept}
            added = [d for d in keywords.invoke(query) if d.metadata[ID] not in have][: components.config.fallback_k]
            scores |= judge(query, [d for d in added if d.metadata[ID] not in scores])
            kept += [d for d in added if scores[d.metadata[ID]] >= components.config.fallback_floor]
        kept.sort(key=lambda d: -scores[d.metadata[ID]])
        return _passages(last_steps.compress_documents(kept, query), known) if kept else []

    return ask


def hybrid_shared_runtime(passages: Sequence[Passage], components: SharedComponents) -> Retrieve:
    """Run `hybrid` with the shared verifier itself."""
    return hybrid(passages, replace(components, verifier_model=None))


def fallback_shared_runtime(passages: Sequence[Passage], components: SharedComponents) -> Retrieve:
    """Run `fallback` with the shared verifier itself."""
    return fallback(passages, replace(components, verifier_model=None))


class SharedEmbeddings(Embeddings):
    """The shared embedder with LangChain's interface."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector for each text."""
        vectors: list[list[float]] = self._embedder.embed_passages(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Return the query's vector."""
        vector: list[float] = self._embedder.embed_query(text).tolist()
        return vector


class SharedCrossEncoder(BaseCrossEncoder):
    """The shared verifier with LangChain's interface, for pairs of one query."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        """Return probabilities."""
        scores: list[float] = self._verifier.score(text_pairs[0][0], [text for _, text in text_pairs]).tolist()
        return scores


class TokenBudget(BaseDocumentTransformer):
    """A filter that keeps documents in order while they fit, and skips those that don't."""

    def __init__(self, components: SharedComponents) -> None:
        self._parts = components

    def transform_documents(self, documents: Sequence[Document], **_: Any) -> Sequence[Document]:
        """Return the documents that fit, separators counted."""
        return fit_budget(documents, [d.page_content for d in documents], self._parts)


def _searches(
    passages: Sequence[Passage], components: SharedComponents, embeddings: Embeddings
) -> tuple[BaseRetriever, BaseRetriever]:
    documents = [Document(page_content=p.content, metadata={ID: p.id}) for p in passages]
    store = FAISS.from_documents(documents, embeddings, distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT)
    dense = store.as_retriever(search_kwargs={"k": components.config.candidates})
    keywords = BM25Retriever.from_documents(documents, k=components.config.candidates, preprocess_func=_words)
    return dense, keywords


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _cross_encoder(components: SharedComponents) -> BaseCrossEncoder:
    """Return LangChain's own cross-encoder if there are weights to load, otherwise the shared verifier."""
    return _loaded(components.verifier_model) if components.verifier_model else SharedCrossEncoder(components.verifier)


@cache
def _loaded(model: str) -> BaseCrossEncoder:
    """Load a model once per process, since a peer is created for every pool of passages."""
    return HuggingFaceCrossEncoder(model_name=model, model_kwargs={"activation_fn": lambda logits: logits})


def _last_steps(components: SharedComponents, embeddings: Embeddings) -> list[BaseDocumentTransformer]:
    return [
        EmbeddingsRedundantFilter(embeddings=embeddings, similarity_threshold=components.config.redundancy),
        TokenBudget(components),
    ]


def _passages(documents: Iterable[Document], known: dict[str, Passage]) -> list[Passage]:
    return [known[d.metadata[ID]] for d in documents]
