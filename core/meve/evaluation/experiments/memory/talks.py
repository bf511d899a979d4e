"""The conversations of the memory-recall experiment, of several kinds: short turns with dates, and long turns.

`locomo` has short turns of two friends. The others have long turns, with code, lists or several paragraphs:

- `longmemeval`: what users told an assistant, among the long answers of other sessions. A question's evidence is what
  the user told.
- `long answers`: an assistant's answers of 1,000 characters or more from LongMemEval, each the evidence of the user's
  request before it, which isn't stored.
- `mtrag`: conversations of mtRAG-UN, in which the assistant quotes the pages that answer. The pages are the evidence.
- `own`: conversations written for MeVe.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

from meve.errors import EvaluationError
from meve.evaluation.datasets._assembly import packaged_file
from meve.evaluation.datasets._row_reader import Row, index_rows, read_rows

USERS, USERS_PER_DOMAIN = 4, 2
"""LongMemEval's sessions are dealt to so many users, and those of each domain of mtRAG-UN to so many."""
LONG, SHORT_REQUEST = 1_000, 300
"""Least characters of a long answer, most of the request that it answers."""
_BEGIN = datetime(2026, 1, 5, 9, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationTurn:
    """A turn of a conversation, as the systems read it."""

    id: str
    session: str
    text: str
    at: datetime


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


def read_told(data: Path) -> Talk:
    """Return LongMemEval's evidence turns, dealt to a few users and mixed with its other sessions.

    Raises:
        DatasetError: the set is absent, truncated or of another format.
    """
    folder = data / "longmemeval"
    questions = [row for row in read_rows(folder / "questions.jsonl") if row.texts("evidence_turn_ids")]
    owners = list(dict.fromkeys(row.text("user_id") for row in questions))
    users = {owner: f"told-{place % USERS}" for place, owner in enumerate(owners)}
    turns: dict[str, list[ConversationTurn]] = {user: [] for user in sorted(users.values())}
    for session in _other_sessions(folder):
        turns[f"told-{session.number % USERS}"] += session.turns
    for row in read_rows(folder / "evidence_turns.jsonl"):
        owner, at = row.text("user_id"), _moment(row.text("session_date"))
        if owner in users:
            turn = ConversationTurn(id=row.text("id"), session=f"{owner} {at}", text=row.text("content"), at=at)
            turns[users[owner]].append(turn)
    return Talk(
        turns={user: sorted(own, key=lambda turn: turn.at) for user, own in turns.items()},
        questions=[
            EvidenceQuestion(
                user=users[row.text("user_id")],
                text=row.text("question"),
                evidence=frozenset(row.texts("evidence_turn_ids")),
            )
            for row in questions
        ],
    )


def read_long_answers(data: Path) -> Talk:
    """Return LongMemEval's sessions, with the requests for its long answers as questions instead of turns.

    Raises:
        DatasetError: the set is absent, truncated or of another format.
    """
    turns: dict[str, list[ConversationTurn]] = {f"answers-{n}": [] for n in range(USERS)}
    questions = []
    for session in _other_sessions(data / "longmemeval"):
        user, asked = f"answers-{session.number % USERS}", set()
        for request, answer in pairwise(session.turns):
            if len(answer.text) >= LONG and len(request.text) <= SHORT_REQUEST and request.text.endswith("?"):
                asked.add(request.id)
                evidence = frozenset([answer.id])
                questions.append(EvidenceQuestion(user=user, text=request.text, evidence=evidence))
        turns[user] += [turn for turn in session.turns if turn.id not in asked]
    return Talk(turns=turns, questions=questions)


def read_mtrag(data: Path) -> Talk:
    """Return mtRAG-UN's conversations; after each, the assistant quotes its gold pages, a turn each.

    Raises:
        DatasetError: the set is absent, truncated or of another format.
    """
    turns: dict[str, dict[str, ConversationTurn]] = {}
    questions = []
    places: dict[str, int] = {}
    for number, row in enumerate(read_rows(data / "mtrag_un" / "tasks.jsonl.gz")):
        pages = {page.text("id"): page.text("text") for page in row.rows("gold_passages")}
        if not pages:
            continue
        domain = row.text("domain")
        places[domain] = place = places.get(domain, 0) + 1
        user, at = f"{domain}-{place % USERS_PER_DOMAIN}", _BEGIN + timedelta(hours=number)
        texts = {f"{number}-{n}": turn.text("text") for n, turn in enumerate(row.rows("history"))} | pages
        for id, text in texts.items():  # a page of several conversations is stored once
            turn = ConversationTurn(id=id, session=str(number), text=text, at=at)
            turns.setdefault(user, {}).setdefault(id, turn)
        questions.append(EvidenceQuestion(user=user, text=row.text("question"), evidence=frozenset(pages)))
    return Talk(turns={user: list(own.values()) for user, own in sorted(turns.items())}, questions=questions)


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
            EvidenceQuestion(user=row.text("user"), text=row.text("question"), evidence=frozenset(row.texts("evidence")))
            for row in read_rows(file)
        ]
    return Talk(turns=turns, questions=questions)


KINDS: Mapping[str, Callable[[Path], Talk]] = {
    "locomo": read_locomo,
    "longmemeval": read_told,
    "long answers": read_long_answers,
    "mtrag": read_mtrag,
    "own": read_own,
}
"""The kinds of conversations, and the functions that read them from the folder with all sets."""


@dataclass(frozen=True, slots=True)
class _Session:
    number: int
    turns: list[ConversationTurn]


def _other_sessions(folder: Path) -> Iterator[_Session]:
    """Yield LongMemEval's sessions that hold no evidence of its questions, each once."""
    number, seen = 0, set()
    for row in read_rows(folder / "conversations.jsonl.gz"):
        for session in row.rows("sessions"):
            id = session.text("session_id")
            turns = [turn for turn in session.rows("turns") if turn.text("content", blank=True).strip()]
            if id in seen or id.startswith("answer_") or not turns:
                continue
            seen.add(id)
            at = _moment(session.text("date"))
            yield _Session(
                number,
                [
                    ConversationTurn(id=f"{id}-{n}", session=id, text=turn.text("content"), at=at)
                    for n, turn in enumerate(turns)
                ],
            )
            number += 1


def _moment(date: str) -> datetime:
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
