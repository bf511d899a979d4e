"""How a chat memory is written down: which file and whose session, and no content; and how it is found again."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import yaml

from meve.errors import ConfigurationError
from meve.memory import GovernedMemory, Policy
from meve.memory._integration import check_memory
from meve.memory.turns import TurnRules

_OPEN: WeakValueDictionary[Path, GovernedMemory] = WeakValueDictionary()
"""Memories of this process by their files, while anybody holds them."""
_NAMES = {
    *("memory", "user_id", "session_id", "token_limit", "tokens", "media_tokens", "search", "remember", "on_error"),
    "insert_method",
}


def at_hand(memory: GovernedMemory) -> None:
    """References to a memory's file are to this one from now on, while it is open.

    Raises:
        ConfigurationError: no memory.
    """
    _OPEN[check_memory(memory).file] = memory


def described(made: Any) -> dict[str, Any]:
    """A `MeVeMemory` as JSON-ready data.

    Raises:
        ConfigurationError: options that JSON can't hold.
    """
    rules: TurnRules = made.remember
    if rules.facts is not None:
        raise ConfigurationError("remember has a function of its own for facts, which can't be written down")
    data = {
        "class_name": made.class_name(),
        "file": str(made.memory.file),
        "policy": yaml.safe_load(made.memory.policy.to_yaml()),
        "user_id": made.user_id,
        "session_id": made.session_id,
        "token_limit": made.token_limit,
        "tokens": made.tokens,
        "media_tokens": made.media_tokens,
        "search": made.search,
        "on_error": made.on_error,
        "insert_method": made.insert_method.value,
        "remember": {"sources": {**rules.sources}, "classes": {**rules.classes}, "most": rules.most},
    }
    try:
        found: dict[str, Any] = json.loads(json.dumps(data, allow_nan=False))
    except (TypeError, ValueError) as cause:
        raise ConfigurationError(f"search is {made.search!r:.120}, which can't be written down: {cause}") from cause
    return found


def reconnected(data: Mapping[str, Any]) -> dict[str, Any]:
    """What `described` was told of, as arguments of `MeVeMemory`; with `memory` among the data, over that one.

    Raises:
        ConfigurationError: data that isn't `described`'s.
        StorageError: the file can't be opened.
    """
    given = {name: value for name, value in data.items() if name != "class_name"}
    file, policy = given.pop("file", None), given.pop("policy", None)
    if given.get("memory") is None:
        if file is None:
            raise ConfigurationError(f"no file is named in {sorted(data)}: give what to_dict() returned, or memory=…")
        given["memory"] = _opened(Path(file), policy)
    if odd := sorted(given.keys() - _NAMES):
        raise ConfigurationError(f"a reference holds {', '.join(odd)}: give what to_dict() returned, of this version")
    if isinstance(given.get("remember"), Mapping):
        given["remember"] = TurnRules(**given["remember"])
    return given


def _opened(file: Path, policy: Mapping[str, Any] | None) -> GovernedMemory:
    found = _OPEN.get(file)
    if found is not None and not found.closed:
        return found
    return GovernedMemory.open(file, policy=None if policy is None else Policy.from_dict(policy))
