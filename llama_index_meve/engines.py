"""A query engine and a tool over verified retrieval."""

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.tools import FunctionTool

from llama_index_meve.nodes import NAMES
from llama_index_meve.retriever import MeVeRetriever
from meve.context import Context
from meve.skins import renamed

NOTHING = "Nothing that was found answers this."
DESCRIPTION = "Searches the documents and returns only passages that were verified to answer the question."


def meve_query_engine(
    retriever: MeVeRetriever,
    *,
    llm: Any = None,
    empty_response: str = NOTHING,
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
    description: str = DESCRIPTION,
    **options: Any,
) -> FunctionTool:
    """A tool for agents: it answers with the context's text, or says that nothing was found.

    Args:
        retriever: what searches.
        name: what the model calls it.
        description: what the model is told of it.
        options: any value of `meve.RetrieverConfig`, for every call.

    Raises:
        ConfigurationError: an unknown option, or a value out of range.
    """
    retriever.engine.settings(None, {**retriever.options, **renamed(NAMES, options)})

    def search(query: str) -> str:
        return _told(retriever.context(query, **options))

    async def asearch(query: str) -> str:
        return await asyncio.to_thread(search, query)

    return FunctionTool.from_defaults(fn=search, async_fn=asearch, name=name, description=description)


def _told(context: Context) -> str:
    return context.text if context.sufficient and context.text else NOTHING
