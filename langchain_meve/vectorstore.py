"""A vector store whose words are kept in step with its vectors."""

import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import run_in_executor
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from langchain_meve._documents import DocumentPassage, as_passage
from langchain_meve._vector_store_adapters import AnyStore
from langchain_meve.retriever import MeVeRetriever
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.engine import Tokens
from meve.ports import Embedder, Verifier
from meve.retrieval.external_store import StoreRetriever


class MeVeVectorStore(VectorStore):
    """Your vector store, seen through MeVe: what goes in and out does so on both sides, vectors and words.

    Its searches are the inner store's own, and what they return is as it went in, with its id. Any text can be an id,
    also over Qdrant, whose points have numbers and UUIDs alone. Verified retrieval is `as_verified_retriever`.

    Args:
        inner: any vector store; from now on, write to it through this one.
        documents: what it holds already, each with its id, where it can't list that itself.
        config: how to decide.
        embedder: makes vectors for telling copies apart; None for the one that ships.
        verifier: as for `meve.Retriever`; None for the one that ships.
        tokens: what budgets are counted with.

    Raises:
        MeveError: parts that can't be had, or a store that failed.
    """

    def __init__(
        self,
        inner: VectorStore,
        *,
        documents: Sequence[Document] | None = None,
        config: RetrieverConfig | None = None,
        embedder: Embedder | str | None = None,
        verifier: Verifier | str | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        self.inner = inner
        made = MeVeRetriever.from_vectorstore(
            inner, documents=documents, config=config, embedder=embedder, verifier=verifier, tokens=tokens
        )
        self._engine: StoreRetriever = made.engine
        self._store: AnyStore = made.engine.store

    @property
    def embeddings(self) -> Embeddings | None:
        """The inner store's."""
        return self.inner.embeddings

    def as_verified_retriever(self, **fields: Any) -> MeVeRetriever:
        """Verified retrieval over this store; all retrievers made so share one engine.

        Args:
            fields: of `MeVeRetriever`: `k`, `filter`, `max_tokens`, …
        """
        return MeVeRetriever(engine=self._engine, **fields)

    def add_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        """Add or replace documents, on both sides; of equal ids the last counts.

        Returns:
            Their ids.
        """
        ids = _ids(documents, kwargs.pop("ids", None))
        latest = dict(zip(ids, documents, strict=True))
        with self._engine.changing():
            if not self._store.replaces:
                self._delete_held(list(latest))
            keys = {i: self._store.key(i) for i in latest}
            entering = [self._store.entering(document, i) for i, document in latest.items()]
            given = self.inner.add_documents(entering, ids=list(keys.values()), **kwargs)
            known = {i: i if key == keys[i] else str(key) for i, key in zip(latest, given, strict=True)}
            self._engine.index([self._passage(known[i], document) for i, document in latest.items()])
        return [known[i] for i in ids]

    async def aadd_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        """The same, off the event loop."""
        return await run_in_executor(None, self.add_documents, documents, **kwargs)

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add or replace texts, on both sides.

        Returns:
            Their ids.
        """
        listed = list(texts)
        made = [Document(text, metadata=dict((metadatas or [{}] * len(listed))[n])) for n, text in enumerate(listed)]
        return self.add_documents(made, **({"ids": ids} if ids else {}), **kwargs)

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """Delete on both sides; ids that aren't there don't matter. What None means is the inner store's affair.

        Returns:
            What the inner store says; where it says False, nothing is forgotten.
        """
        with self._engine.changing():
            if ids is not None and not self._store.replaces:
                return self._delete_held(ids)
            done = self.inner.delete(None if ids is None else self._keys(ids), **kwargs)
            if done is False:
                return done
            if ids is not None:
                self._engine.forget(map(str, ids))
            elif self._store.lists:
                self._engine.refresh()
            else:
                self._engine.clear()
            return done

    async def adelete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """The same, off the event loop."""
        return await run_in_executor(None, self.delete, ids, **kwargs)

    def _delete_held(self, ids: Sequence[str]) -> bool:
        """Delete those that are there, from a store that refuses the others."""
        held = [str(document.id) for document in self.inner.get_by_ids(list(ids))]
        if held:
            self.inner.delete(held)
        self._engine.forget(ids)
        return True

    def _keys(self, ids: Iterable[str]) -> list[Any]:
        return [self._store.key(str(i)) for i in ids]

    def _passage(self, store_id: str, document: Document) -> DocumentPassage:
        return as_passage(document, self._store.canonical(store_id))

    def _left(self, found: Iterable[Document]) -> list[Document]:
        return [self._store.leaving(document) for document in found]

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The inner store's documents of these ids."""
        return self._left(self.inner.get_by_ids(self._keys(ids)))

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The same where there is an event loop."""
        return self._left(await self.inner.aget_by_ids(self._keys(ids)))

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """The inner store's own search, which verifies nothing."""
        return self._left(self.inner.similarity_search(query, k=k, **kwargs))

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """The same where there is an event loop."""
        return self._left(await self.inner.asimilarity_search(query, k=k, **kwargs))

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> list[tuple[Document, float]]:
        """The inner store's own search, with its scores."""
        found = self.inner.similarity_search_with_score(query, k=k, **kwargs)
        return [(self._store.leaving(document), score) for document, score in found]

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        """The inner store's own search."""
        return self._left(self.inner.similarity_search_by_vector(embedding, k=k, **kwargs))

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """The inner store's own search."""
        return self._left(self.inner.max_marginal_relevance_search(query, k, fetch_k, lambda_mult, **kwargs))

    def max_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """The inner store's own search."""
        return self._left(
            self.inner.max_marginal_relevance_search_by_vector(embedding, k, fetch_k, lambda_mult, **kwargs)
        )

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return self.inner._select_relevance_score_fn()

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Over an InMemoryVectorStore of its own; `kwargs` are those of the class."""
        made = cls(InMemoryVectorStore(embedding), **kwargs)
        made.add_texts(texts, metadatas, ids=ids)
        return made


def _ids(documents: Sequence[Document], given: Sequence[str | None] | None) -> list[str]:
    """The ids that documents are to have: those given, their own, or new ones.

    Raises:
        ValueError: another number of ids than documents.
    """
    listed = [document.id for document in documents] if given is None else list(given)
    if len(listed) != len(documents):
        raise ValueError(f"{len(documents)} documents and {len(listed)} ids: give as many of the one as of the other")
    return [str(i) if i else str(uuid.uuid4()) for i in listed]
