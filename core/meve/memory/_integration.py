"""What every skin of a memory does: recall once for a turn, hold it until the answer, and go on where memory fails."""

import warnings
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any, Literal, TypeAlias, get_args

from meve.errors import ConfigurationError, MemoryLostWarning, ModelError, PassageError, QueryError, StorageError
from meve.memory import GovernedMemory
from meve.memory._recall.query import SearchOptions, asked
from meve.memory._recall.searcher import Recall
from meve.memory.conversation.turns import TurnRules
from meve.pipeline.config import check_names

OnError: TypeAlias = Literal["warn", "raise"]
HELD = 256
"""Recalls that wait for their answer; beyond, the oldest goes, and no answer is held against it."""
_FORGIVEN = (StorageError, ModelError, QueryError, PassageError)
"""What may keep memory from its work; never what keeps users apart."""
_TOLD = frozenset({"query", "user_id", "without"})
"""What the conversation tells a search."""
_OPTIONS = tuple(name for name in SearchOptions.__annotations__ if name not in _TOLD)


class Held:
    """The recalls of turns that aren't answered yet. Safe to share between threads."""

    def __init__(self) -> None:
        self._recalls: OrderedDict[tuple[Any, ...], Recall] = OrderedDict()
        self._guard = Lock()

    def find(self, key: tuple[Any, ...]) -> Recall | None:
        """That of a turn."""
        with self._guard:
            return self._recalls.get(key)

    def keep(self, key: tuple[Any, ...], recall: Recall) -> None:
        """Hold one."""
        with self._guard:
            self._recalls[key] = recall
            while len(self._recalls) > HELD:
                self._recalls.popitem(last=False)

    def take(self, key: tuple[Any, ...]) -> Recall | None:
        """That of a turn, and hold it no more."""
        with self._guard:
            return self._recalls.pop(key, None)


@contextmanager
def forgiving(on_error: OnError, doing: str) -> Iterator[None]:
    """Go on with a warning where memory couldn't do its work, if that is wanted."""
    try:
        yield
    except _FORGIVEN as error:
        if on_error == "raise":
            raise
        told = f"{doing} failed, and the conversation goes on without: {error}"
        warnings.warn(told, MemoryLostWarning, stacklevel=4)


def checked_memory(memory: object) -> GovernedMemory:
    """A governed memory.

    Raises:
        ConfigurationError: something else.
    """
    if not isinstance(memory, GovernedMemory):
        raise ConfigurationError(f"memory is {memory!r:.60}: give what GovernedMemory.open(…) returns")
    return memory


def checked_search(memory: GovernedMemory, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Options of `GovernedMemory.search` for every recall.

    Raises:
        ConfigurationError: one that there isn't, or that the program tells at each call.
        ValidationError: a value that can't be.
    """
    given = dict(options or {})
    told = sorted(given.keys() & _TOLD)
    if told:
        raise ConfigurationError(f"search holds {', '.join(map(repr, told))}: the conversation tells it, leave it out")
    check_names(given, _OPTIONS, "search")
    values = {name: value for name, value in given.items() if (name, value) != ("max_tokens", None)}  # the policy's
    asked("?", "anybody", policy=memory.policy, now=memory.clock.now(), **values)
    return given


def checked_rules(remember: TurnRules | None) -> TurnRules:
    """Which turns are remembered; None for none.

    Raises:
        ConfigurationError: something else.
    """
    if remember is None:
        return TurnRules(sources={})
    if not isinstance(remember, TurnRules):
        raise ConfigurationError(f"remember is {remember!r:.60}: give TurnRules(…), or None to write nothing")
    return remember


def checked_on_error(on_error: OnError) -> OnError:
    """What to do where memory fails.

    Raises:
        ConfigurationError: neither.
    """
    if on_error not in get_args(OnError):
        raise ConfigurationError(f"on_error is {on_error!r:.40}: choose one of {', '.join(get_args(OnError))}")
    return on_error
