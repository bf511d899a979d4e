"""The `when_empty` option: what to return if no node qualifies."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from llama_index.core.schema import NodeWithScore

from llama_index_meve._nodes import NodePassage, copy_node
from meve.pipeline.engine import Engine

WhenEmpty = Literal["nothing", "best"]


def best_candidate(
    scores: Mapping[str, float], passages: Sequence[Any], engine: Engine, options: Mapping[str, Any]
) -> list[NodeWithScore]:
    """Return the highest-scored passage that fits the token budget, as a list of one node; empty if none fits.

    Args:
        scores: verifier probabilities by passage id.
        passages: the passages with these ids.
        engine: gives the tokenizer and settings.
        options: settings of this call.
    """
    budget = engine.resolve_config(None, options).max_tokens
    for passage in sorted(passages, key=lambda p: -scores[p.id]):
        if isinstance(passage, NodePassage) and engine.tokens.count(passage.prompt_text) <= budget:
            return [NodeWithScore(node=copy_node(passage.node), score=float(scores[passage.id]))]
    return []
