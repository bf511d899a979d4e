"""Verified retrieval as a tool: the model reads the context, and the trace is the artifact."""

from typing import Any

from langchain_core.runnables import run_in_executor
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from langchain_meve.retriever import MeVeRetriever
from meve.context import Context

NOTHING = "Nothing that was found answers this. Say so rather than guess."
DESCRIPTION = "Searches the documents and returns only passages that were verified to answer the question."


class Asked(BaseModel):
    """What the model gives."""

    query: str = Field(description="the question, in full")


def create_meve_tool(
    retriever: MeVeRetriever,
    name: str = "search_documents",
    description: str = DESCRIPTION,
    *,
    unverified: bool = False,
    **options: Any,
) -> BaseTool:
    """A tool for agents, with content and artifact.

    Args:
        retriever: what searches.
        name: what the model calls it.
        description: what the model is told of it.
        unverified: whether a context that isn't sufficient is shown all the same; else the model is told that nothing
            answers.
        options: `filter`, `k` and any value of `meve.RetrieverConfig`, for every call.

    Returns:
        A tool whose content is the context's text, and whose artifact is `Context.to_dict()`: passages, scores and the
        whole trace.
    """

    def search(query: str) -> tuple[str, dict[str, Any]]:
        return _told(retriever.context(query, **options), unverified=unverified)

    async def asearch(query: str) -> tuple[str, dict[str, Any]]:
        return await run_in_executor(None, search, query)

    return StructuredTool.from_function(
        func=search,
        coroutine=asearch,
        name=name,
        description=description,
        args_schema=Asked,
        response_format="content_and_artifact",
    )


def _told(context: Context, *, unverified: bool) -> tuple[str, dict[str, Any]]:
    shown = context.text if context.sufficient or unverified else ""
    return shown or NOTHING, context.to_dict()
