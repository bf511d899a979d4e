"""Real turns of chats, no two of them equal, in the order of the sets and their files; none is left out for its text.

Assistants' long answers are among them, and short messages of a chat room.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from meve.evaluation.datasets._row_reader import Row, read_rows


def read_distinct_turns(data: Path) -> Iterator[str]:
    """Yield each turn once, after its speaker.

    Args:
        data: the folder with the folders of the sets.

    Raises:
        DatasetError: a set is absent, truncated or of another format.
    """
    seen: set[str] = set()
    for file, turns_of in _SETS.items():
        for row in read_rows(data / file):
            for turn in turns_of(row):
                if turn not in seen:
                    seen.add(turn)
                    yield turn


def find_missing(data: Path) -> list[str]:
    """Return the files of the sets that a folder lacks."""
    return [file for file in _SETS if not (data / file).is_file()]


def read_locomo(conversation: Row) -> Iterator[str]:
    """Yield the turns of a conversation of LoCoMo."""
    for session in conversation.rows("sessions"):
        yield from _spoken(session, "turns", "speaker", "text")


def _read_longmemeval(conversation: Row) -> Iterator[str]:
    for session in conversation.rows("sessions"):
        yield from _spoken(session, "turns", "role", "content")


def _read_memorybank(user: Row) -> Iterator[str]:
    for day in user.rows("days"):
        for turn in day.rows("turns"):
            yield from (f"{name}: {turn.text(name, blank=True)}" for name in ("user", "assistant"))


def _read_irc(message: Row) -> Iterator[str]:
    if not message.flag("system"):  # notices such as "joined" are no turns
        yield f"{message.text('speaker')}: {message.text('text', blank=True)}"


def _spoken(row: Row, turns: str, speaker: str, text: str) -> Iterator[str]:
    return (f"{turn.text(speaker)}: {turn.text(text, blank=True)}" for turn in row.rows(turns))


_SETS: Mapping[str, Callable[[Row], Iterator[str]]] = {
    "locomo/conversations.jsonl": read_locomo,
    "longmemeval/conversations.jsonl.gz": _read_longmemeval,
    "memorybank/users.jsonl": _read_memorybank,
    "oasst/trees.jsonl": lambda tree: _spoken(tree, "messages", "role", "text"),
    "mtrag_un/tasks.jsonl.gz": lambda task: _spoken(task, "history", "role", "text"),
    "irc/messages.jsonl.gz": _read_irc,
}
"""By file, how its turns are read."""
