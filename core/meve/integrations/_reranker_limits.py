"""Lift the limits of frameworks' rerankers."""

from typing import Any

_LIMITS = ("top_n", "top_k")


def lift_limits(reranker: Any, documents: int) -> Any:  # noqa: ANN401 - an object of either framework
    """Return a copy of a reranker that returns that many documents; the reranker itself if it has no limit."""
    fields = getattr(type(reranker), "model_fields", {})
    limits = {name: documents for name in _LIMITS if name in fields}
    return reranker.model_copy(update=limits) if limits else reranker
