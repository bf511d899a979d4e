"""The five phases over a store that somebody else keeps: it is phase 1, and its words are indexed here."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, Self, Unpack

from meve.errors import ConfigurationError, RetrievalError, StaleWarning, foreign
from meve.pipeline.config import Overrides, RetrieverConfig
from meve.pipeline.context import Context
from meve.pipeline.engine import Engine, EngineOptions, make_engine
from meve.pipeline.pipeline import check_query
from meve.pipeline.trace import Observer
from meve.ports import Source
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


class StoreRetriever:
    """Verified retrieval from a store that others keep. Threads may share one.

    Phase 1 asks the store for similar passages, and a keyword index kept here for the words. Passages that the store no
    longer holds or that the filter excludes come back from neither. Passages that others add to the store are found by
    similarity at once, and by keywords after `refresh`; until then the trace says so, and one `StaleWarning`.

    A stale index is noticed by the store's size, or by a passage that similarity finds. One passage replaced by another
    goes unnoticed until it is found.
    """

    def __init__(self, store: Store, engine: Engine) -> None:
        self.store = store
        self.engine = engine
        self._words = Words()
        self._warned = False

    @classmethod
    def over(
        cls,
        store: Store,
        *,
        passages: Sequence[Passage] | None = None,
        words: bool = True,
        **options: Unpack[EngineOptions],
    ) -> Self:
        """Return a retriever over a store, with the store's passages in its keyword index.

        Args:
            store: holds the passages.
            passages: what the store holds, if it can't list that itself; None to list it here.
            words: whether to list it.
            options: components and settings. The embedder only detects duplicates; the store keeps its own.

        Raises:
            ConfigurationError: components that don't work together, or a store that can't list what it holds.
            ModelError: a model or a tokenizer that isn't available.
            RetrievalError: the store failed.
        """
        retriever = cls(store, make_engine(**options))
        if passages is not None:
            retriever.index(passages)
        elif words:
            retriever.refresh()
        return retriever

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
        """Return the verified context for a question, with its trace.

        Args:
            query: the question.
            config: replaces the retriever's own for this call.
            where: a filter in the store's own language; it holds in every phase.
            observer: called when a phase begins and ends.
            overrides: any value of `RetrieverConfig`, by name.

        Raises:
            QueryError: a blank query, one that isn't text, or one longer than a model's window.
            ConfigurationError: an unknown option, a value out of range, or keyword search without a keyword index.
            RetrievalError: the store failed.
            ModelError: a model failed.
        """
        check_query(query)
        settings = self.engine.resolve_config(config, overrides)
        if settings.lexical not in (None, "bm25"):
            raise ConfigurationError(f"lexical must be 'bm25' or None over an external store, got {settings.lexical!r}")
        is_indexed, is_stale = self._words.known, self._warn_if_stale()
        if settings.sources == "lexical" and not is_indexed:
            raise ConfigurationError(
                f"sources='lexical' needs a keyword index of {self.store.name}: call refresh(), or give the documents"
            )
        dense, lexical = _Nearest(self._words, self.store, where), _ByWords(self._words, self.store, where)
        hybrid: list[Source] = [dense, lexical] if is_indexed else [dense]
        sources: dict[str, list[Source]] = {"dense": [dense], "lexical": [lexical], "hybrid": hybrid}
        return self.engine.run(
            Query(text=query),
            settings,
            sources[settings.sources],
            fallback=lexical if is_indexed else None,
            notes={"words": "stale"} if is_stale else {},
            observer=observer,
        )

    def _warn_if_stale(self) -> bool:
        """Return whether the keyword index is stale; warn once until it is up to date again."""
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
