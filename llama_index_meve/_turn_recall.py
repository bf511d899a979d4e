"""What is remembered for a turn: recalled for its question, told as data, and judged by the answer when it comes."""

from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from threading import Lock
from typing import Any

from llama_index_meve._instrumentation import tell
from llama_index_meve._token_limit import MessageCounter
from meve.components._sentences import sentences
from meve.errors import QueryError
from meve.memory import GovernedMemory, Recall
from meve.memory._recall.formatting import format_recall
from meve.memory.records import UserId

PATIENCE = timedelta(minutes=5)
"""After it a question is given up when another is asked: its engine has failed, or was left."""
FACTS = 512
"""Tokens that what is remembered takes at most, unless `search` says otherwise."""
_QUESTIONS = 16
"""For which something was told, and which may be answered yet."""
_LONG, _SHORT = 500, 64
"""Characters of a question: beyond the first number it is shortened, up to the second it must fit any embedder."""


@dataclass(frozen=True, slots=True)
class Told:
    """A question, and what was told for it."""

    question: str
    recall: Recall
    text: str = ""
    """Empty where nothing is remembered, or nothing fits."""


class Turn:
    """Questions that are under way, and what was told for each, until it is answered. Safe to share between threads.

    An answer is to the question that waits for one. Where several do that something was told for, it isn't known to
    which an answer is: until each has had one, or is given up, answers are held against nothing.
    """

    def __init__(self) -> None:
        self._told: OrderedDict[str, Told] = OrderedDict()
        self._waiting: OrderedDict[str, datetime] = OrderedDict()
        self._answers = 0
        """That came while it wasn't known to which question."""
        self._last: Told | None = None
        self._guard = Lock()

    def asks(self, question: str, now: datetime) -> None:
        """A user says something, which waits for an answer from now on."""
        with self._guard:
            self._waiting.pop(question, None)
            late = [text for text, since in self._waiting.items() if now - since >= PATIENCE]
            for text in late or list(self._waiting)[:-_QUESTIONS]:
                self._let_go(text)
            self._waiting[question] = now
            if self._last is not None and (self._last.question != question or question not in self._told):
                self._last = None

    def keep(self, told: Told) -> None:
        """This was told."""
        with self._guard:
            self._last = self._told[told.question] = told
            self._told.move_to_end(told.question)
            while len(self._told) > _QUESTIONS:
                self._told.popitem(last=False)

    @property
    def last(self) -> Told | None:
        """What was told last, answered or not; None in a new turn."""
        return self._last

    def told(self, question: str) -> Told | None:
        """What was told for a question that was answered last, or isn't answered yet."""
        with self._guard:
            last = self._last if self._last is not None and self._last.question == question else None
            return self._told.get(question, last)

    def answered(self, question: str | None = None) -> Recall | None:
        """An answer has come.

        Args:
            question: to which; None if nobody says.

        Returns:
            What it is to be held against; None for nothing.
        """
        with self._guard:
            if question is None:
                question = next(reversed(self._waiting), "")
                if self._answers or [text for text in self._waiting if text in self._told] != [question]:
                    self._answers += 1
                    self._settle()
                    return None
                self._waiting.clear()
            found = self._told.get(question)
            self._let_go(question)
            return found.recall if found else None

    def forget(self) -> None:
        """Let go of all."""
        with self._guard:
            self._told.clear()
            self._waiting.clear()
            self._answers, self._last = 0, None

    def _let_go(self, question: str) -> None:
        """It waits no more."""
        self._told.pop(question, None)
        self._waiting.pop(question, None)
        self._settle()

    def _settle(self) -> None:
        """Where as many answers have come as questions wait, none waits any more."""
        if self._answers >= len(self._waiting):
            for text in self._waiting:
                self._told.pop(text, None)
            self._waiting.clear()
            self._answers = 0


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

    Raises:
        QueryError: a question that says nothing; see `asked_for`.
    """
    options = {**search, "max_tokens": max(1, min(room, search.get("max_tokens") or FACTS))}
    recall = _search(memory, asked_for(question), user_id=user_id, without=without, **options)
    tell(recall)
    text = format_recall(memory, recall)
    while text and counter.text(text) > room:
        recall = replace(recall, passages=recall.passages[:-1])
        text = format_recall(memory, recall)
    return Told(question, recall, text)


def asked_for(text: str) -> str:
    """What a memory is asked for a text; empty where the text says nothing."""
    words = text.replace("\x00", "").encode(errors="ignore").decode()
    if len(words) <= _LONG:
        return words.strip()
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
