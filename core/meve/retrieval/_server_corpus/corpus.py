"""A retriever's corpus on a server: nothing of its passages is kept in this process."""

import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from meve._locks import ReadWriteLock
from meve.components.lexical.analyzers import Analyzer, search_words
from meve.errors import ConfigurationError, UnknownIdError
from meve.filters import Filter, Where
from meve.pipeline.config import RetrieverConfig
from meve.retrieval._corpus import TIE_MARGIN, check_change, explain_names
from meve.retrieval._server_corpus.records import Hit, PassageServer, Record
from meve.types import Candidate, FloatArray, Passage, Query

MOST_HITS = 4_096
"""The most hits that are fetched to break ties at the limit by id."""


class ServerCorpus:
    """The passages of one collection on a server.

    Args:
        server: holds and searches them.
        analyzer: finds the words of passages and queries; that with which the collection was made.
    """

    def __init__(self, server: PassageServer, analyzer: Analyzer = search_words) -> None:
        self.server = server
        self._analyzer = analyzer
        self.lock = ReadWriteLock()
        """Guards the retriever's settings; what happens to the passages is up to the server."""
        self._names: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.server)

    def __contains__(self, passage_id: object) -> bool:
        return isinstance(passage_id, str) and bool(self.server.known([passage_id]))

    def known(self, ids: Sequence[str]) -> set[str]:
        """Return those of these ids that are taken."""
        return self.server.known(ids)

    def check(self, add: Sequence[Passage], remove: Sequence[str]) -> None:
        """Check the ids of a change before any work is done; raises as `meve.retrieval._corpus.check_change`."""
        ids = [*(passage.id for passage in add), *(i for i in remove if isinstance(i, str))]
        check_change(self.server.known(ids), add, remove)

    def change(
        self, *, add: Sequence[Passage], vectors: FloatArray, tokens: Sequence[int], remove: Sequence[str]
    ) -> None:
        """Remove and add passages; the next search sees the change.

        Args:
            add: n passages.
            vectors: their embeddings, shape (n, d).
            tokens: their token counts, n of them.
            remove: ids.

        Raises:
            ValidationError: as `check`; nothing was changed.
            StorageError: the server failed.
        """
        records = [
            Record(passage=passage, tokens=count, vector=vector, words=Counter(self._analyzer(passage.content)))
            for passage, count, vector in zip(add, tokens, vectors, strict=True)
        ]
        self.server.write(records, remove)

    def new_ids(self, count: int) -> list[str]:
        """Return unused ids for texts that come without; each is given out once."""
        return [f"p{uuid.uuid4().hex}" for _ in range(count)]

    def get(self, passage_id: str) -> Passage:
        """Return the passage of that id.

        Raises:
            UnknownIdError: no passage has that id.
        """
        found = self.server.fetch([passage_id]) if isinstance(passage_id, str) else []
        if not found:
            raise UnknownIdError(f"no passage has the id {passage_id!r}")
        return found[0].passage

    def passages(self, where: Where | None = None) -> Iterator[Passage]:
        """Return every passage that a filter admits.

        Raises:
            ConfigurationError: the filter is a function.
        """
        admitted = make_filter(where, self.server)
        found = self.server.passages(admitted)
        return (each for each in found if admitted is None or admitted.matches(each.metadata))

    def explain_unknown_names(self, where: Where | None) -> dict[str, str]:
        """Return a sentence for each name of a filter that no passage has in its metadata, by name."""
        if where is None or callable(where) or self._names.issuperset(where):
            return {}
        self._names = self.server.metadata_names()
        return explain_names(where, self._names)

    def sources(self, settings: RetrieverConfig, *, counted: bool) -> tuple["VectorSearch", "WordSearch"]:
        """Return the sources that search by vectors and by words.

        Raises:
            ConfigurationError: settings that name another keyword index.
        """
        if settings.lexical not in (None, "bm25"):
            raise ConfigurationError(
                f"lexical must be 'bm25' or None over {self.server.name}, got {settings.lexical!r}"
            )
        return VectorSearch(self.server, counted), WordSearch(self.server, counted, self._analyzer)

    def describe(self) -> dict[str, object]:
        """Return what searches the vectors and the words."""
        return {"dense": self.server.kind, "lexical": ["bm25"]}

    def close(self) -> None:
        """Close the connections."""
        self.server.close()


@dataclass(frozen=True, slots=True)
class VectorSearch:
    """A source of the candidates with the nearest vectors."""

    server: PassageServer
    counted: bool
    """Whether the stored token counts are those of the tokenizer in use."""
    name: str = "dense"

    def search(self, query: Query, k: int) -> list[Candidate]:
        """Return at most k candidates with their stored vectors and token counts, best first, ties by id.

        Raises:
            ConfigurationError: the query has no vector, or its filter is a function.
            StorageError: the server failed.
        """
        vector, where = query.vector, make_filter(query.where, self.server)
        if vector is None:
            raise ConfigurationError("a dense search needs the vector of the query: give the pipeline an embedder")
        hits = find_best(lambda limit: self.server.nearest(vector, limit, where), k, where)
        return [make_candidate(hit, name=self.name, counted=self.counted) for hit in hits]


@dataclass(frozen=True, slots=True)
class WordSearch:
    """A source of the candidates that share words with the query."""

    server: PassageServer
    counted: bool
    analyzer: Analyzer
    name: str = "lexical"

    def search(self, query: Query, k: int) -> list[Candidate]:
        """Return at most k candidates that share a word with the query, best first, ties by id; raises as above."""
        words, where = Counter(self.analyzer(query.text)), make_filter(query.where, self.server)
        if not words:
            return []
        hits = find_best(lambda limit: self.server.by_words(words, limit, where), k, where)
        return [make_candidate(hit, name=self.name, counted=self.counted) for hit in hits]

    def score_ids(self, query: Query, ids: Sequence[str]) -> dict[str, float]:
        """Return the keyword scores of these passages by id, 0 for those that share no word with the query."""
        words = Counter(self.analyzer(query.text))
        return {**dict.fromkeys(ids, 0.0), **(self.server.score_words(words, ids) if words and ids else {})}


def make_filter(where: object, server: PassageServer) -> Filter | None:
    """Return a filter that the server can apply.

    A function may have a method `as_mapping`, which returns a mapping that admits the same passages.

    Raises:
        ConfigurationError: another function, which no server can call.
    """
    if callable(where) and hasattr(where, "as_mapping"):
        where = where.as_mapping()
    if where is None or where == {}:
        return None
    if callable(where):
        raise ConfigurationError(
            f"where must be a mapping over {server.name}, which can't call a function: "
            'give names with values or operators, such as {"year": {"$gte": 2000}}'
        )
    return where if isinstance(where, Filter) else Filter(where)  # type: ignore[arg-type]


def find_best(search: Callable[[int], list[Hit]], k: int, where: Filter | None) -> list[Hit]:
    """Return the k best hits that a filter admits; ties are broken by passage id, also at the limit.

    Args:
        search: returns at most so many hits, by falling score. It may admit a little more than the filter.
        k: how many are wanted.
        where: the filter.
    """
    limit = k + TIE_MARGIN
    while True:
        hits = search(limit)
        valid = [hit for hit in hits if where is None or where.matches(hit.passage.metadata)]
        is_settled = len(valid) > k and (valid[-1].score < valid[k - 1].score or limit >= MOST_HITS)
        if len(hits) < limit or is_settled:
            return sorted(valid, key=lambda hit: (-hit.score, hit.passage.id))[:k]
        limit *= 4


def make_candidate(hit: Hit, *, name: str, counted: bool) -> Candidate:
    """Return a candidate for a hit, with its stored vector."""
    return Candidate(
        passage=hit.passage,
        origin=name,
        scores={name: hit.score},
        vector=hit.vector,
        tokens=hit.tokens if counted else None,
    )
