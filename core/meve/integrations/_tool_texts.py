"""Define the texts that retrieval tools show to a language model."""

from meve.pipeline.config import RetrieverConfig, WhenInsufficient
from meve.pipeline.context import Context

NO_RESULT_MESSAGE = "No retrieved passage answers this question. Say so rather than guess."
"""The result of a tool call without a passage."""
DOUBT = "These passages may not answer the question. If they don't, say so rather than guess."
"""Stands before the passages of a context that isn't sufficient."""
TOOL_DESCRIPTION = "Searches the documents and returns the passages that may answer the question, the likeliest first."
"""The default description of a retrieval tool."""


def admitted_passages(config: RetrieverConfig) -> WhenInsufficient:
    """Return what the settings admit to a context that isn't sufficient; nothing where they raise an error."""
    return "abstain" if config.when_insufficient == "raise" else config.when_insufficient


def format_for_model(context: Context) -> str:
    """Return what a tool shows of a context: its text, with a doubt before it if the context isn't sufficient."""
    if not context.text:
        return NO_RESULT_MESSAGE
    return context.text if context.sufficient else f"{DOUBT}\n\n{context.text}"
