"""A query engine over verified retrieval."""

import copy
import inspect
from collections.abc import Sequence
from typing import Any

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer

from llama_index_meve._nodes import OPTION_MAP
from llama_index_meve.retriever import MeVeRetriever
from meve.integrations._option_names import translate_options
from meve.pipeline.config import Overrides, check_keywords

DEFAULT_EMPTY_RESPONSE = "No retrieved passage answers this question."


def create_meve_query_engine(
    retriever: MeVeRetriever,
    *,
    llm: Any = None,
    empty_response: str = DEFAULT_EMPTY_RESPONSE,
    node_postprocessors: Sequence[BaseNodePostprocessor] = (),
    **options: Any,
) -> RetrieverQueryEngine:
    """Create a query engine that answers from verified context.

    Args:
        retriever: retrieves the context.
        llm: answers; None for LlamaIndex's own setting.
        empty_response: the answer if nothing qualifies; the model isn't asked then.
        node_postprocessors: applied to the retrieved nodes.
        options: of `get_response_synthesizer`, such as `response_mode`; and `top_k` and any value of
            `meve.RetrieverConfig`, which override the retriever's own here.

    Raises:
        ConfigurationError: an unknown option, or a value out of range.
    """
    own, settable = inspect.signature(get_response_synthesizer).parameters, [*OPTION_MAP, *Overrides.__annotations__]
    check_keywords(create_meve_query_engine, options, also=[*own, *settable])
    settings = {name: options.pop(name) for name in [*options] if name in settable}
    if settings:
        retriever = copy.deepcopy(retriever)
        retriever.options |= translate_options(OPTION_MAP, settings)
        retriever.retriever.engine.resolve_config(None, retriever.options)
    synthesizer = get_response_synthesizer(llm=llm, **options)
    synthesizer._empty_response = empty_response
    return RetrieverQueryEngine(
        retriever=retriever, response_synthesizer=synthesizer, node_postprocessors=list(node_postprocessors)
    )
