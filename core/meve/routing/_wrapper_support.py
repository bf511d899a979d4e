"""Code that the framework wrappers share: a memory's search, routed or not."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from meve.errors import ConfigurationError
from meve.memory import GovernedMemory, Recall
from meve.memory._wrapper_support import check_search
from meve.memory.records import UserId
from meve.routing.config import RouterConfig
from meve.routing.memory_router import MemoryRouter

Search = Callable[..., Recall]
"""Searches the memory of `user_id` for a query, `without` what is shown; takes further options of a search."""


def make_search(memory: GovernedMemory, search: Mapping[str, Any] | None, routing: RouterConfig | None) -> Search:
    """Return the search of a wrapper: `GovernedMemory.search`, or with `routing` that of a `MemoryRouter`.

    A routed search takes `max_tokens` as an upper limit of each tier's budget.

    Raises:
        ConfigurationError: an invalid option; with `routing`, also one that the router sets.
    """
    options = check_search(memory, search)
    if routing is None:
        return lambda query, **more: memory.search(query, **{**options, **more})
    if not isinstance(routing, RouterConfig):
        raise ConfigurationError(f"routing must be a RouterConfig, or None, got {routing!r:.60}")
    config = routing
    MemoryRouter(memory, user_id="anybody", config=config, search=options)  # checks the options

    def route(
        query: str, *, user_id: UserId, without: Collection[str] = (), max_tokens: int | None = None, **_: object
    ) -> Recall:
        fitted = config if max_tokens is None else _limit(config, max_tokens)
        return MemoryRouter(memory, user_id=user_id, config=fitted, search=options).recall(query, without=without)

    return route


def _limit(config: RouterConfig, most: int) -> RouterConfig:
    names = ("profile_tokens", "targeted_tokens", "deep_tokens", "complete_tokens")
    return replace(config, **{name: min(getattr(config, name), most) for name in names})
