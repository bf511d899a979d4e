"""MeVePostprocessor: phases 2 to 5 (verify to budget) over the nodes of any LlamaIndex retriever."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CBEventType, EventPayload
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType
from pydantic import ConfigDict, Field, field_validator

from llama_index_meve._async_bridge import await_or_call, native_method, run_in_thread
from llama_index_meve._default_tokenizer import global_token_counter, resolve_token_counter
from llama_index_meve._instrumentation import dispatcher, emit_trace, has_listeners, phase_observer
from llama_index_meve._nodes import OPTION_MAP, context_to_nodes, found_passages, list_unread, nodes_to_passages
from meve.components.verifiers import VerifierLike
from meve.integrations._option_names import check_wrapper_keywords, collect_options, merge_options
from meve.integrations._rerank_settings import resolve_rerank_config
from meve.pipeline.config import RetrieverConfig, WhenInsufficient
from meve.pipeline.context import Context
from meve.pipeline.engine import Engine, TokenCounterLike, make_engine
from meve.ports import Embedder
from meve.types import Candidate, Query


def _default_engine() -> Engine:
    return make_engine(config=resolve_rerank_config(None), tokens=global_token_counter())


class MeVePostprocessor(BaseNodePostprocessor):
    """Verifies, orders and packs nodes into a token budget, without changing the given nodes.

    Nodes with media and no text, such as images, follow the others: unverified, without a score, and not counted in the
    budget. A `when_insufficient` other than `return` leaves them out.

    >>> from llama_index.core.schema import NodeWithScore, TextNode
    >>> nodes = [NodeWithScore(node=TextNode(text=t)) for t in ("Bread is baked.", "Tomatoes want eight hours of sun.")]
    >>> kept = MeVePostprocessor.make(top_n=1).postprocess_nodes(nodes, query_str="How much sun do tomatoes want?")
    >>> [each.node.text for each in kept]
    ['Tomatoes want eight hours of sun.']
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    engine: Any = Field(default_factory=_default_engine, exclude=True, repr=False)
    """A `meve.pipeline.engine.Engine`, shared by copies; by default with the shipped models. Of its parts, only the
    settings are serialized and pickled."""
    top_n: Annotated[int, Field(ge=0)] | None = None
    """The most nodes; None for as many as the budget allows."""
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    """The probability from which a node counts as verified, in [0, 1]; None for the engine's."""
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    """The most tokens of all nodes together, separators included; None for the engine's, which is 4,096 without a
    `config`."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Other values of `meve.RetrieverConfig` by name, which can also be given as keyword arguments."""
    fallback: Any = Field(default=None, exclude=True, repr=False)
    """A retriever that is searched if too few nodes are verified; None to reconsider the best of the given nodes."""
    when_insufficient: WhenInsufficient | None = None
    """What to do with a context that isn't sufficient, as in `RetrieverConfig`; None for the engine's value, by default
    `return`. On an empty context LlamaIndex answers 'Empty Response' without asking the model."""

    def __init__(self, **fields: Any) -> None:
        """Check the fields, and take any value of `meve.RetrieverConfig` by name.

        Raises:
            ConfigurationError: an unknown name, two names of the same option, or an invalid value.
        """
        super().__init__(**collect_options(type(self), OPTION_MAP, fields))

    @field_validator("engine")
    @classmethod
    def _check_engine(cls, engine: Any) -> Any:
        if not callable(getattr(engine, "select", None)):
            raise ValueError(
                f"engine must be a meve.pipeline.engine.Engine, got {engine!r:.60}: use MeVePostprocessor.make(…)"
            )
        return engine

    @field_validator("fallback")
    @classmethod
    def _check_fallback(cls, fallback: Any) -> Any:
        if fallback is not None and not isinstance(fallback, BaseRetriever):
            raise ValueError(f"fallback must be a LlamaIndex retriever, got {fallback!r:.60}")
        return fallback

    @classmethod
    def make(
        cls,
        *,
        config: RetrieverConfig | None = None,
        embedder: Embedder | str | None = None,
        verifier: VerifierLike | None = None,
        tokens: TokenCounterLike | None = None,
        **fields: Any,
    ) -> Self:
        """Create a postprocessor from components, given or named; by default the shipped ones.

        Args:
            config: the settings.
            embedder: an embedder, `static`, or the name of a model; None for MiniLM, which ships.
            verifier: as for `meve.Retriever`; None for the shipped one.
            tokens: counts tokens; None for LlamaIndex's own tokenizer.
            fields: fields of this class, and values of `meve.RetrieverConfig`, by name.

        Raises:
            MeveError: an unknown option, or a component that isn't available.
        """
        check_wrapper_keywords(cls.make, cls, fields)
        counter, config = resolve_token_counter(tokens, config), resolve_rerank_config(config)
        engine = make_engine(config=config, embedder=embedder, verifier=verifier, tokens=counter)
        return cls(engine=engine, **fields)

    @classmethod
    def class_name(cls) -> str:
        """Return the class name for serialization."""
        return "MeVePostprocessor"

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return a copy that shares the engine."""
        return self.model_copy()

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields without engine and fallback, with the engine's settings."""
        lean = self.model_copy(update={"options": self._list_options()})  # LlamaIndex removes what can't be pickled
        for name in ("engine", "fallback"):
            lean.__dict__.pop(name, None)
        return super(MeVePostprocessor, lean).__getstate__()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the fields, with an engine of the shipped models."""
        super().__setstate__(state)
        self.__dict__.setdefault("engine", _default_engine())
        self.__dict__.setdefault("fallback", None)

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """Return the fields without engine and fallback, with the engine's settings; `from_dict` reads them."""
        return {**super().to_dict(**kwargs), "options": self._list_options()}

    def _list_options(self) -> dict[str, Any]:
        """Return the options, with what the engine's settings change in the default ones and no field sets."""
        default = resolve_rerank_config(None).to_dict()
        changed = {name: value for name, value in self.engine.config.to_dict().items() if value != default[name]}
        fields = merge_options(OPTION_MAP, self._own_options())
        return {name: value for name, value in {**changed, **self.options}.items() if name not in fields}

    def context(self, nodes: Sequence[NodeWithScore], query: QueryType) -> Context:
        """Select from the nodes, and return the context with its trace.

        Raises:
            MeveError: as `meve.pipeline.engine.Engine.select`.
        """
        bundle = query if isinstance(query, QueryBundle) else QueryBundle(query)
        passages = found_passages(each.node for each in nodes)
        fallback = None if self.fallback is None else _FallbackSource(self.fallback, bundle, len(passages))
        context: Context = self.engine.select(
            bundle.query_str, passages, fallback=fallback, observer=phase_observer(), **self._engine_options()
        )
        emit_trace(context)
        return context

    def _own_options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("top_n", "threshold", "max_tokens", "when_insufficient")}

    def _engine_options(self) -> dict[str, Any]:
        return {**self.options, **merge_options(OPTION_MAP, self._own_options())}

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise ValueError("MeVePostprocessor needs the question: give query_bundle or query_str")
        has_candidates = bool(nodes) or self.fallback is not None
        if not has_candidates or self.top_n == 0 or not query_bundle.query_str.strip():
            return []
        query, verifier = query_bundle.query_str, self.engine.verifier.name
        selected: list[NodeWithScore] = []
        is_listened_to = has_listeners()
        if is_listened_to:
            top_n = self.top_n or len(nodes)
            dispatcher.event(ReRankStartEvent(query=query, nodes=nodes, top_n=top_n, model_name=verifier))
        payload: dict[str, Any] = {
            EventPayload.NODES: nodes,
            EventPayload.MODEL_NAME: verifier,
            EventPayload.QUERY_STR: query,
            EventPayload.TOP_K: self.top_n,
        }
        try:
            with self.callback_manager.event(CBEventType.RERANKING, payload=payload) as event:
                selected = context_to_nodes(self.context(nodes, query_bundle))
                config = self.engine.resolve_config(None, self._engine_options())
                if config.when_insufficient == "return":
                    selected = [*selected, *list_unread(each.node for each in nodes)][: config.limit]
                event.on_end(payload={EventPayload.NODES: selected})
        finally:
            if is_listened_to:
                dispatcher.event(ReRankEndEvent(nodes=selected))
        return selected

    @dispatcher.span
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return await run_in_thread(self._postprocess_nodes, nodes, query_bundle)


@dataclass(frozen=True, slots=True)
class _FallbackSource:
    """A LlamaIndex retriever as the source of phase 3. On equal scores its passages rank behind the given ones."""

    retriever: BaseRetriever
    bundle: QueryBundle
    first_place: int
    name: str = "fallback"

    def search(self, query: Query, k: int) -> list[Candidate]:
        bundle = replace(self.bundle) if query.text == self.bundle.query_str else QueryBundle(query.text)
        native = native_method(self.retriever, "aretrieve", BaseRetriever, overridden="_aretrieve")
        nodes = await_or_call(self.retriever.retrieve, native, bundle)
        passages = nodes_to_passages(each.node for each in nodes)[:k]
        return [Candidate(passage=p, origin=self.name, place=self.first_place + n) for n, p in enumerate(passages)]
