"""A retrieval tool for agents."""

from typing import Any

from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent, RetrievalStartEvent
from llama_index.core.schema import NodeWithScore
from llama_index.core.tools import FunctionTool

from llama_index_meve._async_bridge import run_in_thread
from llama_index_meve._instrumentation import dispatcher
from llama_index_meve._nodes import context_to_nodes
from llama_index_meve.retriever import MeVeRetriever
from meve.errors import QueryError
from meve.integrations._tool_texts import TOOL_DESCRIPTION, admitted_passages, format_for_model
from meve.pipeline.config import WhenInsufficient


def create_meve_tool(
    retriever: MeVeRetriever,
    name: str = "search_documents",
    description: str = TOOL_DESCRIPTION,
    *,
    when_insufficient: WhenInsufficient | None = None,
    **options: Any,
) -> FunctionTool:
    """Create a tool that returns the verified context, or says that nothing qualifies or why the query is invalid.

    Args:
        retriever: searches.
        name: the tool's name for the model.
        description: the tool's description for the model.
        when_insufficient: what the model reads of a context that isn't sufficient, as in `meve.RetrieverConfig`; None
            for the retriever's setting, `abstain` in place of `raise`. What is shown follows a sentence that it may not
            answer. Where no passage is left, the model reads that nothing answers.
        options: any value of `meve.RetrieverConfig`, for every call.

    Raises:
        ConfigurationError: an unknown option, or a value out of range.
    """
    own = retriever.with_options(**options, **({"when_insufficient": when_insufficient} if when_insufficient else {}))
    if when_insufficient is None:
        config = own.retriever.engine.resolve_config(None, own.options)
        own = own.with_options(when_insufficient=admitted_passages(config))

    def search(query: str) -> str:
        nodes: list[NodeWithScore] = []
        dispatcher.event(RetrievalStartEvent(str_or_query_bundle=query))
        try:
            context = own.context(query)
            nodes = context_to_nodes(context)
        except QueryError as error:
            return f"The question can't be used: {error}"
        finally:
            dispatcher.event(RetrievalEndEvent(str_or_query_bundle=query, nodes=nodes))
        return format_for_model(context)

    async def asearch(query: str) -> str:
        return await run_in_thread(search, query)

    return FunctionTool.from_defaults(fn=search, async_fn=asearch, name=name, description=description)
