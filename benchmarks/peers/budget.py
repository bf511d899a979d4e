"""Fits whole documents or nodes into the token budget, as MeVe counts it; neither framework has a part for it."""

from collections.abc import Sequence
from typing import TypeVar

from meve.evaluation.types import SharedComponents

_T = TypeVar("_T")


def fit_budget(items: Sequence[_T], texts: Sequence[str], components: SharedComponents) -> list[_T]:
    """Return the items in order whose texts fit, separators counted; one that doesn't fit is skipped."""
    counter, separator, limit = components.tokens, components.config.separator, components.config.max_tokens
    seam = counter.count(separator)
    kept: list[int] = []
    used = -seam
    for n, count in enumerate(counter.count_many(texts)):
        if used + seam + count <= limit:
            kept.append(n)
            used += seam + count
    while kept and counter.count(separator.join(texts[n] for n in kept)) > limit:
        kept.pop()  # texts may count for more together than apart
    return [items[n] for n in kept]
