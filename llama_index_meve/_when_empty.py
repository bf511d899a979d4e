"""What to return where nothing qualifies."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from llama_index.core.schema import NodeWithScore

from llama_index_meve._nodes import NodePassage, copy_node
from meve.pipeline.engine import Engine

WhenEmpty = Literal["nothing", "best"]


def best_candidate(
    judged: Mapping[str, float], passages: Sequence[Any], engine: Engine, options: Mapping[str, Any]
) -> list[NodeWithScore]:
    """The best of what was judged that fits the budget; none if none does.

    Args:
        judged: probabilities by id.
        passages: of these ids.
        engine: whose tokens and settings count.
        options: what a call decides by, beside them.
    """
    budget = engine.resolve_config(None, options).max_tokens
    for passage in sorted(passages, key=lambda p: -judged[p.id]):
        if isinstance(passage, NodePassage) and engine.tokens.count(passage.shown) <= budget:
            return [NodeWithScore(node=copy_node(passage.node), score=float(judged[passage.id]))]
    return []
