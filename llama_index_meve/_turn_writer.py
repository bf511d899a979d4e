"""What messages leave behind, each once: facts, and what an answer makes of what was recalled for its question."""

from collections.abc import Sequence
from typing import NamedTuple

from llama_index_meve._session_history import History, Kept
from llama_index_meve._turn_recall import Turn
from llama_index_meve._turns import ends, is_answer, role_of, said, spoken
from meve.errors import MeveError
from meve.memory.turns import TurnRules, record_turns

TRIES = 3
"""How often it is tried to remember what a message says."""


class Heard(NamedTuple):
    """A message that leaves something behind."""

    kept: Kept
    asked: str | None = None
    """The question that it answers, where they were put together."""
    ends: bool = False
    """Whether the model has done with a question by it."""
    tries: int = TRIES

    @property
    def again(self) -> "Heard":
        """The same, to be tried once more: what turn it belongs to is told by now."""
        return self._replace(ends=False, tries=self.tries - 1)


def heard(kept: Sequence[Kept], *, own: bool = False) -> list[Heard]:
    """What is to be heard of messages that were put together.

    Args:
        kept: in their order.
        own: whether they are an agent's notes: what stands there in the user's name isn't the user's, and only the last
            answer is one, since those before are steps to it.
    """
    answers = [n for n, each in enumerate(kept) if ends(each.message)]
    made: list[Heard] = []
    asked = None
    for n, each in enumerate(kept):
        role = role_of(each.message)
        if own and role == "user":
            continue
        asked = spoken(each.message) if role == "user" else asked
        done = n in (answers[-1:] if own else answers)
        made.append(Heard(each, asked if done else None, done))
        asked = None if done else asked
    return made


def hear(
    history: History, waiting: Sequence[Heard], turn: Turn, rules: TurnRules
) -> tuple[list[Heard], MeveError | None]:
    """Hear messages, in their order; those that aren't there any more leave nothing behind.

    Returns:
        Those that failed and may be tried again, and what the last of those that failed did with.
    """
    left: list[Heard] = []
    failed: MeveError | None = None
    for each in waiting:
        try:
            _hear_one(history, each, turn, rules)
        except MeveError as error:
            failed = error
            left += [each.again] if each.tries > 1 else []
    return left, failed


def _hear_one(history: History, each: Heard, turn: Turn, rules: TurnRules) -> None:
    message = each.kept.message
    if role_of(message) == "user" and each.tries == TRIES:
        turn.asks(spoken(message), history.memory.clock.now())
    recall = turn.answered(each.asked) if each.ends else None
    if not history.holds(each.kept):
        return
    record_turns(
        history.memory,
        said([message], [each.kept.name]),
        user_id=history.user_id,
        session_id=history.session_id,
        recall=recall if is_answer(message) else None,
        answer=spoken(message),
        rules=rules,
    )
