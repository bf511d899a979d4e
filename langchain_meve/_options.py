"""What retriever and compressor have in common: which values of the engine they set, and for how long."""

from typing import Annotated

from pydantic import Field

from meve.errors import QueryError

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]

NAMES = {"k": "limit"}
"""Where LangChain's word for a setting isn't ours."""


def question(asked: object) -> str:
    """The question as text. A dict with an `input` is what chains hand to a retriever that is bound or configurable.

    Raises:
        QueryError: something else.
    """
    if isinstance(asked, dict) and isinstance(asked.get("input"), str):
        asked = asked["input"]
    if not isinstance(asked, str):
        raise QueryError(
            f"a retriever was asked with {type(asked).__name__} ({asked!r:.80}): pipe the question itself into it, "
            "as in itemgetter('question') | retriever"
        )
    return asked
