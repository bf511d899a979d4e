"""The closest thing to MeVe's five phases that can be put together from LangChain's stock parts.

`hybrid` is what its documentation teaches: dense and BM25 search always both run, their ranks are fused, a
cross-encoder reranks, near-duplicates go, and what fits the budget stays. `fallback` is MeVe's own control flow around
the same parts. The `…_shared_runtime` variants verify with MeVe's loaded model where the others load its weights into
LangChain's own class, so that a difference of runtimes can be told from one of pipelines.

Stock: `FAISS` (inner product, exact), `BM25Retriever` (rank_bm25), `EnsembleRetriever`,
`ContextualCompressionRetriever`, `DocumentCompressorPipeline`, `HuggingFaceCrossEncoder`, `CrossEncoderReranker`,
`EmbeddingsRedundantFilter`.

Written by hand, because LangChain ships nothing for it:

- `TokenBudget`: it trims messages, not documents. Whole passages only; one that doesn't fit is skipped.
- The threshold in `fallback`, and the fallback itself: `CrossEncoderReranker` throws its scores away, and
  `with_fallbacks` reacts to exceptions only. As in MeVe, `fallback_k` keyword hits are judged like all others, and
  those that reach `fallback_floor` take their place by score.
- The words for BM25: lower-cased, without punctuation. The stock ones are split at white space and keep their case.
- Wrappers of the shared embedder and verifier.

What to know of the stock behaviour, in langchain-classic 1.0.8 and langchain-community 0.4.2:

- `EnsembleRetriever` has no limit, so the verifier of `hybrid` reads up to twice `candidates` passages.
- `BM25Retriever` gives no scores, and fills up its number with passages that share no word with the query. Its index
  can't be changed, only made anew.
- `EmbeddingsRedundantFilter` drops the better-ranked of two alike, and keeps the other. It embeds each candidate anew
  for each query, though the store holds the vectors: an embedder that remembers what it embedded hides that cost. What
  it returns has lost its id, which is why ids travel in the metadata here.
- `HuggingFaceCrossEncoder` cuts passages at the model's window and doesn't say so. Its scores are what the model's
  config says, logits or probabilities; here they are logits, which `fallback` calibrates as the shared verifier does.
- A cross-encoder is handed texts only, so a verifier that judges by embeddings makes them anew for each query.
- langchain-community is no longer maintained, and warns of it when imported.
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

from meve.evaluation.types import SharedComponents
from meve.ports import Embedder, Verifier
from meve.types import Passage

ID = "passage"
"""The metadata key of a passage's id."""

Ask = Callable[[str], Sequence[Passage]]


def hybrid(passages: Sequence[Passage], parts: SharedComponents) -> Ask:
    """Both searches, fused by reciprocal ranks, reranked, freed of near-duplicates, trimmed."""
    if not passages:
        return lambda _: []
    embeddings = SharedEmbeddings(parts.embedder)
    fused = EnsembleRetriever(retrievers=list(_searches(passages, parts, embeddings)), weights=[0.5, 0.5], id_key=ID)
    reranker = CrossEncoderReranker(model=_cross_encoder(parts), top_n=2 * parts.candidates)
    pipeline = DocumentCompressorPipeline(transformers=[reranker, *_last_steps(parts, embeddings)])
    retriever = ContextualCompressionRetriever(base_compressor=pipeline, base_retriever=fused)
    known = {p.id: p for p in passages}
    return lambda query: _passages(retriever.invoke(query), known)


def fallback(passages: Sequence[Passage], parts: SharedComponents) -> Ask:
    """Dense search and threshold; keywords only where too few reach it; freed of near-duplicates, trimmed."""
    if not passages:
        return lambda _: []
    embeddings = SharedEmbeddings(parts.embedder)
    dense, keywords = _searches(passages, parts, embeddings)
    cross_encoder = _cross_encoder(parts)
    last_steps = DocumentCompressorPipeline(transformers=_last_steps(parts, embeddings))
    known = {p.id: p for p in passages}

    def judge(query: str, documents: Sequence[Document]) -> dict[str, float]:
        """Probabilities by id."""
        if not documents:
            return {}
        scores = cross_encoder.score([(query, d.page_content) for d in documents])
        raw = np.array(list(scores), dtype=np.float32)
        probabilities = parts.verifier.calibration.apply(raw) if parts.verifier_model else raw
        return dict(zip((d.metadata[ID] for d in documents), probabilities.tolist(), strict=True))

    def ask(query: str) -> Sequence[Passage]:
        found = dense.invoke(query)
        scores = judge(query, found)
        kept = [d for d in found if scores[d.metadata[ID]] >= parts.threshold]
        if len(kept) < parts.min_verified:
            have = {d.metadata[ID] for d in kept}
            added = [d for d in keywords.invoke(query) if d.metadata[ID] not in have][: parts.config.fallback_k]
            scores |= judge(query, [d for d in added if d.metadata[ID] not in scores])
            kept += [d for d in added if scores[d.metadata[ID]] >= parts.config.fallback_floor]
        kept.sort(key=lambda d: -scores[d.metadata[ID]])
        return _passages(last_steps.compress_documents(kept, query), known) if kept else []

    return ask


def hybrid_shared_runtime(passages: Sequence[Passage], parts: SharedComponents) -> Ask:
    """`hybrid`, verified by the shared verifier itself."""
    return hybrid(passages, replace(parts, verifier_model=None))


def fallback_shared_runtime(passages: Sequence[Passage], parts: SharedComponents) -> Ask:
    """`fallback`, verified by the shared verifier itself."""
    return fallback(passages, replace(parts, verifier_model=None))


class SharedEmbeddings(Embeddings):
    """The shared embedder, as LangChain calls it."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector for each text."""
        vectors: list[list[float]] = self._embedder.embed_passages(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """The query's vector."""
        vector: list[float] = self._embedder.embed_query(text).tolist()
        return vector


class SharedCrossEncoder(BaseCrossEncoder):
    """The shared verifier, as LangChain calls it: pairs of one query."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        """Probabilities."""
        scores: list[float] = self._verifier.score(text_pairs[0][0], [text for _, text in text_pairs]).tolist()
        return scores


class TokenBudget(BaseDocumentTransformer):
    """Keeps documents in order while they fit; one that doesn't is skipped, and the next one tried."""

    def __init__(self, parts: SharedComponents) -> None:
        self._parts = parts

    def transform_documents(self, documents: Sequence[Document], **_: Any) -> Sequence[Document]:
        """Those that fit, separators counted; the text as a whole has the last word."""
        counter, separator, limit = self._parts.tokens, self._parts.separator, self._parts.max_tokens
        seam = counter.count(separator)
        kept: list[Document] = []
        used = -seam
        counts = counter.count_many([d.page_content for d in documents])
        for document, count in zip(documents, counts, strict=True):
            if used + seam + count <= limit:
                kept.append(document)
                used += seam + count
        while kept and counter.count(separator.join(d.page_content for d in kept)) > limit:
            kept.pop()  # texts may count for more together than apart
        return kept


def _searches(passages: Sequence[Passage], parts: SharedComponents, embeddings: Embeddings) -> tuple[BaseRetriever, BaseRetriever]:
    """By vectors, and by words."""
    documents = [Document(page_content=p.content, metadata={ID: p.id}) for p in passages]
    store = FAISS.from_documents(documents, embeddings, distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT)
    dense = store.as_retriever(search_kwargs={"k": parts.candidates})
    keywords = BM25Retriever.from_documents(documents, k=parts.candidates, preprocess_func=_words)
    return dense, keywords


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _cross_encoder(parts: SharedComponents) -> BaseCrossEncoder:
    """LangChain's own runtime where there are weights to load, else the shared verifier."""
    return _loaded(parts.verifier_model) if parts.verifier_model else SharedCrossEncoder(parts.verifier)


@cache
def _loaded(model: str) -> BaseCrossEncoder:
    """Once a process, since a peer is made for every pool of passages."""
    return HuggingFaceCrossEncoder(model_name=model, model_kwargs={"activation_fn": lambda logits: logits})


def _last_steps(parts: SharedComponents, embeddings: Embeddings) -> list[BaseDocumentTransformer]:
    return [
        EmbeddingsRedundantFilter(embeddings=embeddings, similarity_threshold=parts.redundancy),
        TokenBudget(parts),
    ]


def _passages(documents: Iterable[Document], known: dict[str, Passage]) -> list[Passage]:
    return [known[d.metadata[ID]] for d in documents]
