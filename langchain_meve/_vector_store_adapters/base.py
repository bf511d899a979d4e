"""The generic adapter, for any LangChain vector store."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from langchain_meve._documents import DocumentPassage, document_to_passage
from langchain_meve.embeddings import MeVeEmbeddings
from meve.errors import ConfigurationError
from meve.integrations._foreign_minilm import is_shipped_minilm
from meve.types import FloatArray

_CONDITIONS = ("filter", "filters", "pre_filter", "post_filter", "expr", "where", "where_document")
"""Names by which stores take a condition on documents."""


class VectorStoreAdapter:
    """Adapts a vector store that can search and, mostly, get documents by id.

    It can't evaluate filters itself, so with a filter it admits no keyword hits.

    Args:
        vectorstore: the store.
        filter_keyword: the parameter by which its `similarity_search` takes a filter; None if unknown.
        search_kwargs: further arguments of its searches.
    """

    can_list = False
    """Whether the store can list and count its documents."""
    searches_words = True
    """Whether the store, or one of its class, can search vectors and words together."""
    replaces = True
    """Whether adding a document under a used id replaces the old one."""

    def __init__(
        self,
        vectorstore: VectorStore,
        filter_keyword: str | None = None,
        search_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self.vectorstore: Any = vectorstore
        self.name = type(vectorstore).__name__
        self._filter_keyword = filter_keyword
        self._search_kwargs = dict(search_kwargs or {})
        self._known_embedders: dict[str, bool] = {}

    def canonical_id(self, passage_id: str) -> str:
        """Return an id as the store spells it."""
        return passage_id

    def to_store_id(self, document_id: str) -> Any:
        """Return an id in the type that the store takes."""
        return document_id

    def to_stored(self, document: Document, document_id: str) -> Document:  # noqa: ARG002
        """Return a document as the store shall hold it, under the key of this id."""
        return document

    def from_stored(self, document: Document) -> Document:
        """Return a document of the store as it was added."""
        return document

    def nearest(self, query: str, k: int, where: Any) -> list[tuple[DocumentPassage, float | None]]:
        """Return the passages of its similarity search, each with the store's score if it gives one."""
        options = self._options(where)
        try:
            scored = self.vectorstore.similarity_search_with_score(query, k=k, **options)
        except NotImplementedError:
            documents = self.vectorstore.similarity_search(query, k=k, **options)
            return [(self.passage(document), None) for document in documents]
        return [(self.passage(document), float(score)) for document, score in scored]

    def search_both(self, query: str, k: int, where: Any) -> list[tuple[DocumentPassage, float | None]]:
        """Return 2k passages of its search by vectors and words, without scores: not all stores give them then."""
        documents = self.vectorstore.similarity_search(query, k=2 * k, **self._options(where))
        return [(self.passage(document), None) for document in documents]

    def check_hybrid(self) -> None:
        """Check that the store searches vectors and words together, as far as is known.

        Raises:
            ConfigurationError: it doesn't.
        """
        if not self.searches_words:
            raise ConfigurationError(
                f"keyword_search must be True or False over {self.name}, which searches vectors alone, got 'store'"
            )

    def check_search_kwargs(self, *, by_keywords: bool) -> None:
        """Check that the further arguments of searches hold neither their number nor a condition.

        Args:
            by_keywords: whether MeVe searches by keywords too, which these arguments don't reach.

        Raises:
            ConfigurationError: they do.
        """
        conditions = {self._filter_keyword, *(_CONDITIONS if by_keywords else ())}
        for name in self._search_kwargs:
            if name == "k" or name in conditions:
                instead = (
                    "k=… for the documents that are returned, candidates=… for those that a search finds"
                    if name == "k"
                    else "filter=…, which holds for keyword search too"
                )
                raise ConfigurationError(
                    f"search_kwargs must not hold {name!r}, got {self._search_kwargs[name]!r:.80}: give {instead}"
                )

    def _options(self, where: Any) -> dict[str, Any]:
        return {**self._search_kwargs, **({} if where is None else self.filter_options(where))}

    def filter_options(self, where: Any) -> dict[str, Any]:
        """Return the search arguments that pass a filter to the store.

        Raises:
            ConfigurationError: the parameter is unknown; the store would ignore a wrong one.
        """
        if self._filter_keyword is None:
            raise ConfigurationError(
                f"filter_keyword is needed to filter {self.name}, which may ignore an unknown parameter: give "
                "from_vectorstore or MeVeVectorStore the name of its similarity_search's filter parameter"
            )
        return {self._filter_keyword: where}

    def passage(self, document: Document) -> DocumentPassage:
        """Convert a document of this store to a passage."""
        return document_to_passage(document)

    def fetch(self, ids: Sequence[str], where: Any) -> list[DocumentPassage]:
        """Return the passages with these ids that the store still holds; none if there is a filter."""
        return [] if where is not None else [self.passage(d) for d in self.vectorstore.get_by_ids(list(ids))]

    def check_documents(self, documents: Sequence[Document]) -> None:
        """Check that the store can get the documents by id when a keyword search finds them.

        Raises:
            ConfigurationError: the store can't get by id, or a document has no id.
        """
        if type(self.vectorstore).get_by_ids is VectorStore.get_by_ids:
            raise ConfigurationError(
                f"{self.name} can't get documents by id, so keyword hits can't be checked for deletion: leave out "
                "documents= to search by vectors alone"
            )
        without_id = sum(not document.id for document in documents)
        if without_id:
            raise ConfigurationError(
                f"each document needs its id in the store, got {without_id} of {len(documents)} without one: set "
                "`Document.id`"
            )

    def list_passages(self) -> Iterable[DocumentPassage]:
        """Return all passages of the store.

        Raises:
            ConfigurationError: the store can't list its documents.
        """
        raise ConfigurationError(
            f"{self.name} can't list its documents: pass from_vectorstore(…, documents=…) for keyword search"
        )

    def read_vectors(self, ids: Sequence[str], embedder: str) -> Mapping[str, FloatArray]:
        """Return the stored vectors of these passages by id; none unless the embeddings are this embedder's model."""
        return self._stored_vectors(ids) if ids and self._embeds_by(embedder) else {}

    def truncates(self, embedder: str) -> bool:
        """Return whether vectors that count as this embedder's may be those of the beginnings of long texts."""
        return not isinstance(self.vectorstore.embeddings, MeVeEmbeddings) and self._embeds_by(embedder)

    def _embeds_by(self, embedder: str) -> bool:
        if embedder not in self._known_embedders:
            embeddings = self.vectorstore.embeddings
            if isinstance(embeddings, MeVeEmbeddings):
                is_same = embeddings.embedder.name == embedder
            else:
                name = getattr(embeddings, "model_name", None) or getattr(embeddings, "model", "")
                is_same = is_shipped_minilm(str(name), embedder, getattr(embeddings, "embed_documents", None))
            self._known_embedders[embedder] = is_same
        return self._known_embedders[embedder]

    def _stored_vectors(self, ids: Sequence[str]) -> Mapping[str, FloatArray]:  # noqa: ARG002
        """Return the vectors that the store holds, by id; none if it can't tell."""
        return {}

    def size(self) -> int | None:
        """Return the number of documents; None if the store can't count."""
        return None
