"""What is remembered for a turn: recalled for its question, told as data, and judged by the answer when it comes."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from llama_index_meve.counting import MessageCounter
from llama_index_meve.events import tell
from meve.errors import QueryError
from meve.memory import GovernedMemory, Recall
from meve.memory.records import UserId
from meve.memory.telling import told
from meve.parts.sentences import sentences

_LONG, _SHORT = 500, 64
"""Characters of a question: beyond the first number it is shortened, up to the second it must fit any embedder."""


@dataclass(frozen=True, slots=True)
class Told:
    """A question, and what was told for it."""

    question: str
    recall: Recall
    text: str = ""
    """Empty where nothing is remembered, or nothing fits."""
    answered: bool = False


class Turn:
    """The turn that is under way: what was told for it, until it is answered. Safe to share between threads."""

    def __init__(self) -> None:
        self._told: Told | None = None
        self._guard = Lock()

    def asks(self, question: str) -> None:
        """A user says something: unless what was told was told for this, it is over."""
        with self._guard:
            if self._told is not None and (self._told.answered or self._told.question != question):
                self._told = None

    def keep(self, told: Told) -> None:
        """This was told."""
        with self._guard:
            self._told = told

    @property
    def told(self) -> Told | None:
        """What was told last, answered or not; None in a new turn."""
        return self._told

    def answered(self) -> Recall | None:
        """An answer has come: what it is to be held against; None if nothing was told, or an answer came before."""
        with self._guard:
            found = self._told
            if found is None or found.answered:
                return None
            self._told = replace(found, answered=True)
            return found.recall

    def forget(self) -> None:
        """Let go of it."""
        with self._guard:
            self._told = None


def recalled(
    memory: GovernedMemory,
    question: str,
    counter: MessageCounter,
    *,
    user_id: UserId,
    room: int,
    without: Collection[str] = (),
    search: Mapping[str, Any],
) -> Told:
    """What a user's memory holds on a question, in at most `room` tokens with all that marks it as data.

    Of a long text the questions are asked that stand in it, or else its end.
    """
    options = {**search, "max_tokens": max(1, min(room, search.get("max_tokens", 512)))}
    recall = _search(memory, _asked(question), user_id=user_id, without=without, **options)
    tell(recall)
    text = told(memory, recall)
    while text and counter.text(text) > room:
        recall = replace(recall, passages=recall.passages[:-1])
        text = told(memory, recall)
    return Told(question, recall, text)


def _asked(text: str) -> str:
    words = text.replace("\x00", "").encode(errors="ignore").decode()
    if len(words) <= _LONG:
        return words
    around = sentences(f"{words[: 4 * _LONG]} {words[-4 * _LONG :]}")
    return " ".join(each for each in around if "?" in each)[-_LONG:].strip() or words[-_LONG:]


def _search(memory: GovernedMemory, question: str, **options: Any) -> Recall:
    while True:
        try:
            return memory.search(question, **options)
        except QueryError:
            if len(question) <= _SHORT:
                raise
            question = question[len(question) // 2 :].strip() or question[: len(question) // 2]
