"""Convert messages of frameworks and plain records to turns with a place in a conversation."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

from meve.conversation.graph import PlacedTurn
from meve.conversation.turn import Turn, parse_turn
from meve.errors import ValidationError

_PARENT_KEYS = ("parents", "parent", "parent_id")
_TIME_KEYS = ("time", "timestamp", "created_at", "create_time")
_CALL_KEYS = frozenset({"tool_calls", "function_call", "arguments"})
"""The keys of a message that calls a tool and may hold no text."""
_TEXTLESS_TYPE = re.compile(r"reasoning|\w+_call")
"""The types of items of OpenAI's Responses interface that may hold no text."""
_SPEAKERS = {"human": "user", "ai": "assistant"}


def place_messages(messages: object, before: str | None = None, count: int = 0) -> list[PlacedTurn]:
    """Return turns from messages; one that names no parent replies to the message before it.

    Args:
        messages: in the formats of `Conversation.from_messages`.
        before: the id of the turn before the first message; None if there is none.
        count: the number of turns before, from which turns without an id are counted.

    Raises:
        ValidationError: no list, or a message in an unknown format; the error gives its position.
    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):
        raise ValidationError(f"messages must be a list of messages, got {messages!r:.80}")
    turns: list[PlacedTurn] = []
    for n, message in enumerate(messages, count):
        turns.append(_place_message(message, n, turns[-1].id if turns else before))
    return turns


def read_text(content: object, n: int) -> str:
    """Return the text of a message's content: a text, or a list of blocks, of which those without text count nothing.

    Raises:
        ValidationError: another type.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Iterable) and not isinstance(content, bytes | Mapping):
        texts = [_block_text(block) for block in content]
        return "\n".join(text for text in texts if text)
    raise ValidationError(f"the content of turn {n} is {content!r:.80}: give text or a list of blocks")


def read_time(value: object, n: int) -> datetime | date | str | None:
    """Return a time given as a date, a text or seconds since 1970.

    Raises:
        ValidationError: another type, or seconds out of range.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value, tz=UTC)
        except (ValueError, OverflowError, OSError) as cause:
            raise ValidationError(f"the time of turn {n} is {value!r:.80}: give seconds since 1970") from cause
    if value is None or isinstance(value, date | str):
        return value
    raise ValidationError(f"the time of turn {n} is {value!r:.80}: give a datetime, a date, text, seconds or None")


def _block_text(block: object, *, is_result: bool = False) -> str:
    if isinstance(block, str):
        return block
    if isinstance(block, Mapping) and block.get("type") == "tool_result" and not is_result:
        inside = block.get("content")
        parts = inside if isinstance(inside, list | tuple) else [inside]
        return "\n".join(filter(None, (_block_text(part, is_result=True) for part in parts)))
    text = block.get("text") if isinstance(block, Mapping) else getattr(block, "text", None)
    kind = block.get("type", "text") if isinstance(block, Mapping) else "text"
    return text if isinstance(text, str) and kind in ("text", "input_text", "output_text") else ""


def _place_message(message: Any, n: int, before: str | None) -> PlacedTurn:  # noqa: ANN401 - any framework's message
    if isinstance(message, PlacedTurn):
        parse_turn(message, n)
        return replace(message, parents=_read_parents({"parents": message.parents}, n, before))
    if isinstance(message, Mapping):
        record: Mapping[str, Any] = message
    elif hasattr(message, "additional_kwargs"):
        record = _read_framework_message(message)
    else:
        turn = parse_turn(message, n)
        return _place_turn(turn, n, (before,) if before else ())
    turn = parse_turn(
        {
            "text": _read_record_text(record, n),
            "speaker": record.get("speaker", record.get("role")),
            "time": read_time(next((record[key] for key in _TIME_KEYS if key in record), None), n),
        },
        n,
    )
    turn = replace(turn, id=_read_id(record.get("id"), n))
    return _place_turn(turn, n, _read_parents(record, n, before), record.get("phase"))


def _read_record_text(record: Mapping[str, Any], n: int) -> object:
    """Return the text of a record; empty for one that only calls a tool or reasons."""
    if record.get("text") is not None:
        return record["text"]
    key = next((key for key in ("content", "output") if key in record), None)
    if key is None and not _CALL_KEYS & record.keys() and not _TEXTLESS_TYPE.fullmatch(str(record.get("type"))):
        keys = ", ".join(map(str, record))
        raise ValidationError(f"turn {n} has neither text nor content, only the keys {keys}: give one of the two")
    return "" if key is None else read_text(record[key], n)


def _read_framework_message(message: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the fields of a message of LangChain or LlamaIndex."""
    extra = message.additional_kwargs if isinstance(message.additional_kwargs, Mapping) else {}
    role = getattr(message, "role", None)
    role = str(getattr(role, "value", role) or getattr(message, "type", ""))
    record = {key: extra[key] for key in (*_PARENT_KEYS, *_TIME_KEYS, "id", "phase") if key in extra}
    record["text"] = read_text(getattr(message, "blocks", None) or message.content, 0)
    record["speaker"] = getattr(message, "name", None) or _SPEAKERS.get(role, role)
    if getattr(message, "id", None):
        record["id"] = message.id
    return record


def _read_id(value: object, n: int) -> str:
    if value is None or value == "":
        return f"turn-{n}"
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise ValidationError(f"the id of turn {n} is {value!r:.80}: give text or a whole number")
    return value


def _read_parents(record: Mapping[str, Any], n: int, before: str | None) -> tuple[str, ...]:
    key = next((key for key in _PARENT_KEYS if key in record), None)
    if key is None:
        return (before,) if before else ()
    value = record[key]
    if value is None or value == "":
        return ()
    values = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(each, bool) or not isinstance(each, str | int) or each == "" for each in values):
        raise ValidationError(f"the {key} of turn {n} is {value!r:.80}: give the id of a turn, several ids, or None")
    return tuple(dict.fromkeys(map(str, values)))


def _place_turn(turn: Turn, n: int, parents: tuple[str, ...], phase: object = None) -> PlacedTurn:
    if phase is not None and not isinstance(phase, str):
        raise ValidationError(f"the phase of turn {n} is {phase!r:.80}: give text or None")
    return PlacedTurn(
        text=turn.text, speaker=turn.speaker, time=turn.time, id=turn.id or f"turn-{n}", parents=parents,
        phase=phase or "",
    )  # fmt: skip
