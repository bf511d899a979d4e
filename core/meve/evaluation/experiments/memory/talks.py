"""The conversations of the memory-recall experiment, of several kinds: short turns with dates, and long turns.

- `locomo`: short turns of two friends.
- `longmemeval`: what users told an assistant, among long answers of other sessions.
- `longmemeval-long`: the same; each evidence turn is a paragraph of one of the long answers.
- `mtrag`: conversations of mtRAG-UN, in which the assistant quotes the pages that answer, a turn each.
- `mtrag-long`: the same; three pages of any topics make one turn.
- `own`: conversations written for MeVe, with code, lists and several paragraphs. Questions use other words than turns.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import TypeAlias

from meve.errors import EvaluationError
from meve.evaluation.datasets._assembly import packaged_file
from meve.evaluation.datasets._row_reader import Row, index_rows, read_rows
from meve.evaluation.experiments._experiment import SEED
from meve.memory.policy import RecordSource

USERS, USERS_PER_DOMAIN = 4, 2
"""LongMemEval's sessions are dealt to so many users, and those of each domain of mtRAG-UN to so many."""
LONG, TOGETHER = 1_000, 3
"""Least characters of a long answer; pages of mtRAG-UN that make one turn."""
_BEGIN = datetime(2026, 1, 5, 9, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationTurn:
    """A turn of a conversation, as the systems read it."""

    id: str
    session: str
    text: str
    at: datetime
    source: RecordSource = "chat_user"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceQuestion:
    """A question with the ids of the turns that answer it."""

    user: str
    text: str
    evidence: frozenset[str]
    category: int = 0
    """LoCoMo's category; 0 for other kinds."""


Turns: TypeAlias = Mapping[str, Sequence[ConversationTurn]]
"""The turns of each user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """Conversations of one kind, with questions about them."""

    turns: Turns
    questions: Sequence[EvidenceQuestion]

    def half(self, remainder: int) -> "Talk":
        """Return every other user's turns and questions: of those at even places for 0, at odd ones for 1."""
        users = list(self.turns)[remainder::2]
        return Talk(
            turns={user: self.turns[user] for user in users},
            questions=[question for question in self.questions if question.user in users],
        )


def read_locomo(data: Path) -> Talk:
    """Return LoCoMo's conversations, and the questions of categories 1 to 4 whose evidence is known.

    Raises:
        DatasetError: the set is absent, truncated or of another format.
        EvaluationError: no question has known evidence.
    """
    rows = index_rows(read_rows(data / "locomo" / "conversations.jsonl"), "conversation_id")
    turns = {user: list(_locomo_turns(row)) for user, row in rows.items()}
    file = data / "locomo" / "questions.jsonl"
    questions = [
        EvidenceQuestion(
            user=row.text("conversation_id"),
            text=row.text("question"),
            category=row.number("category", 1),
            evidence=frozenset(row.texts("evidence")),
        )
        for row in read_rows(file)
        if row.number("category", 1) <= 4 and row.texts("evidence") and not row.values.get("evidence_unresolved")
    ]
    if not questions:
        raise EvaluationError(f"{file} has no question with known evidence")
    return Talk(turns=turns, questions=questions)


def read_told(data: Path, *, within_long: bool = False) -> Talk:
    """Return LongMemEval's evidence turns, dealt to a few users and mixed with its other sessions.

    Each turn is a session of its own, since the answers to the evidence turns are unknown.

    Args:
        data: the folder with the folder `longmemeval`.
        within_long: whether each evidence turn becomes a paragraph of a long turn, which it replaces.

    Raises:
        DatasetError: the set is absent, truncated or of another format.
    """
    folder = data / "longmemeval"
    questions = [row for row in read_rows(folder / "questions.jsonl") if row.texts("evidence_turn_ids")]
    users = {owner: f"told-{n % USERS}" for n, owner in enumerate(dict.fromkeys(q.text("user_id") for q in questions))}
    evidence: dict[str, list[ConversationTurn]] = {f"told-{n}": [] for n in range(USERS)}
    others: dict[str, list[ConversationTurn]] = {user: [] for user in evidence}
    for turn, session in _other_turns(folder):
        others[f"told-{session % USERS}"].append(turn)
    same: dict[tuple[str, str], str] = {}
    ids: dict[str, str] = {}
    for row in read_rows(folder / "evidence_turns.jsonl"):
        if (owner := row.text("user_id")) in users:
            id, text, at = row.text("id"), row.text("content"), parse_moment(row.text("session_date"))
            ids[id] = same.setdefault((users[owner], text), id)
            if ids[id] == id:  # several owners may have told the same
                turn = ConversationTurn(id=id, session=id, text=text, at=at, source=_source(row))
                evidence[users[owner]].append(turn)
    turns = {user: _mixed(evidence[user], others[user], within_long=within_long) for user in evidence}
    return Talk(
        turns={user: sorted(own, key=lambda turn: turn.at) for user, own in turns.items()},
        questions=[
            EvidenceQuestion(
                user=users[row.text("user_id")],
                text=row.text("question"),
                evidence=frozenset(ids[id] for id in row.texts("evidence_turn_ids")),
            )
            for row in questions
        ],
    )


def _mixed(
    evidence: list[ConversationTurn], others: list[ConversationTurn], *, within_long: bool
) -> list[ConversationTurn]:
    if not within_long:
        return evidence + others
    carriers = [turn for turn in others if len(turn.text) >= LONG]
    grown = []
    for n, turn in enumerate(evidence):
        paragraphs = carriers[n % len(carriers)].text.split("\n\n")
        paragraphs.insert(n % (len(paragraphs) + 1), turn.text)
        grown.append(replace(turn, text="\n\n".join(paragraphs)))
    return grown + [turn for turn in others if turn not in carriers]


def read_mtrag(data: Path, *, together: int = 1) -> Talk:
    """Return mtRAG-UN's conversations; after each, the assistant quotes its gold pages.

    Args:
        data: the folder with the folder `mtrag_un`.
        together: how many pages of a user make one turn.

    Raises:
        DatasetError: the set is absent, truncated or of another format.
    """
    pages: dict[str, dict[str, ConversationTurn]] = {}
    turns: dict[str, list[ConversationTurn]] = {}
    questions = []
    for number, row in enumerate(read_rows(data / "mtrag_un" / "tasks.jsonl.gz")):
        gold = {page.text("id"): page.text("text") for page in row.rows("gold_passages")}
        if not gold:
            continue
        domain = row.text("domain")
        user, at = f"{domain}-{number % USERS_PER_DOMAIN}", _BEGIN + timedelta(hours=number)
        turns.setdefault(user, []).extend(
            ConversationTurn(id=f"{number}-{n}", session=str(number), text=turn.text("text"), at=at)
            for n, turn in enumerate(row.rows("history"))
        )
        for id, text in gold.items():  # a page of several conversations is stored once
            turn = ConversationTurn(id=id, session=str(number), text=text, at=at)
            pages.setdefault(user, {}).setdefault(id, turn)
        questions.append(EvidenceQuestion(user=user, text=row.text("question"), evidence=frozenset(gold)))
    quoting = {user: _joined(own, together) for user, own in pages.items()}
    return Talk(
        turns={
            user: sorted([*own, *quoting[user][0]], key=lambda turn: (turn.at, "-" not in turn.id))
            for user, own in sorted(turns.items())
        },
        questions=[
            EvidenceQuestion(user=q.user, text=q.text, evidence=frozenset(quoting[q.user][1][id] for id in q.evidence))
            for q in questions
        ],
    )


def _joined(pages: Mapping[str, ConversationTurn], together: int) -> tuple[list[ConversationTurn], dict[str, str]]:
    """Return turns of a few pages each, and in which turn each page stands."""
    order = list(pages.values())
    if together > 1:
        Random(SEED).shuffle(order)
    turns: list[ConversationTurn] = []
    homes: dict[str, str] = {}
    for n in range(0, len(order), together):
        first, *_ = group = order[n : n + together]
        turns.append(replace(first, text="\n\n".join(page.text for page in group)))
        homes |= {page.id: first.id for page in group}
    return turns, homes


def read_own(data: Path | None = None) -> Talk:  # noqa: ARG001 - the set is in the package
    """Return the conversations that were written for MeVe.

    Raises:
        DatasetError: a file of the package is damaged.
    """
    turns: dict[str, list[ConversationTurn]] = {}
    with packaged_file("memory_talks.jsonl", None) as file:
        for row in read_rows(file):
            turn = ConversationTurn(
                id=row.text("id"),
                session=row.text("session"),
                text=row.text("text"),
                at=datetime.fromisoformat(row.text("at")),
            )
            turns.setdefault(row.text("user"), []).append(turn)
    with packaged_file("memory_talk_questions.jsonl", None) as file:
        questions = [
            EvidenceQuestion(
                user=row.text("user"), text=row.text("question"), evidence=frozenset(row.texts("evidence"))
            )
            for row in read_rows(file)
        ]
    return Talk(turns=turns, questions=questions)


KINDS: Mapping[str, Callable[[Path], Talk]] = {
    "locomo": read_locomo,
    "longmemeval": read_told,
    "longmemeval-long": partial(read_told, within_long=True),
    "mtrag": read_mtrag,
    "mtrag-long": partial(read_mtrag, together=TOGETHER),
    "own": read_own,
}
"""The kinds of conversations, and the functions that read them from the folder with all sets."""


def _other_turns(folder: Path) -> Iterator[tuple[ConversationTurn, int]]:
    """Yield the turns of LongMemEval's sessions that hold no evidence of its questions, with the session's number."""
    seen: set[str] = set()
    for row in read_rows(folder / "conversations.jsonl.gz"):
        for session in row.rows("sessions"):
            name, at = session.text("session_id"), parse_moment(session.text("date"))
            if name in seen or name.startswith("answer_"):
                continue
            for n, turn in enumerate(session.rows("turns")):
                if text := turn.text("content", blank=True).strip():
                    id = f"{name}-{n}"
                    yield ConversationTurn(id=id, session=id, text=text, at=at, source=_source(turn)), len(seen)
            seen.add(name)


def _source(turn: Row) -> RecordSource:
    return "chat_assistant" if turn.values.get("role") == "assistant" else "chat_user"


def parse_moment(date: str) -> datetime:
    """Return the moment of LongMemEval's notation, such as `2023/05/20 (Sat) 11:17`."""
    return datetime.strptime(re.sub(r" \(\w+\)", "", date), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


def _locomo_turns(conversation: Row) -> Iterator[ConversationTurn]:
    for session in conversation.rows("sessions"):
        at = datetime.fromisoformat(session.text("timestamp")).replace(tzinfo=UTC)
        for turn in session.rows("turns"):
            text = f"{turn.text('speaker')}: {turn.text('text', blank=True)}"
            yield ConversationTurn(
                id=turn.text("dia_id"),
                session=str(session.number("session_id", 0)),
                text=" ".join(filter(None, [text, turn.values.get("image_caption")])),
                at=at,
            )
