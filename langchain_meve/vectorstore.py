"""A LangChain vector store that keeps a keyword index in step with its vectors."""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import run_in_executor
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from langchain_meve._documents import DocumentPassage, document_to_passage
from langchain_meve._vector_store_adapters import VectorStoreAdapter
from langchain_meve.retriever import MeVeRetriever
from meve.components.verifiers import VerifierLike
from meve.integrations._option_names import explain_unknown_options
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.engine import TokenCounterLike
from meve.ports import Embedder
from meve.retrieval.external_store import StoreRetriever


class MeVeVectorStore(VectorStore):
    """Wraps a vector store: additions and deletions update both its vectors and a keyword index.

    Searches are the inner store's own and return documents as they were added, with their ids. Any text can be an id,
    even over Qdrant, whose points only have numbers and UUIDs. `as_verified_retriever` gives verified retrieval.

    Args:
        inner: any vector store; write to it through this wrapper from now on.
        documents: its documents with their ids, if the store can't list them.
        filter_keyword: as for `MeVeRetriever.from_vectorstore`; filters over an unknown store need it.
        config: the retrieval settings.
        embedder: as for `MeVeRetriever.from_vectorstore`; None for MiniLM, which ships.
        verifier: as for `meve.Retriever`; None for the default one.
        tokens: counts tokens for budgets.

    Raises:
        MeveError: a component can't be loaded, or the store failed.
    """

    @explain_unknown_options
    def __init__(
        self,
        inner: VectorStore,
        *,
        documents: Sequence[Document] | None = None,
        filter_keyword: str | None = None,
        config: RetrieverConfig | None = None,
        embedder: Embedder | str | None = None,
        verifier: VerifierLike | None = None,
        tokens: TokenCounterLike | None = None,
    ) -> None:
        self.inner = inner
        retriever = MeVeRetriever.from_vectorstore(
            inner, documents=documents, filter_keyword=filter_keyword, config=config, embedder=embedder,
            verifier=verifier, tokens=tokens,
        )  # fmt: skip
        self._retriever: StoreRetriever = retriever.retriever
        self._store: VectorStoreAdapter = retriever.retriever.store

    @property
    def embeddings(self) -> Embeddings | None:
        """The inner store's embeddings."""
        return self.inner.embeddings

    def as_verified_retriever(self, **fields: Any) -> MeVeRetriever:
        """Return a retriever over this store; all such retrievers share its index and models.

        Args:
            fields: fields of `MeVeRetriever`: `k`, `filter`, `max_tokens`, …
        """
        return MeVeRetriever(retriever=self._retriever, **fields)

    def add_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        """Add or replace documents in store and keyword index and return their ids; of equal ids the last counts."""
        new = _Addition(self._store, documents, kwargs.pop("ids", None))
        with self._retriever.updating():
            if not self._store.replaces:
                self._delete_existing(list(new.latest))
            added = self.inner.add_documents(new.stored, ids=new.keys, **kwargs)
            return self._index(new, added)

    async def aadd_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        """Run `add_documents`; the inner store and its embeddings are awaited."""
        new = _Addition(self._store, documents, kwargs.pop("ids", None))
        with self._retriever.updating():
            if not self._store.replaces:
                await run_in_executor(None, self._delete_existing, list(new.latest))
            added = await self.inner.aadd_documents(new.stored, ids=new.keys, **kwargs)
            return await run_in_executor(None, self._index, new, added)

    def _index(self, new: "_Addition", added: Sequence[Any]) -> list[str]:
        """Index what the inner store has added under the ids `added`, and return the ids of all documents."""
        store_ids = new.match_ids(added)
        self._retriever.index([self._passage(store_ids[i], document) for i, document in new.latest.items()])
        return [store_ids[i] for i in new.ids]

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add or replace texts in the store and the keyword index and return their ids.

        Args:
            texts: any iterable of texts.
            metadatas: one per text.
            ids: one per text; None to create them.
            kwargs: options of the inner store.

        Raises:
            ValueError: the number of metadatas or ids differs from that of the texts; nothing was added.
        """
        return self.add_documents(_make_documents(texts, metadatas), ids=ids or None, **kwargs)

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Run `add_texts`; the inner store and its embeddings are awaited."""
        return await self.aadd_documents(_make_documents(texts, metadatas), ids=ids or None, **kwargs)

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """Delete documents from the store and the keyword index; unknown ids are ignored.

        Args:
            ids: the documents' ids; the inner store decides what None means.
            kwargs: options of the inner store.

        Returns:
            The inner store's result; after False the keyword index is unchanged.
        """
        with self._retriever.updating():
            if ids is not None and not self._store.replaces:
                return self._delete_existing(ids)
            result = self.inner.delete(None if ids is None else self._keys(ids), **kwargs)
            if result is False:
                return result
            if ids is not None:
                self._retriever.unindex(map(str, ids))
            elif self._store.can_list:
                self._retriever.refresh()
            else:
                self._retriever.clear_index()
            return result

    def _delete_existing(self, ids: Sequence[str]) -> bool:
        """Delete the ids that exist, from a store that refuses unknown ones."""
        existing = [str(document.id) for document in self.inner.get_by_ids(list(ids))]
        if existing:
            self.inner.delete(existing)
        self._retriever.unindex(ids)
        return True

    def _keys(self, ids: Iterable[str]) -> list[Any]:
        return [self._store.to_store_id(str(i)) for i in ids]

    def _passage(self, store_id: str, document: Document) -> DocumentPassage:
        return document_to_passage(document, self._store.canonical_id(store_id))

    def _from_stored(self, documents: Iterable[Document]) -> list[Document]:
        return [self._store.from_stored(document) for document in documents]

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids."""
        return self._from_stored(self.inner.get_by_ids(self._keys(ids)))

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Run `get_by_ids` asynchronously."""
        return self._from_stored(await self.inner.aget_by_ids(self._keys(ids)))

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the result of the inner store's search, without verification."""
        return self._from_stored(self.inner.similarity_search(query, k=k, **kwargs))

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Run `similarity_search` asynchronously."""
        return self._from_stored(await self.inner.asimilarity_search(query, k=k, **kwargs))

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> list[tuple[Document, float]]:
        """Return the result of the inner store's search with its scores."""
        scored = self.inner.similarity_search_with_score(query, k=k, **kwargs)
        return [(self._store.from_stored(document), score) for document, score in scored]

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the result of the inner store's search by vector."""
        return self._from_stored(self.inner.similarity_search_by_vector(embedding, k=k, **kwargs))

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return the result of the inner store's MMR search."""
        return self._from_stored(self.inner.max_marginal_relevance_search(query, k, fetch_k, lambda_mult, **kwargs))

    def max_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return the result of the inner store's MMR search by vector."""
        return self._from_stored(
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
        """Build a store over a new InMemoryVectorStore; `kwargs` are those of the class."""
        store = cls(InMemoryVectorStore(embedding), **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store


class _Addition:
    """Documents to be added by their ids, the last of each id, and as the inner store takes them."""

    def __init__(
        self, store: VectorStoreAdapter, documents: Sequence[Document], ids: Sequence[str | None] | None
    ) -> None:
        self.ids = _ids(documents, ids)
        self.latest = dict(zip(self.ids, documents, strict=True))
        self.keys = [store.to_store_id(i) for i in self.latest]
        self.stored = [store.to_stored(document, i) for i, document in self.latest.items()]

    def match_ids(self, added: Sequence[Any]) -> dict[str, str]:
        """Return the store's ids by ours, as `added` lists them in the order of the keys."""
        pairs = zip(self.latest, self.keys, added, strict=True)
        return {i: i if key == wanted else str(key) for i, wanted, key in pairs}


def _make_documents(texts: Iterable[str], metadatas: Sequence[Mapping[str, Any]] | None) -> list[Document]:
    """Return the texts as documents.

    Raises:
        ValueError: a single text, or the number of metadatas differs from that of the texts.
    """
    if isinstance(texts, str):
        raise ValueError(f"texts must be a list of texts, got a single text {texts!r:.40}")
    listed = list(texts)
    given = metadatas or [{}] * len(listed)
    if len(given) != len(listed):
        raise ValueError(f"metadatas must have one entry per text, got {len(given)} for {len(listed)} texts")
    return [Document(text, metadata=dict(each)) for text, each in zip(listed, given, strict=True)]


def _ids(documents: Sequence[Document], given: Sequence[str | None] | None) -> list[str]:
    """Return the ids of documents: those given, their own, or new ones.

    Raises:
        ValueError: the numbers of ids and documents differ.
    """
    listed = [document.id for document in documents] if given is None else list(given)
    if len(listed) != len(documents):
        raise ValueError(f"ids must have one entry per document, got {len(listed)} for {len(documents)} documents")
    return [str(i) if i else str(uuid.uuid4()) for i in listed]
