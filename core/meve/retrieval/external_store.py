"""The five phases over a store that somebody else keeps: it is phase 1, and its words are indexed here."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, Self, Unpack

from meve.errors import ConfigurationError, RetrievalError, StaleWarning, foreign
from meve.pipeline.config import Overrides, RetrieverConfig
from meve.pipeline.context import Context
from meve.pipeline.engine import Engine, Tokens, make_engine
from meve.pipeline.pipeline import check_query
from meve.pipeline.trace import Observer
from meve.ports import Embedder, Source, Verifier
from meve.retrieval._keyword_index import Words
from meve.types import Candidate, Passage, Query

WIDER = 4
"""By how much the keyword search reaches further when a filter left too few."""


class Store(Protocol):
    """Somebody else's store of passages, as far as it must be known. Filters are in its own words.

    Passages may come without text: nothing is made of those.
    """

    @property
    def name(self) -> str:
        """What it is called, for messages."""
        ...

    def canonical(self, passage_id: str) -> str:
        """An id as the store itself spells it."""
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
    words after `refresh`; until then the trace says so, and a `StaleWarning` once.

    That words lag shows by the store's count, or by what its vectors find; one passage less and another more, which
    nothing has found yet, doesn't show.

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
        self._words = Words()
        self._warned = False

    @classmethod
    def over(
        cls,
        store: Store,
        *,
        passages: Sequence[Passage] | None = None,
        words: bool = True,
        config: RetrieverConfig | None = None,
        embedder: Embedder | str | None = None,
        verifier: Verifier | str | None = None,
        tokens: Tokens | None = None,
    ) -> Self:
        """A retriever of parts that are named, or of those that ship, with the words of the store indexed.

        Args:
            store: where passages are.
            passages: what it holds, where it can't list that itself; None to read it here.
            words: whether to read it.
            config: how to decide.
            embedder: makes vectors for telling copies apart, as for `meve.Retriever`; the store keeps its own.
            verifier: as for `meve.Retriever`.
            tokens: what budgets are counted with.

        Raises:
            ConfigurationError: parts that can't work, or a store that can't list what it holds.
            ModelError: a model or a tokenizer that can't be had.
            RetrievalError: the store failed.
        """
        made = cls(store, make_engine(config=config, embedder=embedder, verifier=verifier, tokens=tokens))
        if passages is not None:
            made.index(passages)
        elif words:
            made.refresh()
        return made

    @property
    def stale(self) -> bool:
        """Whether the store is known to hold passages whose words aren't indexed, or to lack some whose words are.

        Raises:
            RetrievalError: the store failed.
        """
        if not self._words.known:
            return False
        with foreign(RetrievalError, f"counting what {self.store.name} holds"):
            size = self.store.size()
        return self._words.stale(size)

    def refresh(self) -> int:
        """Index the words of all that the store holds now. Queries go on meanwhile, over what was indexed before.

        Returns:
            How many passages.

        Raises:
            ConfigurationError: the store can't list what it holds.
            RetrievalError: the store failed.
        """
        with foreign(RetrievalError, f"reading all of {self.store.name}"):
            return self._words.read(self.store.everything)

    def index(self, passages: Sequence[Passage]) -> None:
        """Index the words of these, which the store took in; those of an id that is known are replaced.

        Raises:
            PassageError: something that is no passage; nothing was indexed.
        """
        self._words.add(passages)

    def forget(self, ids: Iterable[str]) -> None:
        """Forget the words of these, which the store let go; ids that aren't known don't matter."""
        self._words.remove(self.store.canonical(i) for i in ids)

    def clear(self) -> None:
        """Forget all words."""
        self._words.read(lambda: ())

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Around a change of the store that is told by `index` or `forget`: nobody is warned in between."""
        with self._words.changing():
            yield

    def retrieve(
        self,
        query: str,
        *,
        config: RetrieverConfig | None = None,
        where: Any = None,  # noqa: ANN401 - the store's own language
        observer: Observer | None = None,
        **overrides: Unpack[Overrides],
    ) -> Context:
        """The verified context for a question, with the account of how it came about.

        Args:
            query: the question.
            config: instead of the retriever's own, for this call.
            where: a filter, as the store takes it; it holds in every phase.
            observer: told of each phase while it happens.
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
        known, stale = self._words.known, self._told()
        if settings.sources == "lexical" and not known:
            raise ConfigurationError(
                f"sources is 'lexical', but the words of {self.store.name} aren't indexed: call refresh(), or give "
                "the documents"
            )
        dense, words = _Nearest(self._words, self.store, where), _ByWords(self._words, self.store, where)
        chosen: list[Source] = [dense] if settings.sources != "lexical" else []
        if known and settings.sources != "dense":
            chosen.append(words)
        notes = {"words": "stale"} if stale else {}
        fallback = words if known else None
        return self._run(Query(text=query), settings, chosen, fallback=fallback, notes=notes, observer=observer)

    def _told(self) -> bool:
        """Whether the words lag; said once, until they have caught up."""
        stale = self.stale
        if stale and not self._warned:
            warnings.warn(
                f"{self.store.name} holds other passages than the {len(self._words)} whose words are indexed: call "
                "refresh()",
                StaleWarning,
                stacklevel=3,
            )
        self._warned = stale
        return stale


@dataclass(frozen=True, slots=True)
class _Nearest:
    words: Words
    store: Store
    where: Any
    name: str = "dense"

    def search(self, query: Query, k: int) -> list[Candidate]:
        with foreign(RetrievalError, f"searching {self.store.name}"):
            hits = self.store.nearest(query.text, k, self.where)
        first: dict[str, tuple[Passage, float | None]] = {}
        for passage, score in hits:
            first.setdefault(passage.id, (passage, score))
        self.words.noticed(passage for passage, _ in first.values())
        return [_candidate(*hit, name=self.name) for hit in first.values() if hit[0].text.strip()][:k]


@dataclass(frozen=True, slots=True)
class _ByWords:
    words: Words
    store: Store
    where: Any
    name: str = "lexical"

    def search(self, query: Query, k: int) -> list[Candidate]:
        """At most k that share a word, as the store has them now; the search reaches on past those that are no more."""
        reach = k
        asked: dict[str, Passage | None] = {}
        while True:
            hits = self.words.find(query.text, reach)
            fresh = [i for i, _ in hits if i not in asked]
            with foreign(RetrievalError, f"reading from {self.store.name}"):
                there = {p.id: p for p in self.store.present(fresh, self.where)} if fresh else {}
            asked |= {i: there.get(i) for i in fresh}
            found = [(passage, score) for i, score in hits if (passage := asked[i]) and passage.text.strip()]
            if len(found) >= k or len(hits) < reach:
                return [_candidate(passage, score, name=self.name) for passage, score in found[:k]]
            reach *= WIDER


def _candidate(passage: Passage, score: float | None, *, name: str) -> Candidate:
    return Candidate(passage=passage, origin=name, scores={} if score is None else {name: float(score)})
