"""A query engine and a tool over verified retrieval."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent, RetrievalStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import NodeWithScore
from llama_index.core.tools import FunctionTool

from llama_index_meve._async_bridge import run_in_thread
from llama_index_meve._instrumentation import dispatcher
from llama_index_meve._nodes import OPTION_NAMES, context_to_nodes
from llama_index_meve.retriever import MeVeRetriever
from meve.errors import QueryError
from meve.integrations._options import TOOL_DESCRIPTION, NO_RESULT_MESSAGE, translate_options

EMPTY = "Nothing that was found answers this."


def meve_query_engine(
    retriever: MeVeRetriever,
    *,
    llm: Any = None,
    empty_response: str = EMPTY,
    node_postprocessors: Sequence[BaseNodePostprocessor] = (),
    **options: Any,
) -> RetrieverQueryEngine:
    """A query engine whose context is verified.

    Args:
        retriever: what retrieves.
        llm: answers; None for LlamaIndex's own setting.
        empty_response: the answer where nothing qualifies; no model is asked then.
        node_postprocessors: what is done with the nodes afterwards.
        options: of `get_response_synthesizer`, such as `response_mode`.
    """
    synthesizer = get_response_synthesizer(llm=llm, **options)
    synthesizer._empty_response = empty_response
    return RetrieverQueryEngine(
        retriever=retriever, response_synthesizer=synthesizer, node_postprocessors=list(node_postprocessors)
    )


def create_meve_tool(
    retriever: MeVeRetriever,
    name: str = "search_documents",
    description: str = TOOL_DESCRIPTION,
    **options: Any,
) -> FunctionTool:
    """A tool for agents: it answers with the context's text, or says that nothing was found, or what is amiss.

    Args:
        retriever: what searches.
        name: what the model calls it.
        description: what the model is told of it.
        options: any value of `meve.RetrieverConfig`, for every call.

    Raises:
        ConfigurationError: an unknown option, or a value out of range.
    """
    retriever.engine.engine.resolve_config(None, {**retriever.options, **translate_options(OPTION_NAMES, options)})

    def search(query: str) -> str:
        try:
            with _retrieval(query) as made:
                found = retriever.context(query, **options)
                made.extend(context_to_nodes(found))
        except QueryError as error:
            return f"The question can't be used: {error}"
        return found.text if found.sufficient and found.text else NO_RESULT_MESSAGE

    async def asearch(query: str) -> str:
        return await run_in_thread(search, query)

    return FunctionTool.from_defaults(fn=search, async_fn=asearch, name=name, description=description)


@contextmanager
def _retrieval(query: str) -> Iterator[list[NodeWithScore]]:
    """LlamaIndex's events around a retrieval, in pairs whatever happens."""
    made: list[NodeWithScore] = []
    dispatcher.event(RetrievalStartEvent(str_or_query_bundle=query))
    try:
        yield made
    finally:
        dispatcher.event(RetrievalEndEvent(str_or_query_bundle=query, nodes=made))
