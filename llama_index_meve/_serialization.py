"""Serialize a chat memory as a reference to its file or database and session, without content."""

import json
from collections.abc import Container, Mapping
from dataclasses import fields
from typing import Any
from weakref import WeakValueDictionary

import yaml

from meve.errors import ConfigurationError
from meve.memory import GovernedMemory, Policy
from meve.memory._wrapper_support import check_memory
from meve.memory._write.extraction import RuleExtractor
from meve.memory.turns import TurnRules

_PLACE = ("file", "key_file", "tenant")
_OPEN_MEMORIES: WeakValueDictionary[tuple[str | None, ...], GovernedMemory] = WeakValueDictionary()
"""This process's memories by the values of `_PLACE`, while they are referenced."""
_WRITTEN = [each.name for each in fields(TurnRules) if each.name not in ("extractor", "background")]
"""The rules that are written: all but objects."""


def register_memory(memory: GovernedMemory) -> None:
    """Use this memory for references to its file or database while it is open.

    Raises:
        ConfigurationError: the value is no GovernedMemory.
    """
    if location := check_memory(memory).location:
        _OPEN_MEMORIES[tuple(map(location.get, _PLACE))] = memory


def memory_to_dict(chat_memory: Any) -> dict[str, Any]:
    """Return a `MeVeMemory` as JSON-ready data.

    Raises:
        ConfigurationError: JSON can't represent an option.
    """
    rules: TurnRules = chat_memory.remember
    if not isinstance(rules.extractor, RuleExtractor) or rules.background is not None:
        raise ConfigurationError("remember can't be serialized: its extractor isn't the one by rules")
    if not chat_memory.memory.location:
        raise ConfigurationError(
            "a memory in a store of your own can't be serialized: open it with GovernedMemory.open(file)"
        )
    data = {
        **chat_memory.model_dump(),
        **chat_memory.memory.location,
        "policy": yaml.safe_load(chat_memory.memory.policy.to_yaml()),
        "insert_method": chat_memory.insert_method.value,
        "remember": {name: _to_plain(getattr(rules, name)) for name in _WRITTEN},
    }
    try:
        result: dict[str, Any] = json.loads(json.dumps(data, allow_nan=False))
    except (TypeError, ValueError) as cause:
        raise ConfigurationError(
            f"search must be JSON-serializable, got {chat_memory.search!r:.120}: {cause}"
        ) from cause
    return result


def _to_plain(value: object) -> object:
    return {**value} if isinstance(value, Mapping) else value


def memory_from_dict(data: Mapping[str, Any], names: Container[str]) -> dict[str, Any]:
    """Return the arguments of `MeVeMemory` for data of `memory_to_dict`; a `memory` in the data replaces where it is.

    Args:
        data: from `memory_to_dict`.
        names: of all arguments.

    Raises:
        ConfigurationError: the data isn't from `memory_to_dict`.
        StorageError: the file or database can't be opened.
    """
    arguments = {name: value for name, value in data.items() if name != "class_name"}
    location = {name: arguments.pop(name) for name in _PLACE if name in arguments}
    policy = arguments.pop("policy", None)
    if arguments.get("memory") is None:
        if "file" not in location:
            raise ConfigurationError(
                f"the data must name a file, got only {sorted(data)}: give what to_dict() returned, or memory=…"
            )
        opened = _OPEN_MEMORIES.get(tuple(map(location.get, _PLACE)))
        if opened is None or opened.closed:
            opened = GovernedMemory.open(**location, policy=None if policy is None else Policy.from_dict(policy))
        arguments["memory"] = opened
    if unknown := sorted(name for name in arguments if name not in names):
        raise ConfigurationError(
            f"the data holds unknown names {', '.join(unknown)}: give what to_dict() of this version returned"
        )
    if isinstance(arguments.get("remember"), Mapping):
        arguments["remember"] = TurnRules(**arguments["remember"])
    return arguments
