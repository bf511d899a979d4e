"""Conversations with known replies: a chat room (irc), dialogues of several people (molweni), answer trees (oasst).

And long talks of two people with questions about them (locomo), whose evidence is known.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from meve.conversation.graph import PlacedTurn
from meve.errors import DatasetError
from meve.evaluation.datasets._row_reader import Row, read_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyTree:
    """A conversation with known replies."""

    id: str
    turns: tuple[PlacedTurn, ...]
    """In order; parents come before their replies."""
    asked: tuple[int, ...]
    """The positions of turns whose parents are known and lie before them."""
    questions: tuple[tuple[str, frozenset[int]], ...] = ()
    """Questions about the whole conversation, each with the positions of its evidence."""


def read_reply_trees(root: Path, name: str) -> list[ReplyTree]:
    """Return the conversations of a set, in the order of the file.

    Args:
        root: the folder with a folder for each set.
        name: one of `SETS`.

    Raises:
        DatasetError: the set is unknown, absent, truncated or of another format.
    """
    if name not in SETS:
        raise DatasetError(f"no set {name!r:.40} of replies: there are {', '.join(SETS)}")
    return [tree for tree in SETS[name](root / name) if tree.asked or tree.questions]


def _read_irc(folder: Path) -> list[ReplyTree]:
    """Read the chat room without notices. Only annotated messages have known parents."""
    files: dict[str, list[Row]] = defaultdict(list)
    for row in read_rows(folder / "messages.jsonl.gz"):
        if not row.flag("system"):
            files[row.text("file")].append(row)
    trees = []
    for name, rows in files.items():
        numbers = [row.number("idx", 0) for row in rows]
        known = set(numbers)
        links = [
            [str(p) for p in row.values.get("parents", ()) if p in known and p < number]
            for row, number in zip(rows, numbers, strict=True)
        ]
        turns = [
            PlacedTurn(
                id=str(number),
                text=row.text("text", blank=True),
                speaker=row.text("speaker", blank=True),
                parents=tuple(up),
            )
            for row, number, up in zip(rows, numbers, links, strict=True)
        ]
        trees.append(_make_tree(name, turns))
    return trees


def _read_molweni(folder: Path) -> list[ReplyTree]:
    trees = []
    for row in read_rows(folder / "dialogues.jsonl"):
        turns = []
        for n, each in enumerate(row.rows("utterances")):
            parent = each.values.get("parent")
            up = (str(parent),) if isinstance(parent, int) and parent < n else ()
            text, speaker = each.text("text", blank=True), each.text("speaker", blank=True)
            turns.append(PlacedTurn(id=str(n), text=text, speaker=speaker, parents=up))
        trees.append(_make_tree(row.text("id"), turns))
    return trees


def _read_oasst(folder: Path) -> list[ReplyTree]:
    """Read the trees level by level: every message of a level was written before those of the next."""
    trees = []
    for row in read_rows(folder / "trees.jsonl"):
        messages = sorted(row.rows("messages"), key=lambda each: each.number("depth", 0))
        known = {each.text("message_id") for each in messages}
        turns = []
        for each in messages:
            parent = each.values.get("parent_id")
            up = (parent,) if isinstance(parent, str) and parent in known else ()
            text, speaker = each.text("text", blank=True), each.text("role")
            turns.append(PlacedTurn(id=each.text("message_id"), text=text, speaker=speaker, parents=up))
        trees.append(_make_tree(row.text("tree_id"), turns))
    return trees


def _read_locomo(folder: Path) -> list[ReplyTree]:
    """Read talks as lines. Questions without an answer, and those with evidence that is no turn, are left out."""
    questions: dict[str, list[Row]] = defaultdict(list)
    for row in read_rows(folder / "questions.jsonl"):
        if row.text("category_name") != "adversarial":
            questions[row.text("conversation_id")].append(row)
    trees = []
    for row in read_rows(folder / "conversations.jsonl"):
        turns: list[PlacedTurn] = []
        for session in row.rows("sessions"):
            for each in session.rows("turns"):
                up = (turns[-1].id,) if turns else ()
                text, speaker = each.text("text", blank=True), each.text("speaker")
                time = session.text("timestamp")
                turns.append(PlacedTurn(id=each.text("dia_id"), text=text, speaker=speaker, time=time, parents=up))
        at = {turn.id: n for n, turn in enumerate(turns)}
        asked = [(each.text("question"), each.texts("evidence")) for each in questions[row.text("conversation_id")]]
        known = [(text, frozenset(at[i] for i in ids)) for text, ids in asked if ids and all(i in at for i in ids)]
        trees.append(ReplyTree(id=row.text("conversation_id"), turns=tuple(turns), asked=(), questions=tuple(known)))
    return trees


SETS: Mapping[str, Callable[[Path], list[ReplyTree]]] = {
    "irc": _read_irc,
    "molweni": _read_molweni,
    "oasst": _read_oasst,
    "locomo": _read_locomo,
}
"""The reader of each set."""


def _make_tree(name: str, turns: list[PlacedTurn]) -> ReplyTree:
    return ReplyTree(id=name, turns=tuple(turns), asked=tuple(n for n, turn in enumerate(turns) if turn.parents))
