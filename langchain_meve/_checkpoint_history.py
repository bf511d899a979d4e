"""Build the graph of a thread's messages from its checkpoints: each fork in time is a branch."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, TypeAlias

from langchain_core.messages import BaseMessage, ChatMessage

from langchain_meve._messages import message_id, message_role
from meve.conversation import PlacedTurn
from meve.errors import ConfigurationError

_Key: TypeAlias = tuple[str, int, str]
"""A message's id, how often the id came before in the list, and its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointState:
    """The messages of one checkpoint, as turns."""

    nodes: Mapping[_Key, str] = field(default_factory=dict)
    """The turn of each message that the checkpoint holds."""
    latest: str | None = None
    """The turn of the last message, or of the last one before if the checkpoint holds none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadHistory:
    """All messages of a thread."""

    turns: Sequence[PlacedTurn]
    states: Mapping[str, CheckpointState]
    """By checkpoint id."""


def read_history(checkpoints: Iterable[Any], key: str) -> ThreadHistory:
    """Return the messages of checkpoints as a graph.

    A message follows the one before it. A message that replaces another one of the same id begins a branch, to which
    the messages after it move. Messages that a later checkpoint removes keep their place in the graph.

    Args:
        checkpoints: LangGraph's `CheckpointTuple`s, parents before their children.
        key: the state's key that holds the messages.

    Raises:
        ConfigurationError: a checkpoint that doesn't hold a list of messages itself.
    """
    turns: list[PlacedTurn] = []
    made: dict[tuple[str | None, _Key], str] = {}
    parents: dict[str, str | None] = {}
    states: dict[str, CheckpointState] = {}
    for each in checkpoints:
        before = states.get(_checkpoint_id(each.parent_config), CheckpointState())
        by_id = {(name, count): node for (name, count, _), node in before.nodes.items()}
        nodes: dict[_Key, str] = {}
        counts: dict[str, int] = {}
        previous: str | None = None
        diverged = False
        for message in _messages(each, key):
            name = message_id(message)
            place = name, counts.get(name, 0)
            counts[name] = place[1] + 1
            known = *place, str(message.text)
            node = None if diverged else before.nodes.get(known)
            if node is None:
                diverged = True
                replaced = by_id.get(place)
                parent = previous or (parents[replaced] if replaced else before.latest)
                node = made.get((parent, known))
                if node is None:
                    node = made[parent, known] = name if name not in parents else f"{name}~{len(turns)}"
                    parents[node] = parent
                    up, phase = (parent,) if parent else (), str(message.additional_kwargs.get("phase") or "")
                    turns.append(
                        PlacedTurn(id=node, text=known[2], speaker=message_role(message), parents=up, phase=phase)
                    )
            nodes[known] = previous = node
        states[_checkpoint_id(each.config)] = CheckpointState(nodes=nodes, latest=previous or before.latest)
    return ThreadHistory(turns=turns, states=states)


def check_key(checkpoints: Sequence[Any], key: str, thread: object) -> None:
    """Raise an error if checkpoints hold state, but none has the key.

    Raises:
        ConfigurationError: the key is missing; the message names the keys that there are.
    """
    known = {name for each in checkpoints for name in each.checkpoint.get("channel_values", {})}
    known -= {name for name in known if name.startswith(("__start__", "branch:"))}  # LangGraph's own
    if known and key not in known:
        raise ConfigurationError(
            f"no checkpoint of the thread {thread!r:.80} has {key!r:.80}: set messages_key to the key of the messages, "
            f"one of {', '.join(map(repr, sorted(known))):.400}"
        )


def _checkpoint_id(config: Any) -> str:
    return str(config["configurable"]["checkpoint_id"]) if config else ""


def _messages(checkpoint: Any, key: str) -> list[BaseMessage]:
    state = checkpoint.checkpoint
    held = state.get("channel_values", {}).get(key, [])
    is_missing = key in state.get("channel_versions", {}) and key not in state.get("channel_values", {})
    if is_missing or type(held) not in (list, tuple, NoneType):
        raise ConfigurationError(
            f"a checkpoint doesn't hold {key!r:.80} itself: messages_key must name a list of messages that is kept "
            "with a reducer such as add_messages, not with DeltaChannel"
        )
    return [message for message in map(_to_message, held or []) if message is not None]


def _to_message(value: Any) -> BaseMessage | None:
    """Return a message, or the one that a mapping with role and content stands for; None for anything else."""
    if isinstance(value, Mapping) and {"role", "content"} <= value.keys():
        return ChatMessage(role=str(value["role"]), content=value["content"] or "", id=value.get("id"))
    return value if isinstance(value, BaseMessage) else None
