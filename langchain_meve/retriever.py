"""MeVe as a LangChain retriever: what it returns was verified, ordered and cut to a budget."""

from collections.abc import Sequence
from typing import Any, Self

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from langchain_core.runnables import RunnableConfig, run_in_executor
from langchain_core.vectorstores import VectorStore
from pydantic import ConfigDict, Field, field_validator

from langchain_meve._callback_events import make_event_emitter
from langchain_meve._documents import RetrievedDocuments, context_to_documents, documents_to_passages
from langchain_meve._options import OPTION_NAMES, PositiveInt, Probability, parse_query
from langchain_meve._vector_store_adapters import adapt_vector_store
from meve import Retriever
from meve.errors import ConfigurationError
from meve.integrations._options import overrides, renamed
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.context import Context
from meve.pipeline.engine import Tokens
from meve.pipeline.trace import Observer
from meve.ports import Embedder, Verifier
from meve.retrieval.external_store import StoreRetriever

FIELDS = ("k", "candidates", "threshold", "max_tokens")


class MeVeRetriever(BaseRetriever):
    """Verified retrieval as a retriever.

    It returns what the verifier lets in, best first, and no more than the budget takes: fewer than `k` is normal, none
    is an answer too. Each document says in its metadata how likely it answers, whether it was verified, and where it
    came from. The engine is shared: copies, bindings and configured versions of a retriever build nothing anew.

    Setup:
        `pip install 'meve[langchain]'`; the models come with it, no key and no network are needed.

    Instantiate:
        >>> from langchain_core.documents import Document
        >>> retriever = MeVeRetriever.from_documents(
        ...     [Document("Tomatoes want six to eight hours of sun a day."), Document("Bread is baked.")], k=1
        ... )

    Usage:
        >>> [document.page_content for document in retriever.invoke("How much sun do tomatoes want?")]
        ['Tomatoes want six to eight hours of sun a day.']

    Use within a chain:
        `{"context": retriever | format_docs, "parse_query": RunnablePassthrough()} | prompt | model`
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    engine: Any = Field(exclude=True, repr=False)
    """What does the work, with corpus and models; shared by all copies."""
    k: PositiveInt | None = None
    """How many documents at most; None for as many as the budget takes."""
    candidates: PositiveInt | None = None
    """How many candidates a source brings in the first phase; None for the engine's."""
    threshold: Probability | None = None
    """The probability from which on a document counts as verified; None for the engine's."""
    max_tokens: PositiveInt | None = None
    """The most tokens of all documents together, separators included; None for the engine's."""
    filter: Any = Field(default=None, repr=False)
    """What a document must satisfy, in the language of the store; it holds in every phase."""
    trace_text: bool = False
    """Whether events hold the text of query and context."""
    trace_phases: bool = False
    """Whether each phase is a run of its own, which LangSmith shows; events alone are cheaper."""

    @field_validator("engine")
    @classmethod
    def _retrieves(cls, engine: Any) -> Any:
        if not callable(getattr(engine, "retrieve", None)):
            raise ValueError(f"engine is {engine!r:.60}: give a meve.Retriever, or use MeVeRetriever.from_documents(…)")
        return engine

    @classmethod
    def from_documents(
        cls,
        documents: Sequence[Document],
        *,
        config: RetrieverConfig | None = None,
        embedder: Embedder | str | None = None,
        verifier: Verifier | str | None = None,
        tokens: Tokens | None = None,
        **fields: Any,
    ) -> Self:
        """A retriever over these documents; those without text are left out, and of equal ids the first counts.

        Args:
            documents: what to retrieve from. One without an id gets one of its source and text.
            config: how to decide.
            embedder: as for `meve.Retriever`; None for the one that ships.
            verifier: as for `meve.Retriever`; None for the one that ships.
            tokens: what budgets are counted with.
            fields: of this class, by name.

        Raises:
            MeveError: as `meve.Retriever.from_passages`.
        """
        engine = Retriever.from_passages(
            documents_to_passages(documents), config=config, embedder=embedder, verifier=verifier, tokens=tokens
        )
        return cls(engine=engine, **fields)

    @classmethod
    def from_texts(
        cls,
        texts: Sequence[str],
        metadatas: Sequence[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str] | None = None,
        **options: Any,
    ) -> Self:
        """A retriever over these texts; the options are those of `from_documents`.

        Raises:
            MeveError: lists of different lengths, or as `from_documents`.
        """
        for name, others in (("metadatas", metadatas), ("ids", ids)):
            if others is not None and len(others) != len(texts):
                raise ConfigurationError(f"{len(texts)} texts and {len(others)} {name}: give as many of the one")
        made = [
            Document(id=ids[n] if ids else None, page_content=text, metadata=metadatas[n] if metadatas else {})
            for n, text in enumerate(texts)
        ]
        return cls.from_documents(made, **options)

    @classmethod
    def from_vectorstore(
        cls,
        vectorstore: VectorStore,
        *,
        documents: Sequence[Document] | None = None,
        words: bool = True,
        filter_keyword: str | None = None,
        config: RetrieverConfig | None = None,
        embedder: Embedder | str | None = None,
        verifier: Verifier | str | None = None,
        tokens: Tokens | None = None,
        **fields: Any,
    ) -> Self:
        """A retriever whose first phase is a vector store that you keep.

        Its words are read once, here, where it can list its documents (InMemoryVectorStore, FAISS, Chroma, Qdrant); for
        another, give `documents`, or do without keyword search. What it lets go is never returned; what it takes in
        behind the retriever's back is found by its vectors at once, and by its words after `engine.refresh()`.

        Args:
            vectorstore: any.
            documents: what it holds, each with its id, where it can't list that itself.
            words: whether to search by words too; False reads nothing here.
            filter_keyword: by which name its search takes a filter, of a store that isn't known here; without, a filter
                is refused, since a store that doesn't know the word would ignore it.
            config: how to decide.
            embedder: makes vectors for telling copies apart; None for the one that ships. The store keeps its own.
            verifier: as for `meve.Retriever`; None for the one that ships.
            tokens: what budgets are counted with.
            fields: of this class, by name.

        Raises:
            ConfigurationError: documents that the store couldn't be asked for by their id.
            MeveError: parts that can't be had, or a store that failed.
        """
        store = adapt_vector_store(vectorstore, filter_keyword)
        if documents is not None:
            store.check_documents(documents)
        engine = StoreRetriever.over(
            store,
            passages=None if documents is None else [store.passage(document) for document in documents],
            words=words and store.lists,
            config=config,
            embedder=embedder,
            verifier=verifier,
            tokens=tokens,
        )
        return cls(engine=engine, **fields)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """A copy that shares the engine."""
        return self.model_copy()

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """The documents for a question.

        Args:
            input: the question; of a dict, its `input`.
            config: LangChain's.
            kwargs: `k`, `filter`, and any value of `meve.RetrieverConfig`, for this call.

        Raises:
            MeveError: an unknown option, or what `meve.Retriever.retrieve` raises.
        """
        return super().invoke(parse_query(input), config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """The same, off the event loop."""
        return await super().ainvoke(parse_query(input), config, **kwargs)

    def context(
        self,
        query: str,
        *,
        filter: Any = None,
        observer: Observer | None = None,
        **options: Any,
    ) -> Context:
        """The same as a context: its text, its tokens, whether it is sufficient, and the trace."""
        fields = overrides(OPTION_NAMES, {name: getattr(self, name) for name in FIELDS})
        where = self.filter if filter is None else filter
        asked = {**fields, **renamed(OPTION_NAMES, options)}
        found: Context = self.engine.retrieve(parse_query(query), where=where, observer=observer, **asked)
        return found

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        if not query.strip():
            return RetrievedDocuments()
        tell = make_event_emitter(run_manager.get_child(), text=self.trace_text, runs=self.trace_phases)
        found = self.context(query, observer=tell, **options)
        if tell:
            tell.end(found)
        return context_to_documents(found)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return await run_in_executor(
            None, self._get_relevant_documents, query, run_manager=run_manager.get_sync(), **options
        )

    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        made = super()._get_ls_params(**kwargs)
        made["ls_embedding_model"] = self.engine.engine.embedder.name
        store = getattr(self.engine, "store", None)
        if store is not None:
            embeddings = store.vectorstore.embeddings
            made["ls_vector_store_provider"] = store.name
            made["ls_embedding_provider"] = type(embeddings).__name__ if embeddings is not None else None
            made["ls_embedding_model"] = getattr(embeddings, "model_name", None) or getattr(embeddings, "model", None)
        return made
