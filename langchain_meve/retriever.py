"""A LangChain retriever that returns verified documents within a token budget."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from langchain_core.runnables import RunnableConfig, run_in_executor
from langchain_core.vectorstores import VectorStore
from pydantic import ConfigDict, Field, field_validator

from langchain_meve._callback_events import make_event_emitter
from langchain_meve._documents import RetrievedDocuments, context_to_documents, documents_to_passages
from langchain_meve._retriever_options import LANGCHAIN_OPTION_NAMES, PositiveInt, Probability, parse_query
from langchain_meve._vector_store_adapters import adapt_vector_store
from meve import Retriever
from meve.components.verifiers import VerifierLike
from meve.errors import ConfigurationError, ValidationError
from meve.integrations._option_names import check_wrapper_keywords, collect_options, merge_options, translate_options
from meve.pipeline.config import RetrieverConfig, WhenInsufficient
from meve.pipeline.context import Context
from meve.pipeline.engine import TokenCounterLike
from meve.pipeline.trace import Observer
from meve.ports import Embedder
from meve.retrieval.external_store import StoreRetriever

_OPTION_FIELDS = ("k", "candidates", "threshold", "max_tokens", "when_insufficient")


class MeVeRetriever(BaseRetriever):
    """Retrieves, verifies and ranks documents and cuts them to a token budget.

    If the verified documents don't suffice, others follow, or what `when_insufficient` says. Each document's metadata
    holds its relevance score, whether it was verified, and its source. Copies, bindings and configured versions share
    one corpus and its models.

    Setup:
        `pip install 'meve[langchain]'` includes the models; no API key and no network are needed.

    Instantiate:
        >>> from langchain_core.documents import Document
        >>> retriever = MeVeRetriever.from_documents(
        ...     [Document("Tomatoes want six to eight hours of sun a day."), Document("Bread is baked.")], k=1
        ... )

    Usage:
        >>> [document.page_content for document in retriever.invoke("How much sun do tomatoes want?")]
        ['Tomatoes want six to eight hours of sun a day.']

    Use within a chain:
        `{"context": retriever | format_docs, "question": RunnablePassthrough()} | prompt | model`
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    retriever: Any = Field(exclude=True, repr=False)
    """A `meve.Retriever` or `StoreRetriever` with corpus and models; shared by all copies."""
    k: PositiveInt | None = None
    """The most documents to return; None for no limit but the budget."""
    candidates: PositiveInt | None = None
    """The number of candidates from each source in the first phase; None for the value in `config`."""
    threshold: Probability | None = None
    """The probability from which a document counts as verified, in [0, 1]; None for the value in `config`."""
    max_tokens: PositiveInt | None = None
    """The most tokens of all documents together, separators included; None for the value in `config`."""
    when_insufficient: WhenInsufficient | None = None
    """What to do with a context that isn't sufficient, as in `RetrieverConfig`; None for the value in `config`, by
    default `return`."""
    options: dict[str, Any] = Field(default_factory=dict, repr=False)
    """Other values of `meve.RetrieverConfig` by name, which can also be given as keyword arguments."""
    filter: Any = Field(default=None, repr=False)
    """The condition that documents must satisfy in every phase, in the store's filter language."""
    trace_text: bool = False
    """Whether callback events hold the text of query and context."""
    trace_phases: bool = False
    """Whether each phase is a run of its own, as LangSmith shows it; events alone are cheaper."""

    def __init__(self, **fields: Any) -> None:
        """Check the fields, and take any value of `meve.RetrieverConfig` by name.

        Raises:
            ConfigurationError: an unknown name, two names of the same option, or an invalid value.
        """
        super().__init__(**collect_options(type(self), LANGCHAIN_OPTION_NAMES, fields))

    @field_validator("retriever")
    @classmethod
    def _check_retriever(cls, retriever: Any) -> Any:
        if not callable(getattr(retriever, "retrieve", None)):
            raise ValueError(
                f"retriever must be a meve.Retriever, got {retriever!r:.60}: use MeVeRetriever.from_documents(…)"
            )
        return retriever

    @classmethod
    def from_documents(
        cls,
        documents: Sequence[Document],
        *,
        config: RetrieverConfig | None = None,
        embedder: Embedder | str | None = None,
        verifier: VerifierLike | None = None,
        tokens: TokenCounterLike | None = None,
        **fields: Any,
    ) -> Self:
        """Build a retriever over documents; those without text are skipped, and of equal ids the first counts.

        Args:
            documents: the corpus.
            config: the retrieval settings.
            embedder: as for `meve.Retriever`; None for the default one.
            verifier: as for `meve.Retriever`; None for the default one.
            tokens: counts tokens for budgets.
            fields: fields of this class, and values of `meve.RetrieverConfig`, by name.

        Raises:
            MeveError: as `meve.Retriever.from_passages`.
        """
        check_wrapper_keywords(cls.from_documents, cls, fields)
        retriever = Retriever.from_passages(
            documents_to_passages(documents), config=config, embedder=embedder, verifier=verifier, tokens=tokens
        )
        return cls(retriever=retriever, **fields)

    @classmethod
    def from_texts(
        cls,
        texts: Sequence[str],
        metadatas: Sequence[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str] | None = None,
        **options: Any,
    ) -> Self:
        """Build a retriever over texts; the options are those of `from_documents`.

        Raises:
            MeveError: lists of different lengths, or as `from_documents`.
        """
        if isinstance(texts, str):
            raise ValidationError(f"texts must be a list of texts, got a single text {texts!r:.40}")
        for name, others in (("metadatas", metadatas), ("ids", ids)):
            if others is not None and len(others) != len(texts):
                raise ConfigurationError(f"{name} needs one entry per text, got {len(others)} for {len(texts)} texts")
        documents = [
            Document(id=ids[n] if ids else None, page_content=text, metadata=metadatas[n] if metadatas else {})
            for n, text in enumerate(texts)
        ]
        return cls.from_documents(documents, **options)

    @classmethod
    def from_vectorstore(
        cls,
        vectorstore: VectorStore,
        *,
        documents: Sequence[Document] | None = None,
        keyword_search: bool | Literal["store"] = True,
        filter_keyword: str | None = None,
        search_kwargs: Mapping[str, Any] | None = None,
        config: RetrieverConfig | None = None,
        embedder: Embedder | str | None = None,
        verifier: VerifierLike | None = None,
        tokens: TokenCounterLike | None = None,
        **fields: Any,
    ) -> Self:
        """Build a retriever whose first phase searches an existing vector store.

        The keyword index is built here from the documents that the store lists (InMemoryVectorStore, FAISS, Chroma,
        Qdrant); for other stores, pass `documents`. Documents deleted from the store are never returned. Documents
        added directly to the store are found by vectors at once, and by keywords after `self.retriever.refresh()`.

        Args:
            vectorstore: any LangChain vector store.
            documents: the store's documents with their ids, if the store can't list them.
            keyword_search: whether to search by keywords too; False reads no documents here, and neither does `store`,
                for a store whose own search joins vectors and words (Qdrant's hybrid mode, Elasticsearch, OpenSearch).
            filter_keyword: the parameter by which an unknown store's search takes a filter; without it, filters are
                refused, since the store would ignore an unknown parameter.
            search_kwargs: further arguments of the store's searches. A condition on documents is a `filter` instead,
                since keyword search doesn't take these arguments.
            config: the retrieval settings.
            embedder: its cosines count as evidence and tell duplicates; None for MiniLM, which ships, `static` for a
                faster one that finds less. The store searches by its own.
            verifier: as for `meve.Retriever`; None for the default one.
            tokens: counts tokens for budgets.
            fields: fields of this class, and values of `meve.RetrieverConfig`, by name.

        Raises:
            ConfigurationError: `documents` that the store can't get by id, `keyword_search="store"` for one that
                searches vectors alone, or `search_kwargs` with `k` or a condition on documents.
            MeveError: a component can't be loaded, or the store failed.
        """
        check_wrapper_keywords(cls.from_vectorstore, cls, fields)
        store = adapt_vector_store(vectorstore, filter_keyword, search_kwargs)
        store.check_search_kwargs(by_keywords=keyword_search is True)
        if keyword_search == "store":
            store.check_hybrid()
        if documents is not None:
            store.check_documents(documents)
        retriever = StoreRetriever.from_store(
            store,
            passages=None if documents is None else [store.passage(document) for document in documents],
            words=keyword_search and store.can_list if isinstance(keyword_search, bool) else keyword_search,
            config=config,
            embedder=embedder,
            verifier=verifier,
            tokens=tokens,
        )
        return cls(retriever=retriever, **fields)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return a copy that shares corpus and models."""
        return self.model_copy()

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """Return the documents for a query.

        Args:
            input: the query, or a dict with an `input`.
            config: LangChain's configuration.
            kwargs: `k`, `filter`, and any value of `meve.RetrieverConfig`, for this call.

        Raises:
            MeveError: an unknown option, or what `meve.Retriever.retrieve` raises.
        """
        return super().invoke(parse_query(input), config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """Run `invoke` off the event loop."""
        return await super().ainvoke(parse_query(input), config, **kwargs)

    def context(
        self,
        query: str,
        *,
        filter: Any = None,
        observer: Observer | None = None,
        **options: Any,
    ) -> Context:
        """Return the retrieval as a context: its text, tokens and trace, and whether it is sufficient."""
        if "where" in options:
            raise ConfigurationError("unknown option 'where': it is called 'filter' here")
        fields = merge_options(LANGCHAIN_OPTION_NAMES, {name: getattr(self, name) for name in _OPTION_FIELDS})
        where = self.filter if filter is None else filter
        settings = {**self.options, **fields, **translate_options(LANGCHAIN_OPTION_NAMES, options)}
        context: Context = self.retriever.retrieve(parse_query(query), where=where, observer=observer, **settings)
        return context

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        if not query.strip():
            return RetrievedDocuments()
        emitter = make_event_emitter(run_manager.get_child(), include_text=self.trace_text, runs=self.trace_phases)
        context = self.context(query, observer=emitter, **options)
        if emitter:
            emitter.report_context(context)
        return context_to_documents(context)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return await run_in_executor(
            None, self._get_relevant_documents, query, run_manager=run_manager.get_sync(), **options
        )

    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        params = super()._get_ls_params(**kwargs)
        params["ls_embedding_model"] = self.retriever.engine.embedder.name
        store = getattr(self.retriever, "store", None)
        if store is not None:
            embeddings = store.vectorstore.embeddings
            params["ls_vector_store_provider"] = store.name
            params["ls_embedding_provider"] = type(embeddings).__name__ if embeddings is not None else None
            params["ls_embedding_model"] = getattr(embeddings, "model_name", None) or getattr(embeddings, "model", None)
        return params
