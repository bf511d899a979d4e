"""The five phases over a store that somebody else keeps: it is phase 1, and its words are indexed here."""

import threading
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Unpack

import numpy as np

from meve.config import Overrides, RetrieverConfig
from meve.context import Context
from meve.engine import Engine
from meve.errors import ConfigurationError, RetrievalError, StaleWarning, foreign
from meve.parts.lexical import make_lexical
from meve.pipeline import check_query
from meve.ports import LexicalIndex, Source
from meve.preparation import checked
from meve.types import Candidate, Passage, Query

WIDER = 4
"""By how much the keyword search reaches further when a filter left too few."""


class Store(Protocol):
    """Somebody else's store of passages, as far as it must be known. Filters are in its own words."""

    @property
    def name(self) -> str:
        """What it is called, for messages."""
        ...

    def nearest(self, query: str, k: int, where: Any) -> Sequence[tuple[Passage, float | None]]:  # noqa: ANN401
        """At most k passages that the filter lets through, best first, each with the store's score if it gives one."""
        ...

    def present(self, ids: Sequence[str], where: Any) -> Sequence[Passage]:  # noqa: ANN401
        """Which of these it still holds and the filter lets through, as they are now, in any order."""
        ...

    def everything(self) -> Iterable[Passage]:
        """All that it holds.

        Raises:
            ConfigurationError: it can't tell.
        """
        ...

    def size(self) -> int | None:
        """How many it holds; None where it can't tell quickly."""
        ...


class StoreRetriever(Engine):
    """Verified retrieval from a store that is somebody else's. Threads may share one.

    Phase 1 asks the store, and the words of its passages are indexed here. What the store no longer holds, and what the
    filter excludes, comes back from neither. What others add to the store is found by its vectors at once, and by its
    words after `refresh`; until then a `StaleWarning` says so.

    Args:
        store: where passages are.
        engine: the parts that decide.
    """

    def __init__(self, store: Store, engine: Engine) -> None:
        super().__init__(
            embedder=engine.embedder,
            verifier=engine.verifier,
            tokens=engine.tokens,
            config=engine.config,
            estimator=engine.estimator,
            prior=engine.prior,
            clock=engine._clock,
        )
        self.store = store
        self._words = _Words(store)

    @property
    def stale(self) -> bool:
        """Whether the store is known to hold passages whose words aren't indexed, or to lack some whose words are."""
        return self._words.stale()

    def refresh(self) -> int:
        """Index the words of all that the store holds now.

        Returns:
            How many passages.

        Raises:
            ConfigurationError: the store can't list what it holds.
        """
        return self._words.read(self.store.everything())

    def index(self, passages: Sequence[Passage]) -> None:
        """Index the words of these, which the store took in; those of an id that is known are replaced."""
        self._words.add(passages)

    def forget(self, ids: Iterable[str]) -> None:
        """Forget the words of these, which the store let go; ids that aren't known don't matter."""
        self._words.remove(ids)

    def retrieve(
        self,
        query: str,
        *,
        config: RetrieverConfig | None = None,
        where: Any = None,  # noqa: ANN401 - the store's own language
        **overrides: Unpack[Overrides],
    ) -> Context:
        """The verified context for a question, with the account of how it came about.

        Args:
            query: the question.
            config: instead of the retriever's own, for this call.
            where: a filter, as the store takes it; it holds in every phase.
            overrides: any value of `RetrieverConfig`, by name.

        Raises:
            QueryError: blank, not text, or longer than a model's window.
            ConfigurationError: an unknown option, a value out of range, or keyword search over a store whose words
                were never indexed.
            RetrievalError: the store failed.
            ModelError: a model failed.
        """
        check_query(query)
        settings = self.settings(config, overrides)
        if settings.lexical not in (None, "bm25"):
            raise ConfigurationError(f"lexical is {settings.lexical!r}, but a store's words are indexed by bm25")
        dense, words = _Nearest(self._words, self.store, where), _ByWords(self._words, self.store, where)
        known = self._words.known
        if settings.sources == "lexical" and not known:
            raise ConfigurationError(
                f"sources is 'lexical', but the words of {self.store.name} aren't indexed: call refresh(), or give "
                "the documents"
            )
        if known and self.stale:
            warnings.warn(
                f"{self.store.name} holds other passages than those whose words are indexed: call refresh()",
                StaleWarning,
                stacklevel=2,
            )
        chosen: list[Source] = [dense] if settings.sources != "lexical" else []
        if known and settings.sources != "dense":
            chosen.append(words)
        return self._run(Query(text=query), settings, chosen, fallback=words if known else None)


class _Words:
    """The words of a store's passages. Reads and changes take turns."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._index: LexicalIndex = make_lexical("bm25")
        self._rows: dict[str, int] = {}
        self._ids: dict[int, str] = {}
        self._next = 0
        self.known, self._strange = False, False

    def stale(self) -> bool:
        if not self.known or self._strange:
            return self._strange
        size = self._store.size()
        return size is not None and size != len(self._rows)

    def noticed(self, ids: Iterable[str]) -> None:
        """The store holds these; one whose words aren't known shows that others have been at it."""
        if self.known and any(i not in self._rows for i in ids):
            self._strange = True

    def read(self, passages: Iterable[Passage]) -> int:
        listed = list(passages)
        checked(listed)
        with self._lock:
            self._clear()
            self.known = True
            self._add(listed)
            return len(self._rows)

    def add(self, passages: Sequence[Passage]) -> None:
        checked(passages)
        with self._lock:
            self.known = True
            self._remove(p.id for p in passages)
            self._add(passages)

    def remove(self, ids: Iterable[str]) -> None:
        with self._lock:
            self._remove(ids)

    def find(self, text: str, k: int) -> list[tuple[str, float]]:
        with self._lock:
            rows, scores = self._index.search(text, k)
            return [(self._ids[row], score) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)]

    def _add(self, passages: Sequence[Passage]) -> None:
        latest = {p.id: p for p in passages}
        rows = np.arange(self._next, self._next + len(latest), dtype=np.int64)
        self._index.add(rows, [p.content for p in latest.values()])
        self._next += len(latest)
        self._rows.update(zip(latest, rows.tolist(), strict=True))
        self._ids.update(zip(rows.tolist(), latest, strict=True))

    def _remove(self, ids: Iterable[str]) -> None:
        rows = [self._rows.pop(i) for i in dict.fromkeys(ids) if i in self._rows]
        if rows:
            self._index.remove(np.array(rows, dtype=np.int64))
            for row in rows:
                del self._ids[row]


@dataclass(frozen=True, slots=True)
class _Nearest:
    words: _Words
    store: Store
    where: Any
    name: str = "dense"

    def search(self, query: Query, k: int) -> list[Candidate]:
        with foreign(RetrievalError, f"searching {self.store.name}"):
            hits = self.store.nearest(query.text, k, self.where)
        first = {passage.id: (passage, score) for passage, score in reversed(hits)}
        order = dict.fromkeys(passage.id for passage, _ in hits)
        self.words.noticed(order)
        return [_candidate(*first[i], name=self.name) for i in order][:k]


@dataclass(frozen=True, slots=True)
class _ByWords:
    words: _Words
    store: Store
    where: Any
    name: str = "lexical"

    def search(self, query: Query, k: int) -> list[Candidate]:
        """At most k that share a word, as the store has them now; the search reaches on past those that are no more."""
        reach = k
        while True:
            hits = self.words.find(query.text, reach)
            with foreign(RetrievalError, f"reading from {self.store.name}"):
                there = {p.id: p for p in self.store.present([i for i, _ in hits], self.where)} if hits else {}
            found = [(there[i], score) for i, score in hits if i in there]
            if len(found) >= k or len(hits) < reach:
                return [_candidate(passage, score, name=self.name) for passage, score in found[:k]]
            reach *= WIDER


def _candidate(passage: Passage, score: float | None, *, name: str) -> Candidate:
    return Candidate(passage=passage, origin=name, scores={} if score is None else {name: score})
