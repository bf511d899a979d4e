"""Serialize a chat memory as a reference to its file and session, without content."""

import json
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import yaml

from meve.errors import ConfigurationError
from meve.memory import GovernedMemory, Policy
from meve.memory._wrapper_support import check_memory
from meve.memory._write.extraction import RuleExtractor
from meve.memory.turns import TurnRules

_OPEN_MEMORIES: WeakValueDictionary[Path, GovernedMemory] = WeakValueDictionary()
"""This process's memories by file, while they are referenced."""


def register_memory(memory: GovernedMemory) -> None:
    """Use this memory for references to its file while it is open.

    Raises:
        ConfigurationError: the value is no GovernedMemory.
    """
    if (file := check_memory(memory).file) is not None:
        _OPEN_MEMORIES[file] = memory


def memory_to_dict(chat_memory: Any) -> dict[str, Any]:
    """Return a `MeVeMemory` as JSON-ready data.

    Raises:
        ConfigurationError: JSON can't represent an option.
    """
    rules: TurnRules = chat_memory.remember
    if not isinstance(rules.extractor, RuleExtractor) or rules.background is not None:
        raise ConfigurationError("remember can't be serialized: its extractor isn't the one by rules")
    if chat_memory.memory.file is None:
        raise ConfigurationError("a memory without a file can't be serialized: open it with GovernedMemory.open(file)")
    data = {
        **chat_memory.model_dump(),
        "file": str(chat_memory.memory.file),
        "policy": yaml.safe_load(chat_memory.memory.policy.to_yaml()),
        "insert_method": chat_memory.insert_method.value,
        "remember": {"sources": {**rules.sources}, "classes": {**rules.classes}, "max_facts": rules.max_facts},
    }
    try:
        result: dict[str, Any] = json.loads(json.dumps(data, allow_nan=False))
    except (TypeError, ValueError) as cause:
        raise ConfigurationError(
            f"search must be JSON-serializable, got {chat_memory.search!r:.120}: {cause}"
        ) from cause
    return result


def memory_from_dict(data: Mapping[str, Any], names: Container[str]) -> dict[str, Any]:
    """Return the arguments of `MeVeMemory` for data of `memory_to_dict`; a `memory` in the data replaces the file.

    Args:
        data: from `memory_to_dict`.
        names: of all arguments.

    Raises:
        ConfigurationError: the data isn't from `memory_to_dict`.
        StorageError: the file can't be opened.
    """
    arguments = {name: value for name, value in data.items() if name != "class_name"}
    file, policy = arguments.pop("file", None), arguments.pop("policy", None)
    if arguments.get("memory") is None:
        if file is None:
            raise ConfigurationError(
                f"the data must name a file, got only {sorted(data)}: give what to_dict() returned, or memory=…"
            )
        opened = _OPEN_MEMORIES.get(Path(file))
        if opened is None or opened.closed:
            opened = GovernedMemory.open(Path(file), policy=None if policy is None else Policy.from_dict(policy))
        arguments["memory"] = opened
    if unknown := sorted(name for name in arguments if name not in names):
        raise ConfigurationError(
            f"the data holds unknown names {', '.join(unknown)}: give what to_dict() of this version returned"
        )
    if isinstance(arguments.get("remember"), Mapping):
        arguments["remember"] = TurnRules(**arguments["remember"])
    return arguments
