"""Phases 2 to 5 on nodes that somebody else's retriever found."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CBEventType, EventPayload
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType
from pydantic import ConfigDict, Field, field_validator

from llama_index_meve._async_bridge import await_or_call, run_in_thread, native_method
from llama_index_meve._instrumentation import dispatcher, has_listeners, observer, emit_trace
from llama_index_meve._nodes import OPTION_NAMES, context_to_nodes, nodes_to_passages
from llama_index_meve._default_tokenizer import global_token_counter, resolve_token_counter
from llama_index_meve._when_empty import WhenEmpty, best_candidate
from meve.integrations._options import merge_options
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.context import Context
from meve.pipeline.engine import Engine, Tokens, make_engine
from meve.ports import Embedder, Verifier
from meve.types import Candidate, Query

Share = Annotated[float, Field(ge=0, le=1)]


def _shipped() -> Engine:
    return make_engine(tokens=global_token_counter())


class MeVePostprocessor(BaseNodePostprocessor):
    """Verifies, orders and packs nodes into a budget; the nodes it is given stay as they are.

    >>> from llama_index.core.schema import NodeWithScore, TextNode
    >>> found = [NodeWithScore(node=TextNode(text=t)) for t in ("Bread is baked.", "Tomatoes want eight hours of sun.")]
    >>> kept = MeVePostprocessor.make(top_n=1).postprocess_nodes(found, query_str="How much sun do tomatoes want?")
    >>> [each.node.text for each in kept]
    ['Tomatoes want eight hours of sun.']
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    engine: Any = Field(default_factory=_shipped, exclude=True, repr=False)
    """A `meve.pipeline.engine.Engine`: models and settings, shared by all copies; by default of the models that ship. It isn't
    serialised."""
    top_n: Annotated[int, Field(ge=0)] | None = None
    """How many nodes at most; None for as many as the budget takes."""
    threshold: Share | None = None
    """The probability from which on a node counts as verified; None for the engine's."""
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    """The most tokens of all that is sent, separators included; None for the engine's."""
    fallback: Any = Field(default=None, exclude=True, repr=False)
    """A retriever that is asked where too few of the nodes are verified; None for nobody."""
    when_empty: WhenEmpty = "nothing"
    """What to return where nothing qualifies: no nodes, on which LlamaIndex answers 'Empty Response' and asks no model;
    or the best of them, unverified."""

    @field_validator("engine")
    @classmethod
    def _selects(cls, engine: Any) -> Any:
        if not callable(getattr(engine, "select", None)):
            raise ValueError(
                f"engine is {engine!r:.60}: give a meve.pipeline.engine.Engine, or use MeVePostprocessor.make(…)"
            )
        return engine

    @field_validator("fallback")
    @classmethod
    def _retrieves(cls, fallback: Any) -> Any:
        if fallback is not None and not isinstance(fallback, BaseRetriever):
            raise ValueError(f"fallback is {fallback!r:.60}: give a retriever")
        return fallback

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

        Args:
            config: how to decide.
            embedder: as for `meve.Retriever`; None for the one that ships.
            verifier: as for `meve.Retriever`; None for the one that ships.
            tokens: what budgets are counted with; None for LlamaIndex's own tokenizer.
            fields: of this class, by name.

        Raises:
            MeveError: parts that can't be had.
        """
        counter = resolve_token_counter(tokens, config)
        engine = make_engine(config=config, embedder=embedder, verifier=verifier, tokens=counter)
        return cls(engine=engine, **fields)

    @classmethod
    def class_name(cls) -> str:
        """Its name in traces."""
        return "MeVePostprocessor"

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """A copy that shares the engine."""
        return self.model_copy()

    def __getstate__(self) -> dict[str, Any]:
        """What is written: fields, but neither engine nor fallback."""
        lean = self.model_copy()  # LlamaIndex takes what can't be pickled out of the object itself
        for name in ("engine", "fallback"):
            lean.__dict__.pop(name, None)
        return super(MeVePostprocessor, lean).__getstate__()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Read back with the models that ship: an engine isn't written."""
        super().__setstate__(state)
        self.__dict__.setdefault("engine", _shipped())
        self.__dict__.setdefault("fallback", None)

    def context(self, nodes: Sequence[NodeWithScore], query: QueryType) -> Context:
        """What is selected of these nodes, as a context with its trace.

        Raises:
            MeveError: as `meve.pipeline.engine.Engine.select`.
        """
        bundle = query if isinstance(query, QueryBundle) else QueryBundle(query)
        passages = nodes_to_passages(each.node for each in nodes)
        fallback = None if self.fallback is None else _Asked(self.fallback, bundle, len(passages))
        found: Context = self.engine.select(
            bundle.query_str, passages, fallback=fallback, observer=observer(), **self._options()
        )
        emit_trace(found)
        return found

    def _options(self) -> dict[str, Any]:
        return merge_options(OPTION_NAMES, {name: getattr(self, name) for name in ("top_n", "threshold", "max_tokens")})

    def _selected(self, nodes: Sequence[NodeWithScore], bundle: QueryBundle) -> list[NodeWithScore]:
        context = self.context(nodes, bundle)
        if context.passages or self.when_empty == "nothing":
            return context_to_nodes(context)
        judged = {c.id: c.scores["verifier"] for c in context.trace.candidates if "verifier" in c.scores}
        passages = [p for p in nodes_to_passages(each.node for each in nodes) if p.id in judged]
        return best_candidate(judged, passages, self.engine, self._options())

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise ValueError("MeVePostprocessor needs the question: give query_bundle or query_str")
        something = bool(nodes) or self.fallback is not None
        if not something or self.top_n == 0 or not query_bundle.query_str.strip():
            return []
        with self._told(query_bundle.query_str, nodes) as made:
            made.extend(self._selected(nodes, query_bundle))
        return made

    @dispatcher.span
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return await run_in_thread(self._postprocess_nodes, nodes, query_bundle)

    @contextmanager
    def _told(self, query: str, nodes: list[NodeWithScore]) -> Iterator[list[NodeWithScore]]:
        """Events around the work, in pairs whatever happens; what is put into the list is what they tell of."""
        made: list[NodeWithScore] = []
        heard = has_listeners()
        if heard:
            dispatcher.event(self._start(query, nodes))
        try:
            with self.callback_manager.event(CBEventType.RERANKING, payload=self._payload(query, nodes)) as event:
                yield made
                event.on_end(payload={EventPayload.NODES: made})
        finally:
            if heard:
                dispatcher.event(ReRankEndEvent(nodes=made))

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
    """Another retriever as the fallback's source; what it brings stands behind what was given, where scores tie."""

    retriever: BaseRetriever
    bundle: QueryBundle
    behind: int
    name: str = "fallback"

    def search(self, query: Query, k: int) -> list[Candidate]:
        bundle = replace(self.bundle) if query.text == self.bundle.query_str else QueryBundle(query.text)
        native = native_method(self.retriever, "aretrieve", BaseRetriever, says="_aretrieve")
        found = nodes_to_passages(each.node for each in await_or_call(self.retriever.retrieve, native, bundle))
        return [Candidate(passage=p, origin=self.name, place=self.behind + n) for n, p in enumerate(found[:k])]
