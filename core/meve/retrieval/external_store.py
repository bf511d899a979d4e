"""Retrieve verified context from an external store, such as a vector database."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, Self, Unpack, runtime_checkable

import numpy as np

from meve.errors import ConfigurationError, RetrievalError, StaleWarning, warn, wrap_errors
from meve.integrations._foreign_minilm import is_read_whole
from meve.pipeline.config import Overrides, RetrieverConfig, check_keywords
from meve.pipeline.context import Context
from meve.pipeline.engine import Engine, EngineOptions, make_engine
from meve.pipeline.query_check import check_query
from meve.pipeline.trace import Observer
from meve.ports import Embedder, Source
from meve.retrieval._keyword_index import KeywordIndex
from meve.types import Candidate, FloatArray, Passage, Query

GROWTH = 4
"""The factor by which a keyword search grows when the filter left too few hits."""


class ExternalStore(Protocol):
    """A store of passages outside MeVe. Filters are in the store's own language.

    Passages may come without text; they are never retrieved.
    """

    @property
    def name(self) -> str:
        """The store's name in messages."""

    def canonical_id(self, passage_id: str) -> str:
        """Return an id as the store itself spells it."""

    def nearest(self, query: str, k: int, where: Any) -> Sequence[tuple[Passage, float | None]]:  # noqa: ANN401
        """Return at most k passages that match the filter, best first, each with the store's score if it gives one."""

    def fetch(self, ids: Sequence[str], where: Any) -> Sequence[Passage]:  # noqa: ANN401
        """Return those of these passages that the store still holds and the filter admits, in any order."""

    def list_passages(self) -> Iterable[Passage]:
        """Return all passages.

        Raises:
            ConfigurationError: the store can't list them.
        """

    def size(self) -> int | None:
        """Return the number of passages in the store; None if counting is costly."""


@runtime_checkable
class HybridStore(Protocol):
    """A store that can search vectors and words itself, and join the results."""

    def search_both(self, query: str, k: int, where: Any) -> Sequence[tuple[Passage, float | None]]:  # noqa: ANN401
        """Return at most 2k passages that match the filter, in the order of the store's own joint search."""


@runtime_checkable
class VectorReader(Protocol):
    """A store that returns the vectors it holds, so that they needn't be computed again."""

    def read_vectors(self, ids: Sequence[str], embedder: str) -> Mapping[str, FloatArray]:
        """Return the vectors of these passages by id; none unless the store embeds by the embedder of this name."""


class StoreRetriever:
    """Verified retrieval from an external store. Threads may share one retriever.

    Phase 1 searches the store by similarity, and a keyword index that is kept here. Deleted or filtered passages are
    never returned. Passages that others add are found by similarity at once, and by keywords after `refresh`. Until
    then the index is stale: the trace says so, and a `StaleWarning` comes once.

    A stale index is detected by the store's size, or when the search by similarity returns an unknown passage.
    """

    def __init__(self, store: ExternalStore, engine: Engine, *, words_in_store: bool = False) -> None:
        self.store = store
        self.engine = engine
        self._words_in_store = words_in_store
        self._keywords = KeywordIndex()
        self._warned = False

    @classmethod
    def from_store(
        cls,
        store: ExternalStore,
        *,
        passages: Sequence[Passage] | None = None,
        words: bool | Literal["store"] = True,
        **options: Unpack[EngineOptions],
    ) -> Self:
        """Return a retriever over a store, with the store's passages in its keyword index.

        Args:
            store: holds the passages.
            passages: all passages, for a store that can't list them; None to list them.
            words: whether to build the keyword index; `store` for a `HybridStore` that searches words itself.
            options: components and settings. The embedder makes the cosines that count as evidence and tell
                duplicates, from the store's vectors if it is a `VectorReader`; the store searches by its own.

        Raises:
            ConfigurationError: components that don't work together, a store that can't list its passages, or one that
                can't search words, where it should.
            ModelError: a model or a tokenizer that isn't available.
            RetrievalError: the store failed.
        """
        check_keywords(cls.from_store, options)
        in_store = _is_in_store(words, store, passages)
        retriever = cls(store, make_engine(**options), words_in_store=in_store)
        if in_store:
            return retriever
        if passages is not None:
            retriever.index(passages)
        elif words:
            retriever.refresh()
        return retriever

    @property
    def is_stale(self) -> bool:
        """Whether the store is known to hold other passages than the keyword index.

        Raises:
            RetrievalError: the store failed.
        """
        if not self._keywords.is_built:
            return False
        with wrap_errors(RetrievalError, f"counting what {self.store.name} holds"):
            size = self.store.size()
        return self._keywords.is_stale(size)

    def refresh(self) -> int:
        """Rebuild the keyword index from all passages of the store. Queries meanwhile use the old one.

        Returns:
            The number of indexed passages.

        Raises:
            ConfigurationError: the store can't list its passages, or searches words itself.
            RetrievalError: the store failed.
        """
        if self._words_in_store:
            raise ConfigurationError(f"{self.store.name} searches words itself: there is nothing to refresh")
        with wrap_errors(RetrievalError, f"reading all of {self.store.name}"):
            return self._keywords.rebuild(self.store.list_passages)

    def index(self, passages: Sequence[Passage]) -> None:
        """Add passages of the store to the keyword index; known ids are replaced.

        Raises:
            PassageError: an item that is no `Passage`; nothing was indexed.
        """
        self._keywords.add(passages)

    def unindex(self, ids: Iterable[str]) -> None:
        """Remove passages from the keyword index; unknown ids are ignored."""
        self._keywords.remove(self.store.canonical_id(i) for i in ids)

    def clear_index(self) -> None:
        """Empty the keyword index."""
        self._keywords.rebuild(lambda: ())

    def updating(self) -> AbstractContextManager[None]:
        """Suspend the `StaleWarning` while the store and the keyword index change together."""
        return self._keywords.updating()

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
            QueryError: a blank query, one that isn't text, or one of more than 4,096 tokens.
            ConfigurationError: an unknown option, a value out of range, or keyword search without a keyword index.
            RetrievalError: the store failed.
            ModelError: a model failed.
        """
        check_keywords(self.retrieve, overrides)
        check_query(query)
        settings = self.engine.resolve_config(config, overrides)
        if settings.lexical not in (None, "bm25"):
            raise ConfigurationError(f"lexical must be 'bm25' or None over an external store, got {settings.lexical!r}")
        if self._words_in_store:
            return self._retrieve_both(query, settings, where, observer)
        is_indexed, is_stale = self._keywords.is_built, self._warn_if_stale()
        if is_stale:  # its words may be those of passages that the store has no more
            settings = settings.override(spelling=False)
        if settings.sources == "lexical" and not is_indexed:
            raise ConfigurationError(
                f"sources='lexical' needs a keyword index of {self.store.name}: call refresh(), or give the documents"
            )
        dense = self._with_stored_vectors(_Nearest(self._keywords, self.store, where))
        lexical = self._with_stored_vectors(_ByKeywords(self._keywords, self.store, where))
        hybrid = [dense, lexical] if is_indexed else [dense]
        sources: dict[str, list[Source]] = {"dense": [dense], "lexical": [lexical], "hybrid": hybrid}
        return self.engine.run(
            Query(text=query),
            settings,
            sources[settings.sources],
            fallback=lexical if is_indexed else None,
            notes={"words": "stale"} if is_stale else {},
            observer=observer,
        )

    def _retrieve_both(
        self,
        query: str,
        settings: RetrieverConfig,
        where: Any,  # noqa: ANN401 - the store's own language
        observer: Observer | None,
    ) -> Context:
        """Return the context from the store's own joint search."""
        if settings.sources != "hybrid":
            raise ConfigurationError(
                f"sources must be 'hybrid' where {self.store.name} searches vectors and words itself, "
                f"got {settings.sources!r}"
            )
        source = self._with_stored_vectors(_Both(self.store, where))
        return self.engine.run(Query(text=query), settings, [source], fallback=None, observer=observer)

    def _with_stored_vectors(self, source: Source) -> Source:
        return _Stored(source, self.store, self.engine.embedder) if isinstance(self.store, VectorReader) else source

    def _warn_if_stale(self) -> bool:
        """Return whether the keyword index is stale; warn once until it is up to date again."""
        stale = self.is_stale
        if stale and not self._warned:
            warn(
                f"{self.store.name} holds other passages than the {len(self._keywords)} in the keyword index: call "
                "refresh()",
                StaleWarning,
                stacklevel=3,
            )
        self._warned = stale
        return stale


@dataclass(frozen=True, slots=True)
class _Nearest:
    keywords: KeywordIndex
    store: ExternalStore
    where: Any
    name: str = "dense"

    def search(self, query: Query, k: int) -> list[Candidate]:
        with wrap_errors(RetrievalError, f"searching {self.store.name}"):
            hits = self.store.nearest(query.text, k, self.where)
        first: dict[str, tuple[Passage, float | None]] = {}
        for passage, score in hits:
            first.setdefault(passage.id, (passage, score))
        self.keywords.compare(passage for passage, _ in first.values())
        return [_candidate(*hit, name=self.name) for hit in first.values() if hit[0].text.strip()][:k]


@dataclass(frozen=True, slots=True)
class _ByKeywords:
    keywords: KeywordIndex
    store: ExternalStore
    where: Any
    name: str = "lexical"

    def search(self, query: Query, k: int) -> list[Candidate]:
        """Return the k best hits that the store still holds; the search grows until there are k or no more."""
        limit = k
        fetched: dict[str, Passage | None] = {}
        while True:
            hits = self.keywords.search(query.text, limit)
            fresh = [i for i, _ in hits if i not in fetched]
            with wrap_errors(RetrievalError, f"reading from {self.store.name}"):
                stored = {p.id: p for p in self.store.fetch(fresh, self.where)} if fresh else {}
            fetched |= {i: stored.get(i) for i in fresh}
            valid = [(passage, score) for i, score in hits if (passage := fetched[i]) and passage.text.strip()]
            if len(valid) >= k or len(hits) < limit:
                return [_candidate(passage, score, name=self.name) for passage, score in valid[:k]]
            limit *= GROWTH

    def score_ids(self, query: Query, ids: Sequence[str]) -> dict[str, float]:
        """Return the keyword scores of indexed passages by id, 0 for those that share no word with the query."""
        return self.keywords.score_ids(query.text, ids)

    def word_counter(self, query: Query) -> Callable[[str], int] | None:  # noqa: ARG002
        """Return what counts the passages with a word; None under a filter, whose passages the index doesn't know."""
        return self.keywords.count_texts if self.where is None else None


@dataclass(frozen=True, slots=True)
class _Both:
    store: Any
    where: Any
    name: str = "hybrid"

    def search(self, query: Query, k: int) -> list[Candidate]:
        """Return twice k candidates: as many as two sources have together. The joined scores compare nothing."""
        with wrap_errors(RetrievalError, f"searching {self.store.name}"):
            hits = self.store.search_both(query.text, k, self.where)
        first = {passage.id: passage for passage, _ in reversed(hits) if passage.text.strip()}
        return [_candidate(first.pop(p.id), None, name=self.name) for p, _ in hits if p.id in first][: 2 * k]


@dataclass(frozen=True, slots=True)
class _Stored:
    """A source whose candidates have the vectors that the store holds, where it has usable ones."""

    inner: Source
    store: Any
    embedder: Embedder

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def score_ids(self) -> Callable[[Query, Sequence[str]], Mapping[str, float]] | None:
        return getattr(self.inner, "score_ids", None)

    @property
    def word_counter(self) -> Callable[[Query], Callable[[str], int] | None] | None:
        return getattr(self.inner, "word_counter", None)

    def search(self, query: Query, k: int) -> Sequence[Candidate]:
        candidates = self.inner.search(query, k)
        with wrap_errors(RetrievalError, f"reading vectors from {self.store.name}"):
            truncates = getattr(self.store, "truncates", None)
            is_foreign = truncates is not None and truncates(self.embedder.name)
            ids = [c.id for c in candidates if not is_foreign or is_read_whole(c.passage.content)]
            found = self.store.read_vectors(ids, self.embedder.name)
            vectors = {i: np.asarray(vector, dtype=np.float32) for i, vector in found.items()}
        usable = {i for i, v in vectors.items() if v.shape == (self.embedder.dimension,) and np.isfinite(v).all()}
        return [replace(c, vector=vectors[c.id]) if c.id in usable else c for c in candidates]


def _is_in_store(words: object, store: ExternalStore, passages: Sequence[Passage] | None) -> bool:
    """Return whether the store searches words itself.

    Raises:
        ConfigurationError: another value, a store that can't, or passages that nobody would search.
    """
    if isinstance(words, bool):
        return False
    if words != "store":
        raise ConfigurationError(f"keyword search must be True, False or 'store', got {words!r:.80}")
    if not isinstance(store, HybridStore):
        raise ConfigurationError(f"{store.name} must have a method search_both to search words itself")
    if passages is not None:
        raise ConfigurationError(f"passages must be left out where {store.name} searches words itself")
    return True


def _candidate(passage: Passage, score: float | None, *, name: str) -> Candidate:
    return Candidate(passage=passage, origin=name, scores={} if score is None else {name: float(score)})
