"""Read conversations that chat applications export as JSON."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meve._json_limits import parse_json
from meve.conversation._records import place_messages, read_text, read_time
from meve.conversation.graph import PlacedTurn, to_seconds
from meve.errors import UnknownIdError, ValidationError

_NO_PARENT = "00000000-0000-4000-8000-000000000000"
"""The parent that Claude's exports give to the first message."""

_MESSAGE_KEYS = ("mapping", "chat_messages")
"""The keys of a conversation's messages, as ChatGPT and Claude name them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedConversation:
    """A conversation of an export."""

    turns: list[PlacedTurn]
    latest: str | None
    """The id of the turn that the application showed last; None if the export doesn't tell."""


def read_export(path: Path, conversation: str | None = None) -> ExportedConversation:
    """Read one conversation of an export.

    Args:
        path: a JSON file: a mapping of nodes as ChatGPT exports it, `chat_messages` as Claude exports them, a list of
            either, or a list of plain records.
        conversation: id or title of the conversation, if the file has several.

    Raises:
        ValidationError: the file can't be read, or has another format.
        UnknownIdError: no conversation of that name, or several without a name given.
    """
    try:
        data = parse_json(path.read_bytes())
    except OSError as cause:
        raise ValidationError(f"the export {str(path)!r} can't be read: {cause.strerror or cause}") from cause
    except ValueError as cause:
        raise ValidationError(f"the export {str(path)!r} is no JSON that can be read: {cause}") from cause
    items = data if isinstance(data, list) else [data]
    if not any(map(_is_conversation, items)):
        return _read_records(data, path, conversation)
    chosen = _choose(items, conversation, path)
    try:
        return _read_messages(chosen) if chosen.get("mapping") is None else _read_nodes(chosen)
    except (KeyError, TypeError, AttributeError) as cause:
        raise ValidationError(
            f"the export {str(path)!r} has a conversation of another format: {type(cause).__name__}: {cause}"
        ) from cause


def _is_conversation(data: object) -> bool:
    return (
        isinstance(data, dict)
        and not data.keys().isdisjoint(_MESSAGE_KEYS)
        and isinstance(data.get("mapping"), dict | None)
        and isinstance(data.get("chat_messages"), list | None)
    )


def _is_empty(data: object) -> bool:
    """Return whether this is a conversation without even the key of its messages."""
    return isinstance(data, dict) and data.keys().isdisjoint((*_MESSAGE_KEYS, "text", "content"))


def _read_records(data: object, path: Path, conversation: str | None) -> ExportedConversation:
    if not isinstance(data, list) or not data:
        keys = f"the keys {', '.join(map(repr, list(data)[:8]))}" if isinstance(data, dict) else type(data).__name__
        raise ValidationError(
            f"the export {str(path)!r} holds {keys}: it must hold conversations with 'mapping' or 'chat_messages', or "
            "a list of records"
        )
    if conversation is not None:
        raise UnknownIdError(f"the export {str(path)!r} is a list of records: leave conversation out")
    return ExportedConversation(turns=place_messages(data), latest=None)


def _names(data: Mapping[str, Any]) -> list[str]:
    keys = ("conversation_id", "id", "uuid", "title", "name")
    return [data[key] for key in keys if isinstance(data.get(key), str) and data[key]]


def _choose(found: Sequence[Mapping[str, Any]], name: str | None, path: Path) -> Mapping[str, Any]:
    for n, each in enumerate(found):
        if not _is_conversation(each) and not _is_empty(each):
            raise ValidationError(f"item {n} of the export {str(path)!r} is no conversation: {each!r:.80}")
    chosen = [each for each in found if name is None or name in _names(each)]
    if len(chosen) == 1:
        return chosen[0]
    known = ", ".join(repr((_names(each) or ["?"])[0])[:60] for each in found[:5])
    problem = "has none" if not chosen else f"has {len(chosen)}"
    wanted = "conversation" if name is None else f"conversation {name!r:.60}"
    raise UnknownIdError(
        f"{wanted}: the export {str(path)!r} {problem}; give the id of one of its {len(found)}, such as {known}"
    )


def _read_nodes(data: Mapping[str, Any]) -> ExportedConversation:
    """Read a mapping of nodes. Nodes without a message are left out: their children move up to their parent."""
    nodes: Mapping[str, Any] = data["mapping"]
    turns = []
    for n, (name, node) in enumerate(nodes.items()):
        message = node.get("message")
        if message is None:
            continue
        content = message.get("content") or {}
        parts = content.get("parts") if isinstance(content, Mapping) else content
        text = content.get("text") if isinstance(content, Mapping) and parts is None else None
        parent = _skip_empty(nodes, node.get("parent"))
        turns.append(
            {
                "id": name,
                "text": read_text(parts, n) if text is None else text,
                "speaker": (message.get("author") or {}).get("role", ""),
                "time": read_time(message.get("create_time"), n),
                "parent": parent,
            }
        )
    latest = _skip_empty(nodes, data.get("current_node"))
    return ExportedConversation(turns=place_messages(_in_time(turns)), latest=latest)


def _skip_empty(nodes: Mapping[str, Any], name: str | None) -> str | None:
    """Return the nearest node with a message, from this one upwards; None if there is none."""
    seen: set[str] = set()
    while name is not None and name in nodes and nodes[name].get("message") is None:
        if name in seen:
            raise ValidationError(f"turns must not reply to each other in a circle: node {name!r:.80}")
        seen.add(name)
        name = nodes[name].get("parent")
    return name


def _read_messages(data: Mapping[str, Any]) -> ExportedConversation:
    turns = list(_claude_records(data.get("chat_messages") or []))
    known = {turn["id"] for turn in turns}
    latest = data.get("current_leaf_message_uuid")
    return ExportedConversation(turns=place_messages(turns), latest=latest if latest in known else None)


def _claude_records(messages: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for n, message in enumerate(messages):
        own = read_text(message.get("content"), n) or message.get("text") or ""  # which also holds notes on tools
        record: dict[str, Any] = {
            "id": message["uuid"],
            "text": "\n".join(filter(None, [own, *_attached_texts(message, n)])),
            "speaker": {"human": "user"}.get(message.get("sender", ""), message.get("sender", "")),
            "time": message.get("created_at"),
        }
        if "parent_message_uuid" in message:  # older exports have no branches
            parent = message["parent_message_uuid"]
            record["parent"] = None if parent == _NO_PARENT else parent
        yield record


def _attached_texts(message: Mapping[str, Any], n: int) -> Iterator[str]:
    """Yield the name and the text of each attachment with text, such as a long paste."""
    for each in message.get("attachments") or []:
        text = read_text(each.get("extracted_content"), n)
        if text:
            yield from (each.get("file_name") or "", text)


def _in_time(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return turns by their times; one without a time comes with the nearest turn above it that has one."""
    by_id = {turn["id"]: turn for turn in turns}
    times: dict[str, float] = {}
    for turn in turns:
        path: list[str] = []
        at: str | None = turn["id"]
        while (
            at is not None and at in by_id and at not in times and len(path) <= len(turns)
        ):  # a circle is refused later
            path.append(at)
            known = to_seconds(by_id[at]["time"])
            if known is not None:
                times[at] = known
            at = by_id[at]["parent"]
        for name in reversed(path):
            times.setdefault(name, times.get(by_id[name]["parent"], -math.inf))
    return sorted(turns, key=lambda turn: times[turn["id"]])
