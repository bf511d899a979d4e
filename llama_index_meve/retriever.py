"""MeVe as a LlamaIndex retriever: what it returns was verified, ordered and cut to a budget."""

import asyncio
import copy
from collections.abc import Sequence
from typing import Any, Self

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore, QueryBundle, QueryType
from llama_index.core.vector_stores.types import MetadataFilters

from llama_index_meve._async_bridge import run_in_thread
from llama_index_meve._default_tokenizer import resolve_token_counter
from llama_index_meve._instrumentation import dispatcher, emit_trace, observer
from llama_index_meve._metadata_filters import filter_predicate, normalize_filters
from llama_index_meve._nodes import OPTION_NAMES, context_to_nodes, nodes_to_passages
from llama_index_meve._query_bundle import query_context, query_vector
from llama_index_meve._vector_stores import make_store
from llama_index_meve._when_empty import WhenEmpty, best_candidate
from meve import Retriever
from meve.errors import ConfigurationError, EmptyCorpusError
from meve.integrations._options import merge_options, translate_options
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.context import Context
from meve.pipeline.engine import Tokens
from meve.ports import Embedder, Verifier
from meve.retrieval.external_store import StoreRetriever


class MeVeRetriever(BaseRetriever):
    """Verified retrieval as a retriever.

    It returns what the verifier lets in, best first, and no more than the budget takes; none is an answer too. A node's
    score is the probability that it answers. What models are sent of a node is counted, what embedders see is judged.

    Args:
        engine: what does the work: a `meve.Retriever`, or a `meve.retrieval.external_store.StoreRetriever`; copies may share it.
        top_k: how many nodes at most; None for as many as the budget takes.
        filters: what metadata must satisfy, in every phase.
        when_empty: what to return where nothing qualifies: nothing, on which LlamaIndex answers 'Empty Response' and
            asks no model; or the best of what was judged, unverified.
        objects: nodes that stand for something else, as for any retriever of LlamaIndex.
        object_map: what they stand for.
        verbose: whether LlamaIndex prints which of these it enters.
        options: any value of `meve.RetrieverConfig`, by name.
        callback_manager: LlamaIndex's.

    Raises:
        ConfigurationError: no engine or filters, an unknown option, or a value out of range.
    """

    def __init__(
        self,
        engine: Any,
        *,
        top_k: int | None = None,
        filters: MetadataFilters | None = None,
        when_empty: WhenEmpty = "nothing",
        callback_manager: CallbackManager | None = None,
        objects: list[IndexNode] | None = None,
        object_map: dict[str, Any] | None = None,
        verbose: bool = False,
        **options: Any,
    ) -> None:
        if not isinstance(engine, Retriever | StoreRetriever):
            raise ConfigurationError(
                f"engine is {engine!r:.60}: give a meve.Retriever, or use MeVeRetriever.from_nodes(…) or from_index(…)"
            )
        self.engine: Any = engine
        self.filters = normalize_filters(filters)
        self.when_empty = when_empty
        self.options = merge_options(OPTION_NAMES, {"top_k": top_k}, options)
        engine.engine.resolve_config(None, self.options)  # what can't be is refused here
        super().__init__(callback_manager=callback_manager, objects=objects, object_map=object_map, verbose=verbose)

    @classmethod
    def from_nodes(
        cls,
        nodes: Sequence[BaseNode],
        *,
        config: RetrieverConfig | None = None,
        embedder: Embedder | str | None = None,
        verifier: Verifier | str | None = None,
        tokens: Tokens | None = None,
        **options: Any,
    ) -> Self:
        """A retriever over these nodes; those without text are left out, and of equal ids the first counts.

        Args:
            nodes: what to retrieve from.
            config: how to decide.
            embedder: as for `meve.Retriever`; None for the one that ships.
            verifier: as for `meve.Retriever`; None for the one that ships.
            tokens: what budgets are counted with; None for LlamaIndex's own tokenizer.
            options: of this class.

        Raises:
            MeveError: as `meve.Retriever.from_passages`.
        """
        engine = Retriever.from_passages(
            nodes_to_passages(nodes),
            config=config,
            embedder=embedder,
            verifier=verifier,
            tokens=resolve_token_counter(tokens, config),
        )
        return cls(engine, **options)

    @classmethod
    def from_index(
        cls,
        index: VectorStoreIndex,
        *,
        nodes: Sequence[BaseNode] | None = None,
        config: RetrieverConfig | None = None,
        embedder: Embedder | str | None = None,
        verifier: Verifier | str | None = None,
        tokens: Tokens | None = None,
        **options: Any,
    ) -> Self:
        """A retriever whose first phase is an index that you keep.

        Its words are read once, here, where it can list its nodes; for another, give `nodes`, or do without keyword
        search. What it lets go is never returned; what it takes in later is found by its vectors at once, and by its
        words after `engine.refresh()`, or `await arefresh()`, which a store with an async client alone needs from the
        beginning.

        Args:
            index: any VectorStoreIndex.
            nodes: what it holds, where it can't list that itself.
            config: how to decide.
            embedder: makes vectors for telling copies apart; None for the one that ships. The index keeps its own.
            verifier: as for `meve.Retriever`; None for the one that ships.
            tokens: what budgets are counted with; None for LlamaIndex's own tokenizer.
            options: of this class.

        Raises:
            MeveError: parts that can't be had.
        """
        store = make_store(index)
        engine = StoreRetriever.from_store(
            store,
            passages=None if nodes is None else nodes_to_passages(nodes),
            words=store.lists,
            config=config,
            embedder=embedder,
            verifier=verifier,
            tokens=resolve_token_counter(tokens, config),
        )
        options.setdefault("object_map", index._object_map)
        return cls(engine, **options)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """A copy that shares the engine."""
        other = copy.copy(self)
        other.options = dict(self.options)
        return other

    def context(self, query: QueryType, **options: Any) -> Context:
        """The same as a context: its text, its tokens, whether it is sufficient, and the trace.

        Args:
            query: the question, with an embedding that is known or other texts to embed if it is a QueryBundle.
            options: `top_k`, and any value of `meve.RetrieverConfig`, for this call.

        Raises:
            MeveError: an unknown option, or what the engine raises.
        """
        bundle = query if isinstance(query, QueryBundle) else QueryBundle(query)
        asked = {**self.options, **translate_options(OPTION_NAMES, options), "observer": observer()}
        if isinstance(self.engine, StoreRetriever):
            with query_context(bundle):
                found: Context = self.engine.retrieve(bundle.query_str, where=self.filters, **asked)
        else:
            where = None if self.filters is None else filter_predicate(self.filters)
            vector = query_vector(bundle, self.engine.engine.embedder)
            found = self.engine.retrieve(bundle.query_str, where=where, vector=vector, **asked)
        emit_trace(found)
        return found

    async def arefresh(self) -> int:
        """Index the words of all that the index holds now, asked on this event loop where that can be.

        Returns:
            How many nodes.

        Raises:
            ConfigurationError: it is no retriever over an index, or over one that can't list what it holds.
            RetrievalError: the vector store failed.
        """
        if not isinstance(self.engine, StoreRetriever):
            raise ConfigurationError("a retriever over nodes has nothing to refresh: call engine.add or engine.remove")
        return await run_in_thread(self.engine.refresh)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if not query_bundle.query_str.strip():
            return []
        try:
            context = self.context(query_bundle)
        except EmptyCorpusError:  # all nodes were removed: an index would find nothing
            return []
        if context.passages or self.when_empty == "nothing":
            return context_to_nodes(context)
        judged = {c.id: c.scores["verifier"] for c in context.trace.candidates if "verifier" in c.scores}
        return best_candidate(judged, self._passages(list(judged)), self.engine.engine, self.options)

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await run_in_thread(self._retrieve, query_bundle)

    def _passages(self, ids: Sequence[str]) -> list[Any]:
        if isinstance(self.engine, StoreRetriever):
            return list(self.engine.store.fetch(ids, self.filters))
        return [self.engine.get(i) for i in ids if i in self.engine]

    def _handle_recursive_retrieval(self, query_bundle: QueryBundle, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        resolved = super()._handle_recursive_retrieval(query_bundle, nodes)
        return self._again(query_bundle.query_str, nodes, resolved)

    async def _ahandle_recursive_retrieval(
        self, query_bundle: QueryBundle, nodes: list[NodeWithScore]
    ) -> list[NodeWithScore]:
        resolved = await super()._ahandle_recursive_retrieval(query_bundle, nodes)
        return await asyncio.to_thread(self._again, query_bundle.query_str, nodes, resolved)

    def _again(self, query: str, nodes: list[NodeWithScore], resolved: list[NodeWithScore]) -> list[NodeWithScore]:
        """What nodes stand for is verified and counted like the rest."""
        if not any(isinstance(each.node, IndexNode) for each in nodes):
            return resolved
        passages = nodes_to_passages(each.node for each in resolved)
        return context_to_nodes(self.engine.engine.select(query, passages, observer=observer(), **self.options))
