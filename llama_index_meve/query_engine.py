"""A query engine over verified retrieval."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer

from llama_index_meve.retriever import MeVeRetriever

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
        options: of `get_response_synthesizer`, such as `response_mode`.
    """
    synthesizer = get_response_synthesizer(llm=llm, **options)
    synthesizer._empty_response = empty_response
    return RetrieverQueryEngine(
        retriever=retriever, response_synthesizer=synthesizer, node_postprocessors=list(node_postprocessors)
    )
