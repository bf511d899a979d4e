"""Describe a retrieval for whoever measures it: numbers and names of models, and content only if it is wanted."""

import json

from meve._telemetry import Span, Value, count, get_recorder
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.context import Context
from meve.types import Query

UNLIMITED = 1_000_000
"""A token budget that cuts nothing: whoever gives it chooses and packs among the passages itself."""


def describe_retrieval(span: Span | None, query: Query, config: RetrieverConfig, context: Context) -> None:
    """Add to a span what a retrieval gave, and count it; nothing without a span."""
    if span is None:
        return
    trace, passages = context.trace, context.passages
    attributes: dict[str, Value] = {
        "gen_ai.request.model": trace.embedder,
        "meve.mode": trace.mode,
        "meve.verifier": trace.verifier,
        "meve.passages": len(passages),
        "meve.verified": sum(passage.verified for passage in passages),
    }
    if config.max_tokens < UNLIMITED:
        attributes |= {"meve.tokens": context.tokens, "meve.max_tokens": config.max_tokens}
    if config.limit is not None:
        attributes["gen_ai.retrieval.top_k"] = config.limit
    if trace.verifier:  # a memory's contexts aren't judged, unless a search asks for it
        attributes["meve.sufficient"] = context.sufficient
        count("meve.retrievals", {"meve.sufficient": context.sufficient})
    recorder = get_recorder()
    if recorder is not None and recorder.has_content:
        found = [{"id": passage.passage.id, "score": passage.score} for passage in passages]
        attributes |= {"gen_ai.retrieval.query.text": query.text, "gen_ai.retrieval.documents": json.dumps(found)}
    span.describe(attributes)
