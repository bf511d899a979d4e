"""Recall memory once for each question of a conversation, and match the answer that follows to its recall."""

from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from threading import Lock
from typing import Any

from cachetools import FIFOCache

from llama_index_meve._instrumentation import emit_trace
from llama_index_meve._message_counter import MessageCounter
from meve.components._sentence_splitter import split_sentences
from meve.errors import QueryError
from meve.memory import GovernedMemory, Recall
from meve.memory._recall.formatting import format_recall
from meve.memory.records import UserId
from meve.routing import RouterConfig
from meve.routing._wrapper_support import Search, make_search

ANSWER_TIMEOUT = timedelta(minutes=5)
"""Age at which an open question is dropped when another is asked."""
DEFAULT_RECALL_TOKENS = 512
"""The most tokens of a recall, unless `search` says otherwise."""
_MAX_QUESTIONS = 16
"""The maximum number of open questions, and of recalls, that are kept."""
_MAX_QUERY_CHARS, _MIN_QUERY_CHARS = 500, 64
"""Longer questions are shortened to the first number; below the second, every embedder must accept them."""


@dataclass(frozen=True, slots=True)
class QuestionRecall:
    """A question, its recall, and the text of the recall for the prompt."""

    question: str
    recall: Recall
    text: str = ""
    """Empty if nothing was recalled, or nothing fits."""


class OpenQuestions:
    """The unanswered questions of a session, with their recalls. Thread-safe.

    If several questions with recalls are open, an answer can't be matched to its question. Then no answer is judged
    until every open question has been answered or given up.
    """

    def __init__(self) -> None:
        self._recalls: FIFOCache[str, QuestionRecall] = FIFOCache(_MAX_QUESTIONS)
        self._open: OrderedDict[str, datetime] = OrderedDict()
        self._unmatched_answers = 0
        self.last: QuestionRecall | None = None
        """The last recall, answered or not; None in a new turn."""
        self._lock = Lock()

    def add(self, question: str, now: datetime) -> None:
        """Open a question that the user asked."""
        with self._lock:
            self._open.pop(question, None)
            late = [text for text, since in self._open.items() if now - since >= ANSWER_TIMEOUT]
            for text in late or list(self._open)[:-_MAX_QUESTIONS]:
                self._close(text)
            self._open[question] = now
            if self.last is not None and (self.last.question != question or question not in self._recalls):
                self.last = None

    def add_recall(self, recall: QuestionRecall) -> None:
        with self._lock:
            self.last = self._recalls[recall.question] = recall

    def find_recall(self, question: str) -> QuestionRecall | None:
        """Return the recall for a question that is open or was answered last."""
        with self._lock:
            last = self.last if self.last is not None and self.last.question == question else None
            return self._recalls.get(question, last)

    def take_answered(self, question: str | None = None) -> Recall | None:
        """Close the question that an answer belongs to, and return its recall; None if there is none to judge.

        Args:
            question: the answered question; None if unknown.
        """
        with self._lock:
            if question is None:
                question = next(reversed(self._open), "")
                if self._unmatched_answers or [text for text in self._open if text in self._recalls] != [question]:
                    self._unmatched_answers += 1
                    self._close_if_all_answered()
                    return None
                self._open.clear()
            answered = self._recalls.get(question)
            self._close(question)
            return answered.recall if answered else None

    def forget(self) -> None:
        with self._lock:
            self._recalls.clear()
            self._open.clear()
            self._unmatched_answers, self.last = 0, None

    def _close(self, question: str) -> None:
        self._recalls.pop(question, None)
        self._open.pop(question, None)
        self._close_if_all_answered()

    def _close_if_all_answered(self) -> None:
        if self._unmatched_answers >= len(self._open):
            for text in self._open:
                self._recalls.pop(text, None)
            self._open.clear()
            self._unmatched_answers = 0


def recall_for(
    memory: GovernedMemory,
    question: str,
    counter: MessageCounter,
    *,
    user_id: UserId,
    max_tokens: int,
    without: Collection[str] = (),
    search: Mapping[str, Any],
    routing: RouterConfig | None = None,
) -> QuestionRecall:
    """Recall a user's memory for a question, in at most `max_tokens` tokens including the markers around it.

    Raises:
        QueryError: the question is empty; see `extract_query`.
    """
    usual = DEFAULT_RECALL_TOKENS if routing is None else max_tokens
    limit = max(1, min(max_tokens, search.get("max_tokens") or usual))
    look = make_search(memory, search, routing)
    recall = _search_shortening(look, extract_query(question), user_id=user_id, without=without, max_tokens=limit)
    emit_trace(recall)
    text = format_recall(memory, recall)
    while text and counter.count_text(text) > max_tokens:
        if recall.passages:
            recall = replace(recall, passages=recall.passages[:-1])
        else:
            recall = replace(recall, standing=recall.standing[1:])
        text = format_recall(memory, recall)
    return QuestionRecall(question, recall, text)


def extract_query(text: str) -> str:
    """Return the search query for a text: of a long one the questions in it, or its end; empty for blank text."""
    query = text.replace("\x00", "").encode(errors="ignore").decode()
    if len(query) <= _MAX_QUERY_CHARS:
        return query.strip()
    ends = split_sentences(f"{query[: 4 * _MAX_QUERY_CHARS]} {query[-4 * _MAX_QUERY_CHARS :]}")
    questions = " ".join(each for each in ends if "?" in each)
    return questions[-_MAX_QUERY_CHARS:].strip() or query[-_MAX_QUERY_CHARS:]


def _search_shortening(search: Search, query: str, **options: Any) -> Recall:
    """Search, and halve the query while the embedder refuses it as too long."""
    while True:
        try:
            return search(query, **options)
        except QueryError:
            if len(query) <= _MIN_QUERY_CHARS:
                raise
            query = query[len(query) // 2 :].strip() or query[: len(query) // 2]
