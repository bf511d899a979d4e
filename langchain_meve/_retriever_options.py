"""Option types and query parsing that the retriever, the compressor and the tool share."""

from typing import Annotated

from pydantic import Field

from meve.errors import QueryError

Probability = Annotated[float, Field(ge=0, le=1)]
PositiveInt = Annotated[int, Field(ge=1)]

LANGCHAIN_OPTION_NAMES = {"k": "limit"}
"""LangChain's option names that differ from MeVe's."""


def parse_query(value: object) -> str:
    """Return the query text of a string, or of a dict with an `input`, which chains pass to bound retrievers.

    Raises:
        QueryError: `value` is neither.
    """
    if isinstance(value, dict) and isinstance(value.get("input"), str):
        value = value["input"]
    if not isinstance(value, str):
        raise QueryError(
            f"the query must be a string, got {type(value).__name__} ({value!r:.80}): pass the question itself, "
            "as in itemgetter('question') | retriever"
        )
    return value
