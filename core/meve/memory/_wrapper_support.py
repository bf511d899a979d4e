"""Code that the framework wrappers share: pending recalls, tolerance of failures, and option checks."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from logging import getLogger
from typing import Any, Literal, TypeAlias, get_args

from cachetools import LRUCache

from meve._fork_safety import ForkSafeLock
from meve.errors import ConfigurationError, MemoryLostWarning, ModelError, PassageError, QueryError, StorageError
from meve.memory._recall.prompt import STANDING_TOKENS, fit_wishes
from meve.memory._recall.query import MemoryQuery, SearchOptions, make_query
from meve.memory._recall.searcher import Recall
from meve.memory._recall.user_index import Scope
from meve.memory.memory import GovernedMemory
from meve.memory.records import UserId
from meve.memory.turns import TurnRules
from meve.pipeline.config import check_option_names

logger = getLogger("meve.memory")

OnError: TypeAlias = Literal["warn", "raise"]
MAX_PENDING_RECALLS = 256
"""Recalls that wait for their answer; the answer to an older one adjusts no scores."""
_TOLERATED = (StorageError, ModelError, QueryError, PassageError)
"""Failures without which the conversation can go on; those that keep users apart are always raised."""
_RESERVED_OPTIONS = frozenset({"query", "user_id", "without"})
"""Options of a search that the conversation determines."""
_OPTIONS = tuple(name for name in SearchOptions.__annotations__ if name not in _RESERVED_OPTIONS)


class PendingRecalls:
    """The recalls of turns without an answer so far. Safe to share between threads."""

    def __init__(self) -> None:
        self._recalls: LRUCache[tuple[Any, ...], Recall] = LRUCache(MAX_PENDING_RECALLS)
        self._lock = ForkSafeLock()

    def get(self, key: tuple[Any, ...]) -> Recall | None:
        """Return the recall of a turn."""
        with self._lock:
            return self._recalls.get(key)

    def put(self, key: tuple[Any, ...], recall: Recall) -> None:
        """Store the recall of a turn."""
        with self._lock:
            self._recalls[key] = recall

    def pop(self, key: tuple[Any, ...]) -> Recall | None:
        """Remove and return the recall of a turn."""
        with self._lock:
            return self._recalls.pop(key, None)


@contextmanager
def tolerate_failures(on_error: OnError, doing: str) -> Iterator[None]:
    """Turn failures of the memory into warnings, unless `on_error` is "raise"."""
    try:
        yield
    except _TOLERATED as error:
        if on_error == "raise":
            raise
        message = f"{doing} failed, and the conversation goes on without: {error}"
        logger.warning("%s failed: %s", doing, type(error).__name__)  # the error may quote what was said
        warnings.warn(message, MemoryLostWarning, stacklevel=4)


def check_memory(memory: object) -> GovernedMemory:
    """Return the argument; raise ConfigurationError unless it is a governed memory."""
    if not isinstance(memory, GovernedMemory):
        raise ConfigurationError(f"memory must be a GovernedMemory, got {memory!r:.60}: use GovernedMemory.open(…)")
    return memory


def check_search(memory: GovernedMemory, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options of `GovernedMemory.search` for every recall, checked against the policy.

    Raises:
        ConfigurationError: an unknown option, or one that the integration sets.
        ValidationError: an invalid value.
    """
    if options is not None and not isinstance(options, Mapping):
        raise ConfigurationError(f"search must be a mapping of options, or None, got {options!r:.60}")
    search = dict(options or {})
    reserved = sorted(search.keys() & _RESERVED_OPTIONS)
    if reserved:
        names = ", ".join(map(repr, reserved))
        raise ConfigurationError(f"{names} is set by the integration: remove it from search")
    check_option_names(search, _OPTIONS, "search")
    _make_query(memory, "anybody", search)
    return search


def _make_query(memory: GovernedMemory, user_id: UserId, options: Mapping[str, Any]) -> MemoryQuery:
    values = {name: value for name, value in options.items() if (name, value) != ("max_tokens", None)}  # the policy's
    return make_query("?", user_id, policy=memory.policy, now=memory.clock.now(), **values)


def find_scope(memory: GovernedMemory, user_id: UserId, options: Mapping[str, Any]) -> Scope:
    """Return which memories searches with these options may show, told or replaced at any time."""
    scope = _make_query(memory, user_id, options).scope
    tags = scope.tags if scope.require_tags else None
    return replace(scope, tags=tags, include_superseded=True, as_of=None, since=None, until=None)


def find_shown_wishes(memory: GovernedMemory, user_id: UserId, options: Mapping[str, Any]) -> list[str]:
    """Return the ids of the standing wishes that `format_recall` shows in their own block.

    Args:
        memory: the memory.
        user_id: whose wishes.
        options: the options of `GovernedMemory.search`.
    """
    wishes = memory._searcher.find_standing(_make_query(memory, user_id, options))
    return [record.id for record in fit_wishes(wishes, STANDING_TOKENS, memory._runtime.tokens.count_many)]


def check_rules(remember: TurnRules | None) -> TurnRules:
    """Return the rules for storing turns, empty ones for None; raise ConfigurationError for anything else."""
    if remember is None:
        return TurnRules(sources={})
    if not isinstance(remember, TurnRules):
        raise ConfigurationError(f"remember must be TurnRules(…), or None to store nothing, got {remember!r:.60}")
    return remember


def check_on_error(on_error: OnError) -> OnError:
    """Return the argument; raise ConfigurationError unless it is "warn" or "raise"."""
    if on_error not in get_args(OnError):
        raise ConfigurationError(f"on_error must be one of {', '.join(get_args(OnError))}, got {on_error!r:.40}")
    return on_error
