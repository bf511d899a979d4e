"""The `when_empty` option: what to return if no node qualifies."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Literal

from llama_index.core.schema import NodeWithScore

from llama_index_meve._nodes import NodePassage, copy_node, mark_unverified
from meve.pipeline.context import Context
from meve.pipeline.engine import Engine

WhenEmpty = Literal["nothing", "best"]


def best_candidate(
    context: Context, fetch: Callable[[Collection[str]], Iterable[Any]], engine: Engine, options: Mapping[str, Any]
) -> list[NodeWithScore]:
    """Return the candidate with the highest probability that fits the token budget, as a list; empty if none fits.

    The node is a copy, marked as not verified.

    Args:
        context: the candidates, in its trace.
        fetch: returns the passages with the given ids.
        engine: gives the tokenizer and settings.
        options: settings of this call.
    """
    scores = {c.id: c.scores["verifier"] for c in context.trace.candidates if "verifier" in c.scores}
    budget = engine.resolve_config(None, options).max_tokens
    for passage in sorted(fetch(scores), key=lambda p: -scores[p.id]):
        if isinstance(passage, NodePassage) and engine.tokens.count(passage.prompt_text) <= budget:
            node = copy_node(passage.node)
            mark_unverified(node)
            return [NodeWithScore(node=node, score=float(scores[passage.id]))]
    return []
