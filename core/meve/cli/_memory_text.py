"""An export of a user's data as text for people."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

_SECTIONS = {"records": "Memories", "history": "Replaced memories", "archived": "Archived memories"}


def format_export(data: Mapping[str, Any]) -> str:
    """Return what `GovernedMemory.export` returned as text: the memories by time, and the log."""
    lines = [f"What is stored of {data['user_id']}, {_format_time(data['exported_at'])} UTC"]
    texts = {each["id"]: each["text"] for name in _SECTIONS for each in data[name]}
    for name, title in _SECTIONS.items():
        if data[name]:
            described = (line for each in data[name] for line in _describe(each, texts))
            lines += ["", f"{title} ({len(data[name])})", *described]
    lines += ["", f"Log ({len(data['audit'])})"]
    lines += [f"{_format_time(e['at'])}  {e['action']} {e['record_id']}: {e['reason']}" for e in data["audit"]]
    return "\n".join(lines) + "\n"


def _describe(record: Mapping[str, Any], texts: Mapping[str, str]) -> Iterator[str]:
    first, *others = _text_of(record).splitlines() or [""]
    yield ""
    yield f"{_format_time(record['created_at'])}  {first}"
    yield from (f"{'':18}{line}" for line in others)
    until = "for ever" if record["expires_at"] is None else f"until {_format_time(record['expires_at'])}"
    facts = [record["id"], record["policy_class"], f"from {record['source']}", f"kept {until}"]
    for name, label in (("tags", "tags"), ("session_id", "session"), ("hold", "on hold")):
        if value := record[name]:
            facts.append(f"{label} {', '.join(value) if isinstance(value, list) else value}")
    if newer := record["superseded_by"]:
        facts.append(f'replaced by {newer}: "{texts[newer]}"' if newer in texts else f"replaced by {newer}")
    yield f"{'':18}({'; '.join(facts)})"


def _text_of(record: Mapping[str, Any]) -> str:
    """Return the text of a memory, and all values of a message or an item, whose text for searches may be empty."""
    from meve.memory.items.item import named_texts

    kept = {"message": record["metadata"], "item": record["metadata"].get("value", {})}
    return named_texts(kept[record["kind"]]) if record["kind"] in kept else str(record["text"])


def _format_time(moment: str) -> str:
    return f"{datetime.fromisoformat(moment):%Y-%m-%d %H:%M}"
