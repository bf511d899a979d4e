"""A vector store whose words are kept in step with its vectors."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from langchain_meve.documents import as_passages
from langchain_meve.retriever import MeVeRetriever
from meve.outside import StoreRetriever


class MeVeVectorStore(VectorStore):
    """Your vector store, seen through MeVe: what goes in and out does so on both sides, vectors and words.

    Its searches are the inner store's own. Verified retrieval is `as_verified_retriever`.

    Args:
        inner: any vector store; from now on, write to it through this one.
        options: of `MeVeRetriever.from_vectorstore`: config, embedder, verifier, tokens.
    """

    def __init__(self, inner: VectorStore, **options: Any) -> None:
        self.inner = inner
        self._engine: StoreRetriever = MeVeRetriever.from_vectorstore(inner, **options).engine

    @property
    def embeddings(self) -> Embeddings | None:
        """The inner store's."""
        return self.inner.embeddings

    def as_verified_retriever(self, **fields: Any) -> MeVeRetriever:
        """Verified retrieval over this store; all retrievers made so share one engine."""
        return MeVeRetriever(engine=self._engine, **fields)

    def add_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        """Add or replace documents, on both sides.

        Returns:
            Their ids.
        """
        return self._indexed(self.inner.add_documents(documents, **kwargs), documents)

    async def aadd_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        """The same where there is an event loop."""
        return self._indexed(await self.inner.aadd_documents(documents, **kwargs), documents)

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
        """Delete on both sides."""
        done = self.inner.delete(ids, **kwargs)
        self._forget(ids)
        return done

    async def adelete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """The same where there is an event loop."""
        done = await self.inner.adelete(ids, **kwargs)
        self._forget(ids)
        return done

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The inner store's documents of these ids."""
        return self.inner.get_by_ids(ids)

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The same where there is an event loop."""
        return await self.inner.aget_by_ids(ids)

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """The inner store's own search, which verifies nothing."""
        return self.inner.similarity_search(query, k=k, **kwargs)

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """The same where there is an event loop."""
        return await self.inner.asimilarity_search(query, k=k, **kwargs)

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> list[tuple[Document, float]]:
        """The inner store's own search, with its scores."""
        return self.inner.similarity_search_with_score(query, k=k, **kwargs)

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

    def _indexed(self, ids: Sequence[str], documents: Sequence[Document]) -> list[str]:
        named = [d.model_copy(update={"id": str(i)}) for i, d in zip(ids, documents, strict=True)]
        self._engine.index(as_passages(named))
        return list(ids)

    def _forget(self, ids: Sequence[str] | None) -> None:
        if ids is None:
            self._engine.refresh()
        else:
            self._engine.forget(map(str, ids))
