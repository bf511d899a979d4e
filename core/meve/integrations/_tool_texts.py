"""Define the texts that retrieval tools show to a language model."""

NO_RESULT_MESSAGE = "No retrieved passage answers this question. Say so rather than guess."
"""The result of a tool call without a qualified passage."""
TOOL_DESCRIPTION = "Searches the documents and returns only passages that were verified to answer the question."
"""The default description of a retrieval tool."""
