"""MeVeRetriever: a LlamaIndex retriever that verifies, orders and cuts what it returns to a token budget."""

import asyncio
import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore, QueryBundle, QueryType
from llama_index.core.vector_stores.types import MetadataFilters

from llama_index_meve._async_bridge import run_in_thread
from llama_index_meve._default_tokenizer import resolve_token_counter
from llama_index_meve._instrumentation import dispatcher, emit_trace, phase_observer
from llama_index_meve._metadata_filters import NamedPredicate, normalize_filters
from llama_index_meve._nodes import OPTION_MAP, context_to_nodes, nodes_to_passages
from llama_index_meve._query_bundle import query_context, query_vector
from llama_index_meve._vector_stores import make_store
from meve import Retriever
from meve.components.verifiers import VerifierLike
from meve.errors import ConfigurationError, EmptyCorpusError
from meve.integrations._option_names import translate_options
from meve.pipeline.config import Overrides, RetrieverConfig, check_keywords
from meve.pipeline.context import Context
from meve.pipeline.engine import TokenCounterLike
from meve.ports import Embedder
from meve.retrieval.external_store import StoreRetriever


class MeVeRetriever(BaseRetriever):
    """Verified retrieval as a LlamaIndex retriever.

    It returns verified nodes, best first, within the token budget; then others if these don't suffice, or what
    `when_insufficient` says. Each node's metadata holds `meve_verified`. A node's score is the probability that it
    answers. The verifier judges the text that embedders see; the budget counts the text that models are sent.

    Args:
        retriever: a `meve.Retriever`, or a `meve.retrieval.external_store.StoreRetriever`; copies share it.
        top_k: the most nodes; None for as many as the budget allows.
        filters: conditions on metadata, applied in every phase.
        objects: nodes that stand for other objects, as for any LlamaIndex retriever.
        object_map: the objects by node.
        verbose: whether LlamaIndex prints the objects it enters.
        options: any value of `meve.RetrieverConfig`, by name, such as `when_insufficient`; None where it is a value
            there, as for `limit`, else the retriever's own.
        callback_manager: LlamaIndex's.

    Raises:
        ConfigurationError: an invalid retriever or filter, an unknown option, or a value out of range.
    """

    def __init__(
        self,
        retriever: Any,
        *,
        top_k: int | None = None,
        filters: MetadataFilters | None = None,
        callback_manager: CallbackManager | None = None,
        objects: list[IndexNode] | None = None,
        object_map: dict[str, Any] | None = None,
        verbose: bool = False,
        **options: Any,
    ) -> None:
        if not isinstance(retriever, Retriever | StoreRetriever):
            raise ConfigurationError(
                f"retriever must be a meve.Retriever, got {retriever!r:.60}: give one, or use "
                "MeVeRetriever.from_nodes(…) or from_index(…)"
            )
        check_keywords(type(self).__init__, options, also=Overrides.__annotations__)
        self.retriever: Any = retriever
        self.filters = normalize_filters(filters)
        given = {} if top_k is None else {"top_k": top_k}
        chosen = translate_options(OPTION_MAP, {**given, **options})
        default = RetrieverConfig()  # where None isn't a value, it stands for that of `retriever`
        self.options = {n: each for n, each in chosen.items() if each is not None or getattr(default, n) is None}
        retriever.engine.resolve_config(None, self.options)  # raises for invalid options
        super().__init__(callback_manager=callback_manager, objects=objects, object_map=object_map, verbose=verbose)

    @classmethod
    def from_nodes(
        cls,
        nodes: Sequence[BaseNode],
        *,
        config: RetrieverConfig | None = None,
        embedder: Embedder | str | None = None,
        verifier: VerifierLike | None = None,
        tokens: TokenCounterLike | None = None,
        **options: Any,
    ) -> Self:
        """Create a retriever over nodes; those without text are skipped, and of equal ids the first counts.

        Args:
            nodes: the nodes to retrieve from.
            config: the settings.
            embedder: as for `meve.Retriever`; None for MiniLM, which ships.
            verifier: as for `meve.Retriever`; None for the shipped one.
            tokens: counts tokens; None for LlamaIndex's own tokenizer.
            options: of this class.

        Raises:
            MeveError: as `meve.Retriever.from_passages`.
        """
        _check_options(cls, cls.from_nodes, options)
        retriever = Retriever.from_passages(
            nodes_to_passages(nodes),
            config=config,
            embedder=embedder,
            verifier=verifier,
            tokens=resolve_token_counter(tokens, config),
        )
        return cls(retriever, **options)

    @classmethod
    def from_index(
        cls,
        index: VectorStoreIndex,
        *,
        nodes: Sequence[BaseNode] | None = None,
        keyword_search: bool | Literal["store"] = True,
        config: RetrieverConfig | None = None,
        embedder: Embedder | str | None = None,
        verifier: VerifierLike | None = None,
        tokens: TokenCounterLike | None = None,
        **options: Any,
    ) -> Self:
        """Create a retriever whose first phase searches an existing index.

        If the index can list its nodes, they are indexed for keyword search here. Deleted nodes are never returned.
        Inserted nodes are found by vectors at once, and by keywords after `self.retriever.refresh()` or
        `await arefresh()`. A store with only an async client needs `arefresh` first.

        Args:
            index: any VectorStoreIndex.
            nodes: the index's nodes, if it can't list them; without them there is no keyword search.
            keyword_search: whether to search by keywords too; False reads no nodes here, and neither does `store`, for
                a vector store whose own search joins vectors and words (Qdrant's, Elasticsearch, OpenSearch).
            config: the settings.
            embedder: its cosines count as evidence and tell duplicates; None for MiniLM, which ships, `static` for a
                faster one that finds less. The index searches by its own.
            verifier: as for `meve.Retriever`; None for the shipped one.
            tokens: counts tokens; None for LlamaIndex's own tokenizer.
            options: of this class.

        Raises:
            ConfigurationError: `keyword_search="store"` for a vector store that searches vectors alone.
            MeveError: a component isn't available.
        """
        _check_options(cls, cls.from_index, options)
        store = make_store(index)
        if keyword_search == "store":
            store.check_hybrid()
        retriever = StoreRetriever.from_store(
            store,
            passages=None if nodes is None else nodes_to_passages(nodes),
            words=keyword_search and store.can_list if isinstance(keyword_search, bool) else keyword_search,
            config=config,
            embedder=embedder,
            verifier=verifier,
            tokens=resolve_token_counter(tokens, config),
        )
        options.setdefault("object_map", index._object_map)
        return cls(retriever, **options)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return a copy that shares corpus and models."""
        other = copy.copy(self)
        other.options = dict(self.options)
        return other

    def with_options(self, **options: Any) -> Self:
        """Return a copy with other options, which shares corpus and models.

        Args:
            options: `top_k`, and any value of `meve.RetrieverConfig`.

        Raises:
            ConfigurationError: an unknown option, or a value out of range.
        """
        other = copy.deepcopy(self)
        other.options |= translate_options(OPTION_MAP, options)
        self.retriever.engine.resolve_config(None, other.options)
        return other

    def context(self, query: QueryType, **options: Any) -> Context:
        """Return the verified context for a question: its text, tokens, sufficiency and trace.

        If a retrieved node stands for another object, the context is selected from what the objects return, and the
        trace tells of that.

        Args:
            query: the question; a QueryBundle may hold its embedding, or other texts to embed.
            options: `top_k`, and any value of `meve.RetrieverConfig`, for this call.

        Raises:
            MeveError: an unknown option, or an error of retrieval.
        """
        bundle = query if isinstance(query, QueryBundle) else QueryBundle(query)
        context = self._search(bundle, **options)
        nodes = context_to_nodes(context)
        if not _stand_for_others(nodes):
            return context
        return self._select(bundle.query_str, super()._handle_recursive_retrieval(bundle, nodes), **options)

    def _search(self, bundle: QueryBundle, **options: Any) -> Context:
        settings = {**self.options, **translate_options(OPTION_MAP, options), "observer": phase_observer()}
        if isinstance(self.retriever, StoreRetriever):
            with query_context(bundle):
                context: Context = self.retriever.retrieve(bundle.query_str, where=self.filters, **settings)
        else:
            where = None if self.filters is None else NamedPredicate(self.filters)
            vector = query_vector(bundle, self.retriever.engine.embedder)
            context = self.retriever.retrieve(bundle.query_str, where=where, vector=vector, **settings)
        emit_trace(context)
        return context

    async def arefresh(self) -> int:
        """Index the index's current nodes for keyword search and return their number, without blocking the event loop.

        Raises:
            ConfigurationError: the retriever has no index, or one that can't list its nodes.
            RetrievalError: the vector store failed.
        """
        if not isinstance(self.retriever, StoreRetriever):
            raise ConfigurationError(
                "a retriever over nodes has nothing to refresh: call retriever.add or retriever.remove"
            )
        return await run_in_thread(self.retriever.refresh)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if not query_bundle.query_str.strip():
            return []
        try:
            return context_to_nodes(self._search(query_bundle))
        except EmptyCorpusError:  # all nodes were removed: an index would return nothing
            return []

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await run_in_thread(self._retrieve, query_bundle)

    def _handle_recursive_retrieval(self, query_bundle: QueryBundle, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        resolved = super()._handle_recursive_retrieval(query_bundle, nodes)
        return self._verify_resolved(query_bundle.query_str, nodes, resolved)

    async def _ahandle_recursive_retrieval(
        self, query_bundle: QueryBundle, nodes: list[NodeWithScore]
    ) -> list[NodeWithScore]:
        resolved = await super()._ahandle_recursive_retrieval(query_bundle, nodes)
        return await asyncio.to_thread(self._verify_resolved, query_bundle.query_str, nodes, resolved)

    def _verify_resolved(
        self, query: str, nodes: list[NodeWithScore], resolved: list[NodeWithScore]
    ) -> list[NodeWithScore]:
        """Verify and budget the nodes that index nodes were resolved to."""
        return context_to_nodes(self._select(query, resolved)) if _stand_for_others(nodes) else resolved

    def _select(self, query: str, nodes: Sequence[NodeWithScore], **options: Any) -> Context:
        settings = {**self.options, **translate_options(OPTION_MAP, options)}
        passages = nodes_to_passages(each.node for each in nodes)
        context: Context = self.retriever.engine.select(query, passages, observer=phase_observer(), **settings)
        emit_trace(context)
        return context


def _stand_for_others(nodes: Sequence[NodeWithScore]) -> bool:
    return any(isinstance(each.node, IndexNode) for each in nodes)


def _check_options(owner: type[MeVeRetriever], function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Check the options of a function that passes them on to the class, before it does any work.

    Raises:
        ConfigurationError: an unknown option.
    """
    fields = [name for name in inspect.signature(owner).parameters if name not in ("retriever", "options")]
    check_keywords(function, options, also=[*fields, *Overrides.__annotations__])
