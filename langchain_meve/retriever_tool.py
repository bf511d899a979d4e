"""Verified retrieval as an agent tool, whose artifact is the trace."""

from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from langchain_meve._documents import RetrievedDocuments
from langchain_meve._retriever_options import LANGCHAIN_OPTION_NAMES
from langchain_meve.retriever import MeVeRetriever
from meve.errors import ConfigurationError, QueryError
from meve.integrations._option_names import translate_options
from meve.integrations._tool_texts import NO_RESULT_MESSAGE, TOOL_DESCRIPTION, admitted_passages, format_for_model
from meve.pipeline.config import WhenInsufficient
from meve.pipeline.context import Context


class RetrieverToolInput(BaseModel):
    """The arguments that the model passes."""

    query: str = Field(description="the question, in full")


def create_meve_tool(
    retriever: MeVeRetriever,
    name: str = "search_documents",
    description: str = TOOL_DESCRIPTION,
    *,
    when_insufficient: WhenInsufficient | None = None,
    filter: Any = None,
    **options: Any,
) -> BaseTool:
    """Build an agent tool with content and artifact; its retrievals are child runs of the tool's run.

    Args:
        retriever: the retriever itself, not a bound or configurable one: pass its options here.
        name: the tool's name for the model.
        description: the tool's description for the model.
        when_insufficient: what the model reads of a context that isn't sufficient, as in `meve.RetrieverConfig`; None
            for the retriever's setting, `abstain` in place of `raise`. What is shown follows a sentence that it may not
            answer. Where no passage is left, the model reads that nothing answers.
        filter: the condition that documents must satisfy, instead of the retriever's.
        options: `k` and any value of `meve.RetrieverConfig`, for every call.

    Returns:
        A tool whose content is the context's text, after a doubt if it isn't sufficient. Its artifact is
        `Context.to_dict()` with passages, scores and trace. For an invalid query, the content is the error and the
        artifact is empty.

    Raises:
        ConfigurationError: no `MeVeRetriever`, an unknown option, or a value out of range.
    """
    if not isinstance(retriever, MeVeRetriever):
        raise ConfigurationError(
            f"retriever must be a MeVeRetriever, got {type(retriever).__name__}: pass the retriever itself, and what "
            "was bound to it (filter, k, …) as options"
        )
    own = retriever.when_insufficient or retriever.options.get("when_insufficient")
    if way := when_insufficient or own:
        options["when_insufficient"] = way
    config = retriever.retriever.engine.resolve_config(None, translate_options(LANGCHAIN_OPTION_NAMES, options))
    options["when_insufficient"] = when_insufficient or admitted_passages(config)
    call_options = options if filter is None else {**options, "filter": filter}

    def search(query: str, config: RunnableConfig) -> tuple[str, dict[str, Any]]:
        try:
            return _tool_result(retriever.invoke(query, config, **call_options))
        except QueryError as error:
            return f"The query is invalid: {error}", {}

    async def asearch(query: str, config: RunnableConfig) -> tuple[str, dict[str, Any]]:
        try:
            return _tool_result(await retriever.ainvoke(query, config, **call_options))
        except QueryError as error:
            return f"The query is invalid: {error}", {}

    return StructuredTool.from_function(
        search, asearch, name, description, args_schema=RetrieverToolInput, response_format="content_and_artifact"
    )


def _tool_result(documents: list[Any]) -> tuple[str, dict[str, Any]]:
    context: Context | None = documents.context if isinstance(documents, RetrievedDocuments) else None
    if context is None:
        return NO_RESULT_MESSAGE, {}
    return format_for_model(context), context.to_dict()
