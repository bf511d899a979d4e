"""A query engine and a tool over verified retrieval."""

from typing import Any

from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.tools import FunctionTool

from llama_index_meve.retriever import MeVeRetriever
from meve.context import Context

NOTHING = "Nothing that was found answers this."
DESCRIPTION = "Searches the documents and returns only passages that were verified to answer the question."


def meve_query_engine(
    retriever: MeVeRetriever,
    *,
    llm: Any = None,
    empty_response: str = NOTHING,
    **options: Any,
) -> RetrieverQueryEngine:
    """A query engine whose context is verified.

    Args:
        retriever: what retrieves.
        llm: answers; None for LlamaIndex's own setting.
        empty_response: the answer where nothing qualifies; no model is asked then.
        options: of `get_response_synthesizer`, such as `response_mode`.
    """
    synthesizer = get_response_synthesizer(llm=llm, **options)
    synthesizer._empty_response = empty_response
    return RetrieverQueryEngine(retriever=retriever, response_synthesizer=synthesizer)


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
    """

    def search(query: str) -> str:
        return _told(retriever.context(query, **options))

    async def asearch(query: str) -> str:
        import asyncio

        return await asyncio.to_thread(search, query)

    return FunctionTool.from_defaults(fn=search, async_fn=asearch, name=name, description=description)


def _told(context: Context) -> str:
    return context.text if context.sufficient and context.text else NOTHING
