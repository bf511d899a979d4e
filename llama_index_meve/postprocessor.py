"""Phases 2 to 5 on nodes that somebody else's retriever found."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CBEventType, EventPayload
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import ConfigDict, Field

from llama_index_meve.events import dispatcher, tell
from llama_index_meve.nodes import NAMES, as_nodes, as_passage, as_passages
from meve.config import RetrieverConfig
from meve.context import Context
from meve.engine import Tokens, make_engine
from meve.ports import Embedder, Verifier
from meve.skins import overrides
from meve.types import Candidate, Query

Share = Annotated[float, Field(ge=0, le=1)]


class MeVePostprocessor(BaseNodePostprocessor):
    """Verifies, orders and packs nodes into a budget; the nodes it is given stay as they are.

    >>> from llama_index.core.schema import NodeWithScore, TextNode
    >>> found = [NodeWithScore(node=TextNode(text=t)) for t in ("Bread is baked.", "Tomatoes want eight hours of sun.")]
    >>> kept = MeVePostprocessor.make(top_n=1).postprocess_nodes(found, query_str="How much sun do tomatoes want?")
    >>> [each.node.text for each in kept]
    ['Tomatoes want eight hours of sun.']
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    engine: Any = Field(exclude=True, repr=False)
    """A `meve.engine.Engine`: models and settings; shared by all copies."""
    top_n: Annotated[int, Field(ge=0)] | None = None
    """How many nodes at most; None for as many as the budget takes."""
    threshold: Share | None = None
    """The probability from which on a node counts as verified; None for the engine's."""
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    """The most tokens of all that is sent, separators included; None for the engine's."""
    fallback: Any = Field(default=None, exclude=True, repr=False)
    """A retriever that is asked where too few of the nodes are verified; None for nobody."""
    when_empty: Literal["nothing", "best"] = "nothing"
    """What to return where nothing qualifies: no nodes, on which LlamaIndex answers 'Empty Response' and asks no model;
    or the best of them, unverified."""

    @classmethod
    def make(
        cls,
        *,
        config: RetrieverConfig | None = None,
        embedder: Embedder | str | None = None,
        verifier: Verifier | str | None = None,
        tokens: Tokens | None = None,
        **fields: Any,
    ) -> Self:
        """A postprocessor of parts that are named, or of those that ship.

        Raises:
            MeveError: parts that can't be had.
        """
        engine = make_engine(config=config, embedder=embedder, verifier=verifier, tokens=tokens)
        return cls(engine=engine, **fields)

    @classmethod
    def class_name(cls) -> str:
        """Its name in traces."""
        return "MeVePostprocessor"

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """A copy with fields of its own; the engine is shared."""
        return self.model_copy()

    def context(self, nodes: Sequence[NodeWithScore], query: str) -> Context:
        """What is selected of these nodes, as a context with its trace."""
        mine = overrides(NAMES, {name: getattr(self, name) for name in ("top_n", "threshold", "max_tokens")})
        passages = as_passages(each.node for each in nodes)
        fallback = None if self.fallback is None else _Asked(self.fallback)
        found: Context = self.engine.select(query, passages, fallback=fallback, **mine)
        if found.passages or self.when_empty == "nothing":
            return found
        best: Context = self.engine.select(
            query, passages, **{**mine, "mode": "full", "min_verified": 1, "fallback_floor": 0.0, "limit": 1},
            fallback=_Given(passages),
        )  # fmt: skip
        return best

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query = self._checked(nodes, query_bundle)
        if query is None:
            return []
        dispatcher.event(self._start(query, nodes))
        with self.callback_manager.event(CBEventType.RERANKING, payload=self._payload(query, nodes)) as event:
            context = self.context(nodes, query)
            made = as_nodes(context)
            event.on_end(payload={EventPayload.NODES: made})
        tell(context)
        dispatcher.event(ReRankEndEvent(nodes=made))
        return made

    @dispatcher.span
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query = self._checked(nodes, query_bundle)
        if query is None:
            return []
        dispatcher.event(self._start(query, nodes))
        with self.callback_manager.event(CBEventType.RERANKING, payload=self._payload(query, nodes)) as event:
            context = await asyncio.to_thread(self.context, nodes, query)
            made = as_nodes(context)
            event.on_end(payload={EventPayload.NODES: made})
        tell(context)
        dispatcher.event(ReRankEndEvent(nodes=made))
        return made

    def _checked(self, nodes: Sequence[NodeWithScore], query_bundle: QueryBundle | None) -> str | None:
        """The question; None where there is nothing to do."""
        if query_bundle is None:
            raise ValueError("MeVePostprocessor needs the question: give query_bundle or query_str")
        return query_bundle.query_str if nodes and self.top_n != 0 else None

    def _start(self, query: str, nodes: list[NodeWithScore]) -> ReRankStartEvent:
        name = self.engine.verifier.name
        return ReRankStartEvent(query=query, nodes=nodes, top_n=self.top_n or len(nodes), model_name=name)

    def _payload(self, query: str, nodes: list[NodeWithScore]) -> dict[str, Any]:
        return {
            EventPayload.NODES: nodes,
            EventPayload.MODEL_NAME: self.engine.verifier.name,
            EventPayload.QUERY_STR: query,
            EventPayload.TOP_K: self.top_n,
        }


@dataclass(frozen=True, slots=True)
class _Asked:
    """Another retriever as the fallback's source."""

    retriever: BaseRetriever
    name: str = "fallback"

    def search(self, query: Query, k: int) -> list[Candidate]:
        found = self.retriever.retrieve(QueryBundle(query_str=query.text))
        made = [as_passage(each.node) for each in found]
        return [Candidate(passage=passage, origin=self.name) for passage in made if passage.text.strip()][:k]


@dataclass(frozen=True, slots=True)
class _Given:
    """The nodes once more, for the best of those that were turned down."""

    passages: Sequence[Any]
    name: str = "turned down"

    def search(self, query: Query, k: int) -> list[Candidate]:  # noqa: ARG002
        return [Candidate(passage=passage, origin=self.name) for passage in self.passages]
