"""A LangChain retriever over the history that a LangGraph checkpointer keeps."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, ensure_config, run_in_executor
from pydantic import ConfigDict, Field, PrivateAttr

from langchain_meve._checkpoint_history import CheckpointState, ThreadHistory, check_key, read_history
from langchain_meve._documents import RetrievedDocuments, context_to_documents
from langchain_meve._retriever_options import LANGCHAIN_OPTION_NAMES, PositiveInt, parse_query
from meve.components.embedders import FAST, resolve_embedder
from meve.components.embedders.cached import CachedEmbedder
from meve.conversation import Conversation, Ranking, SlicePolicy, TurnGraph
from meve.conversation.slices import LocalAuthority, Slice
from meve.errors import AdmissibilityError, ConfigurationError
from meve.integrations._option_names import collect_options, merge_options, translate_options
from meve.pipeline.context import Context


class MeVeHistoryRetriever(BaseRetriever):
    """Retrieves earlier messages of a thread from a LangGraph checkpointer.

    The run's configuration names the thread, and may name a checkpoint. Only messages on the way to that checkpoint are
    searched: a fork never sees its sibling, nor what came later. In a node of a graph, the checkpoint is that of the
    step; compile or invoke the graph with `durability="sync"`, so that it is written by then.

    Setup:
        `pip install 'meve[langgraph]'`.

    Usage:
        `MeVeHistoryRetriever(checkpointer=saver).invoke("What did we try?", {"configurable": {"thread_id": "1"}})`
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    checkpointer: Any = Field(exclude=True, repr=False)
    """LangGraph's checkpointer, with `get_tuple` and `list`."""
    messages_key: str = "messages"
    """The key of the state that holds the messages."""
    removed: bool = False
    """Whether messages that the checkpoint no longer holds are retrieved too, such as trimmed ones. Leave it off if
    messages are removed in order to forget them."""
    policy: SlicePolicy = Field(default_factory=SlicePolicy)
    """Which messages may be reached; by default those before the checkpoint on its own line. A message names its phase
    as `phase` in `additional_kwargs`."""
    ranking: Ranking | None = None
    """The weights by which messages are ordered."""
    k: PositiveInt | None = None
    """The most documents; None for no limit but the budget."""
    max_tokens: PositiveInt | None = None
    """The most tokens of all documents together; None for 512."""
    embedder: Any = Field(default=None, exclude=True, repr=False)
    verifier: Any = Field(default=None, exclude=True, repr=False)
    tokens: Any = Field(default=None, exclude=True, repr=False)
    options: dict[str, Any] = Field(default_factory=dict, repr=False)
    """Other values of `meve.RetrieverConfig` by name, which can also be given as keyword arguments."""

    _embedder: CachedEmbedder | None = PrivateAttr(default=None)

    def __init__(self, **fields: Any) -> None:
        """Check the fields, and take any value of `meve.RetrieverConfig` by name.

        Raises:
            ConfigurationError: an unknown name, or an invalid value.
        """
        super().__init__(**collect_options(type(self), LANGCHAIN_OPTION_NAMES, fields))
        if not all(callable(getattr(self.checkpointer, name, None)) for name in ("get_tuple", "list")):
            raise ConfigurationError(
                f"checkpointer must be a LangGraph checkpointer, got {self.checkpointer!r:.60}: give the one that the "
                "graph was compiled with"
            )

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return a copy that shares the checkpointer and models."""
        return self.model_copy()

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """Return the messages that bear on a question, as documents.

        Args:
            input: the question, or a dict with an `input`.
            config: names the thread, and optionally the checkpoint, under `configurable`.
            kwargs: `k`, and any value of `meve.RetrieverConfig`, for this call.

        Raises:
            ConfigurationError: no thread, an unknown option, or checkpoints without the key or the messages
                themselves.
            AdmissibilityError: the checkpointer doesn't hold the checkpoint; nothing was searched.
            MeveError: what `meve.conversation.Conversation.retrieve` raises.
        """
        thread = dict(ensure_config(config).get("configurable") or {})
        return super().invoke(parse_query(input), config, thread=thread, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """Run `invoke` off the event loop."""
        thread = dict(ensure_config(config).get("configurable") or {})
        return await super().ainvoke(parse_query(input), config, thread=thread, **kwargs)

    def context(self, query: str, thread: Mapping[str, Any], **options: Any) -> Context | None:
        """Return the retrieval as a context with its trace; None if the thread has no messages yet.

        Args:
            query: the question.
            thread: `thread_id`, and optionally `checkpoint_id` and `checkpoint_ns`.
            options: `k`, and any value of `meve.RetrieverConfig`.
        """
        history, state = self._read(thread)
        allowed = {turn.id for turn in history.turns} if self.removed else set(state.nodes.values())
        if state.latest is None or not allowed:
            return None
        if self._embedder is None:
            self._embedder = CachedEmbedder(resolve_embedder(self.embedder, default=FAST))
        conversation = Conversation.from_messages(
            history.turns,
            embedder=self._embedder,
            verifier=self.verifier,
            tokens=self.tokens,
            policy=self.policy,
            ranking=self.ranking,
            authority=_HeldMessages(allowed),
        )
        fields = merge_options(LANGCHAIN_OPTION_NAMES, {"k": self.k, "max_tokens": self.max_tokens})
        settings = {**self.options, **fields, **translate_options(LANGCHAIN_OPTION_NAMES, options)}
        return conversation.retrieve(query, state.latest, **settings)

    def _read(self, thread: Mapping[str, Any]) -> tuple[ThreadHistory, CheckpointState]:
        name = thread.get("thread_id")
        if not name:
            raise ConfigurationError(
                "the configuration names no thread: pass {'configurable': {'thread_id': …}} to invoke"
            )
        checkpoint = thread.get("checkpoint_id")
        space = str(thread.get("checkpoint_ns") or "")
        if not checkpoint and "checkpoint_map" in thread:  # within a node, which has a namespace of its own
            space = ""
            checkpoint = thread["checkpoint_map"].get(space)
        config: RunnableConfig = {"configurable": {"thread_id": name, "checkpoint_ns": space}}
        found = sorted(
            self.checkpointer.list(config), key=lambda each: str(each.config["configurable"]["checkpoint_id"])
        )
        history = read_history(found, self.messages_key)
        runs = sum(each.metadata.get("source") == "input" for each in found)
        if runs > 1 or "checkpoint_map" not in thread:  # the first run may ask before it writes a message
            check_key(found, self.messages_key, name)
        if not found and not checkpoint:
            return history, CheckpointState()
        checkpoint = checkpoint or found[-1].config["configurable"]["checkpoint_id"]
        if checkpoint not in history.states:
            raise AdmissibilityError(
                f"thread {name!r:.80} has no checkpoint {checkpoint!r:.80}, so nothing was searched: check the id, or "
                "run the graph with durability='sync' if this is a node of it"
            )
        return history, history.states[checkpoint]

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002
        thread: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> list[Document]:
        context = self.context(query, thread or {}, **options) if query.strip() else None
        return RetrievedDocuments() if context is None else context_to_documents(context)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return await run_in_executor(
            None, self._get_relevant_documents, query, run_manager=run_manager.get_sync(), **options
        )


class _HeldMessages:
    """Cuts slices that hold only messages of a checkpoint."""

    def __init__(self, allowed: set[str]) -> None:
        self._allowed = allowed

    def cut(self, graph: TurnGraph, anchor: str, policy: SlicePolicy) -> Slice:
        """Return the slice for an anchor, without messages that aren't held."""
        cut = LocalAuthority().cut(graph, anchor, policy)
        held = tuple(turn for turn in cut.turns if turn in self._allowed)
        return replace(cut, turns=held, priorities={turn: cut.priorities[turn] for turn in held})
