"""A query engine over verified retrieval."""

import inspect
from collections.abc import Sequence
from typing import Any

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import PromptTemplate, PromptType
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer

from llama_index_meve._nodes import OPTION_MAP
from llama_index_meve.retriever import MeVeRetriever
from meve.errors import ConfigurationError
from meve.pipeline.config import Overrides, WhenInsufficient, check_keywords

ANSWER_OR_DECLINE = PromptTemplate(
    "Documents:\n\n{context_str}\n\nAnswer the question from these documents alone. If they don't hold the answer, say "
    "that they don't.\n\nQuestion: {query_str}\nAnswer: ",
    prompt_type=PromptType.QUESTION_ANSWER,
)
"""The prompt of the engine, unless `text_qa_template` is given."""
DEFAULT_EMPTY_RESPONSE = "No retrieved passage answers this question."


def create_meve_query_engine(
    retriever: MeVeRetriever,
    *,
    llm: Any = None,
    when_insufficient: WhenInsufficient | None = None,
    empty_response: str = DEFAULT_EMPTY_RESPONSE,
    node_postprocessors: Sequence[BaseNodePostprocessor] = (),
    **options: Any,
) -> RetrieverQueryEngine:
    """Create a query engine that answers from verified context.

    Args:
        retriever: retrieves the context.
        llm: answers; None for LlamaIndex's own setting.
        when_insufficient: what to do with a context that isn't sufficient, as in `meve.RetrieverConfig`; None for the
            retriever's setting. By default, the model reads nodes that weren't verified too, and is told to say so if
            they don't answer.
        empty_response: the answer if no node is left; the model isn't asked then.
        node_postprocessors: applied to the retrieved nodes.
        options: of `get_response_synthesizer`, such as `response_mode` or a `text_qa_template` of your own; and
            `top_k` and any value of `meve.RetrieverConfig`, which override the retriever's own here.

    Raises:
        ConfigurationError: no `MeVeRetriever`, an unknown option, or a value out of range.
    """
    if not isinstance(retriever, MeVeRetriever):
        raise ConfigurationError(f"retriever must be a MeVeRetriever, got {type(retriever).__name__}")
    settable = [*OPTION_MAP, *Overrides.__annotations__]
    of_synthesizer = inspect.signature(get_response_synthesizer).parameters
    check_keywords(create_meve_query_engine, options, also=[*of_synthesizer, *settable])
    settings = {name: options.pop(name) for name in [*options] if name in settable}
    if when_insufficient is not None:
        settings["when_insufficient"] = when_insufficient
    own = retriever.with_options(**settings)
    options.setdefault("text_qa_template", ANSWER_OR_DECLINE)
    synthesizer = get_response_synthesizer(llm=llm, **options)
    synthesizer._empty_response = empty_response
    return RetrieverQueryEngine(
        retriever=own, response_synthesizer=synthesizer, node_postprocessors=list(node_postprocessors)
    )
