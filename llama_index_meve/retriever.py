"""MeVe as a LlamaIndex retriever: what it returns was verified, ordered and cut to a budget."""

import asyncio
from collections.abc import Sequence
from typing import Any, Self

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters

from llama_index_meve.events import dispatcher, tell
from llama_index_meve.filters import admits
from llama_index_meve.nodes import NAMES, as_nodes, as_passages
from llama_index_meve.stores import store_of
from meve import Retriever
from meve.config import RetrieverConfig
from meve.context import Context
from meve.engine import Tokens, make_engine
from meve.outside import StoreRetriever
from meve.ports import Embedder, Verifier
from meve.skins import overrides


class MeVeRetriever(BaseRetriever):
    """Verified retrieval as a retriever.

    It returns what the verifier lets in, best first, and no more than the budget takes; none is an answer too. A node's
    score is the probability that it answers. What models are sent of a node is counted, what embedders see is judged.

    Args:
        engine: what does the work: a `meve.Retriever`, or a `meve.outside.StoreRetriever`; copies may share it.
        top_k: how many nodes at most; None for as many as the budget takes.
        filters: what metadata must satisfy, in every phase.
        options: any value of `meve.RetrieverConfig`, by name.
        callback_manager: LlamaIndex's.

    Raises:
        ConfigurationError: an unknown option, or a value out of range.
    """

    def __init__(
        self,
        engine: Any,
        *,
        top_k: int | None = None,
        filters: MetadataFilters | None = None,
        callback_manager: CallbackManager | None = None,
        **options: Any,
    ) -> None:
        self.engine = engine
        self.filters = filters
        self.options = overrides(NAMES, {"top_k": top_k}, options)
        engine.settings(None, self.options)  # what can't be is refused here
        super().__init__(callback_manager=callback_manager)

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
            tokens: what budgets are counted with; `llama_index.core.utils.get_tokenizer()` wrapped in a count, say.
            options: of this class.

        Raises:
            MeveError: as `meve.Retriever.from_passages`.
        """
        engine = Retriever.from_passages(
            as_passages(nodes), config=config, embedder=embedder, verifier=verifier, tokens=tokens
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
        words after `engine.refresh()`.

        Args:
            index: any VectorStoreIndex.
            nodes: what it holds, where it can't list that itself.
            config: how to decide.
            embedder: makes vectors for telling copies apart; None for the one that ships. The index keeps its own.
            verifier: as for `meve.Retriever`; None for the one that ships.
            tokens: what budgets are counted with.
            options: of this class.

        Raises:
            MeveError: parts that can't be had.
        """
        parts = make_engine(config=config, embedder=embedder, verifier=verifier, tokens=tokens)
        engine = StoreRetriever(store_of(index), parts)
        if nodes is not None:
            engine.index(as_passages(nodes))
        elif engine.store.size() is not None:
            engine.refresh()
        return cls(engine, **options)

    def context(self, query: str, **options: Any) -> Context:
        """The same as a context: its text, its tokens, whether it is sufficient, and the trace."""
        where: Any = self.filters
        if where is not None and not isinstance(self.engine, StoreRetriever):
            where = admits(where)
        found: Context = self.engine.retrieve(query, where=where, **(self.options | overrides(NAMES, options)))
        return found

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if not query_bundle.query_str.strip():
            return []
        context = self.context(query_bundle.query_str)
        tell(context)
        return as_nodes(context)

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if not query_bundle.query_str.strip():
            return []
        context = await asyncio.to_thread(self.context, query_bundle.query_str)
        tell(context)
        return as_nodes(context)
