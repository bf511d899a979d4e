"""Verified retrieval as a tool: the model reads the context, and the trace is the artifact."""

from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from langchain_meve._documents import RetrievedDocuments
from langchain_meve._options import OPTION_NAMES
from langchain_meve.retriever import MeVeRetriever
from meve.errors import ConfigurationError, QueryError
from meve.integrations._options import DESCRIPTION, NOTHING, renamed
from meve.pipeline.context import Context


class Asked(BaseModel):
    """What the model gives."""

    query: str = Field(description="the question, in full")


def create_meve_tool(
    retriever: MeVeRetriever,
    name: str = "search_documents",
    description: str = DESCRIPTION,
    *,
    unverified: bool = False,
    filter: Any = None,
    **options: Any,
) -> BaseTool:
    """A tool for agents, with content and artifact; its retrievals are runs under the tool's.

    Args:
        retriever: what searches. Not one that is bound or configurable: give its options here.
        name: what the model calls it.
        description: what the model is told of it.
        unverified: whether a context that isn't sufficient is shown all the same; else the model is told that nothing
            answers.
        filter: what a document must satisfy, instead of the retriever's own.
        options: `k` and any value of `meve.RetrieverConfig`, for every call.

    Returns:
        A tool whose content is the context's text, and whose artifact is `Context.to_dict()`: passages, scores and the
        whole trace. A question that can't be used is told to the model, and the artifact is empty then.

    Raises:
        ConfigurationError: no `MeVeRetriever`, an unknown option, or a value out of range.
    """
    if not isinstance(retriever, MeVeRetriever):
        raise ConfigurationError(
            f"a tool was to be made of {type(retriever).__name__}: give the MeVeRetriever itself, and what was bound "
            "to it (filter, k, …) by name, or it would be lost"
        )
    retriever.engine.engine.resolve_config(None, renamed(OPTION_NAMES, options))
    given = options if filter is None else {**options, "filter": filter}

    def search(query: str, config: RunnableConfig) -> tuple[str, dict[str, Any]]:
        try:
            return _told(retriever.invoke(query, config, **given), unverified=unverified)
        except QueryError as error:
            return f"The question can't be used: {error}", {}

    async def asearch(query: str, config: RunnableConfig) -> tuple[str, dict[str, Any]]:
        try:
            return _told(await retriever.ainvoke(query, config, **given), unverified=unverified)
        except QueryError as error:
            return f"The question can't be used: {error}", {}

    return StructuredTool.from_function(
        func=search,
        coroutine=asearch,
        name=name,
        description=description,
        args_schema=Asked,
        response_format="content_and_artifact",
    )


def _told(found: list[Any], *, unverified: bool) -> tuple[str, dict[str, Any]]:
    context: Context | None = found.context if isinstance(found, RetrievedDocuments) else None
    if context is None:
        return NOTHING, {}
    shown = context.text if context.sufficient or unverified else ""
    return shown or NOTHING, context.to_dict()
