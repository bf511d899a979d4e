"""Write the facts of conversation turns once per message, and feedback on the memories that each answer used."""

from collections.abc import Sequence
from typing import NamedTuple

from llama_index_meve._message_content import ends_turn, is_answer, message_digest, role_of, text_of, to_turns
from llama_index_meve._session_history import SessionHistory, StoredMessage
from llama_index_meve._turn_recall import OpenQuestions
from meve.errors import MeveError
from meve.memory.turns import TurnRules, record_turns

MAX_ATTEMPTS = 3
"""The maximum number of attempts to write a message's facts."""


class PendingTurn(NamedTuple):
    """A stored message whose facts aren't written yet."""

    stored: StoredMessage
    question: str | None = None
    """The question that the message answers, if both were put together."""
    ends_turn: bool = False
    """Whether the model is done with a question after this message."""
    attempts_left: int = MAX_ATTEMPTS


def pending_turns(messages: Sequence[StoredMessage], *, agent_notes: bool = False) -> list[PendingTurn]:
    """Return the turns to write for messages that were put together.

    Args:
        messages: in order.
        agent_notes: whether an agent wrote all of them. Its user messages aren't the user's, and only its last answer
            is one, since earlier ones are steps.
    """
    answers = [n for n, each in enumerate(messages) if ends_turn(each.message)]
    answers = answers[-1:] if agent_notes else answers
    turns: list[PendingTurn] = []
    question = None
    for n, each in enumerate(messages):
        role = role_of(each.message)
        if agent_notes and role == "user":
            continue
        question = text_of(each.message) if role == "user" else question
        is_last = n in answers
        turns.append(PendingTurn(each, question if is_last else None, is_last))
        question = None if is_last else question
    return turns


def write_turns(
    history: SessionHistory, pending: Sequence[PendingTurn], questions: OpenQuestions, rules: TurnRules
) -> tuple[list[PendingTurn], MeveError | None]:
    """Write turns in order; messages that were erased meanwhile leave nothing.

    Returns:
        The turns that failed and have attempts left, and the last error.
    """
    failed: list[PendingTurn] = []
    error: MeveError | None = None
    for turn in pending:
        try:
            _write_turn(history, turn, questions, rules)
        except MeveError as cause:
            error = cause
            if turn.attempts_left > 1:  # its question is already closed
                failed.append(turn._replace(ends_turn=False, attempts_left=turn.attempts_left - 1))
    return failed, error


def _write_turn(history: SessionHistory, turn: PendingTurn, questions: OpenQuestions, rules: TurnRules) -> None:
    message = turn.stored.message
    if role_of(message) == "user" and turn.attempts_left == MAX_ATTEMPTS:
        questions.add(text_of(message), history.memory.clock.now())
    recall = questions.take_answered(turn.question) if turn.ends_turn else None
    if not history.contains(turn.stored):
        return
    before = history.messages_before(turn.stored) if rules.reads_context else []
    record_turns(
        history.memory,
        to_turns([message], [turn.stored.fact_key]),
        user_id=history.user_id,
        session_id=history.session_id,
        recall=recall if is_answer(message) else None,
        answer=text_of(message),
        rules=rules,
        before=to_turns(before, [message_digest(each) for each in before]),
    )
