"""Passages in PostgreSQL: pgvector searches their vectors, and BM25 is computed from the database's text search.

A passage's words are a `tsvector`, whose GIN index finds the passages that have a word; a column counts those that the
passage repeats. A second table counts how many passages have each word. So scores are those of
`meve.components.lexical.bm25`, and no process holds the words.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from meve._formulas import bm25_idf, bm25_norm
from meve._postgres import PostgresDatabase, Rows
from meve._repeating import repeat_rolled_back
from meve._warn_once import warn_once
from meve.errors import PassageError, StorageError
from meve.filters import Filter
from meve.retrieval._corpus import check_change
from meve.retrieval._server_corpus.postgres_filters import is_storable, make_condition
from meve.retrieval._server_corpus.postgres_scores import count_next, make_scores, match_any, match_reaching
from meve.retrieval._server_corpus.postgres_tables import LOCK, open_tables
from meve.retrieval._server_corpus.records import About, Hit, Record, Words
from meve.types import FloatArray, Passage

K1, B = 1.5, 0.75
LONGEST_WORD, LONGEST_ID, MOST_WORD_BYTES = 500, 2_000, 1 << 20
"""Bytes of a word that is kept as it is, and of an id; and of all distinct words of a passage."""
EXACT_UP_TO = 10_000
"""The number of passages up to which every vector is compared, without a graph."""
MOST_DIMENSIONS = 2_000
"""The most dimensions of a vector in a graph of pgvector."""
PAGE = 500

_PLAN = {"plan_cache_mode": "force_custom_plan"}  # the best plan depends on the filter and the words
_PLANNED = "; SET LOCAL plan_cache_mode = force_custom_plan"


class PostgresServer:
    """A collection in a PostgreSQL database with pgvector.

    Args:
        url: of the database.
        collection: its name.

    Raises:
        MissingExtraError: psycopg isn't installed.
        StorageError: the database can't be used.
    """

    kind = "postgresql"

    def __init__(self, url: str, collection: str) -> None:
        self._database = PostgresDatabase(url, lock_seconds=600.0)  # a writer waits for another's whole change
        self._collection = collection
        self.name = f"collection {collection!r} in {self._database.name}"
        self._schema = open_tables(self._database)
        self._table = self._words = ""
        self._graph_above = EXACT_UP_TO

    def about(self) -> About | None:
        """Return the models of the collection; None if it doesn't exist."""
        found = self._database.query("SELECT number, about FROM meve_corpora WHERE name = ?", (self._collection,))
        if not found:
            return None
        ((number, about),) = found
        self._table, self._words = f"meve_corpus_{number}", f"meve_corpus_{number}_words"
        return About.from_dict(about, self.name)

    @repeat_rolled_back
    def create(self, about: About) -> About:
        """Create the collection unless another process has, and return the models that it holds."""
        with self._database.writing() as rows:
            rows.execute("SELECT pg_advisory_xact_lock(?)", (LOCK,))
            found = rows.execute(
                "INSERT INTO meve_corpora (name, about) VALUES (?, ?::jsonb) ON CONFLICT DO NOTHING RETURNING number",
                (self._collection, json.dumps(about.to_dict())),
            ).fetchone()
            if found is not None:
                self._create_tables(rows, f"meve_corpus_{found[0]}", about.dimension)
        held = self.about()
        if held is None:
            raise StorageError(f"{self.name} was deleted while it was opened: open it again")
        return held

    def _create_tables(self, rows: Rows, table: str, dimension: int) -> None:
        for statement in (
            f'CREATE TABLE {table} (id TEXT COLLATE "C" PRIMARY KEY, place BIGINT GENERATED ALWAYS AS IDENTITY, '
            "title TEXT NOT NULL, text TEXT NOT NULL, stated JSON NOT NULL, metadata JSONB NOT NULL, "
            "tokens INTEGER NOT NULL, length INTEGER NOT NULL, words TSVECTOR NOT NULL, repeated JSONB NOT NULL, "
            f"vector {self._schema}.vector({dimension}) NOT NULL) WITH (toast_tuple_target = 4080)",
            # in the row itself, which is read faster than from a table beside it
            f"ALTER TABLE {table} ALTER COLUMN words SET STORAGE MAIN, ALTER COLUMN vector SET STORAGE MAIN",
            f"CREATE INDEX ON {table} (place)",
            f"CREATE INDEX ON {table} USING gin (words)",
            f"CREATE INDEX ON {table} USING gin (metadata jsonb_path_ops)",
            f'CREATE TABLE {table}_words (word TEXT COLLATE "C" PRIMARY KEY, texts BIGINT NOT NULL) '
            "WITH (fillfactor = 70)",
        ):
            rows.execute(statement)

    def __len__(self) -> int:
        ((count,),) = self._database.query("SELECT passages FROM meve_corpora WHERE name = ?", (self._collection,))
        return int(count)

    def known(self, ids: Sequence[str]) -> set[str]:
        """Return those of these ids that are taken."""
        storable = [each for each in ids if is_storable(each)]
        found = self._database.query(f"SELECT id FROM {self._table} WHERE id = ANY(?)", (storable,)) if storable else []
        return {each for (each,) in found}

    def write(self, add: Sequence[Record], remove: Sequence[str]) -> None:
        """Remove and add records in one transaction; then build the graph of the vectors, if there are many."""
        for record in add:
            _check_storable(record)
        count = self._change(add, remove)
        if add and count > self._graph_above and len(add[0].vector) <= MOST_DIMENSIONS:
            self._build_graph(count)

    @repeat_rolled_back
    def _change(self, add: Sequence[Record], remove: Sequence[str]) -> int:
        """Remove and add records, and return how many there are then."""
        with self._database.writing() as rows:
            found = rows.execute("SELECT names FROM meve_corpora WHERE name = ? FOR UPDATE", (self._collection,))
            ((names,),) = found.fetchall()
            ids = [*(record.passage.id for record in add), *remove]
            taken = rows.execute(f"SELECT id FROM {self._table} WHERE id = ANY(?)", (ids,)).fetchall()
            check_change({each for (each,) in taken}, [record.passage for record in add], remove)
            fewer = self._delete(rows, remove) if remove else 0
            more = self._insert(rows, add) if add else 0
            new = {name for record in add for name in record.passage.metadata}.difference(names)
            ((count,),) = rows.execute(
                "UPDATE meve_corpora SET passages = passages + ?, words = words + ?, names = names || ?::text[] "
                "WHERE name = ? RETURNING passages",
                (len(add) - len(remove), more - fewer, sorted(new), self._collection),
            ).fetchall()
        return int(count)

    def _delete(self, rows: Rows, ids: Sequence[str]) -> int:
        gone = rows.execute(
            f"UPDATE {self._words} w SET texts = w.texts - n.texts FROM (SELECT lexeme, count(*) AS texts "
            f"FROM {self._table} p, unnest(p.words) WHERE id = ANY(?) GROUP BY lexeme) n "
            "WHERE w.word = n.lexeme RETURNING w.word, w.texts",
            (list(ids),),
        ).fetchall()
        unused = [word for word, texts in gone if not texts]
        rows.execute(f"DELETE FROM {self._words} WHERE word = ANY(?)", (unused,))
        lengths = rows.execute(f"DELETE FROM {self._table} WHERE id = ANY(?) RETURNING length", (list(ids),))
        return sum(length for (length,) in lengths.fetchall())

    def _insert(self, rows: Rows, records: Sequence[Record]) -> int:
        rows.executemany(
            f"INSERT INTO {self._table} (id, title, text, stated, metadata, tokens, length, words, repeated, vector) "
            f"SELECT ?, ?, ?, j, j::jsonb, ?, ?, array_to_tsvector(?::text[]), ?::jsonb, ?::{self._schema}.vector "
            "FROM (SELECT ?::json AS j) given",
            [
                (
                    record.passage.id, record.passage.title, record.passage.text, record.tokens, record.words.total(),
                    list({_lexeme(word) for word in record.words}),
                    json.dumps({_lexeme(word): count for word, count in record.words.items() if count > 1}),
                    _to_text(record.vector),
                    json.dumps(dict(record.passage.metadata)),
                )
                for record in records
            ],
        )  # fmt: skip
        texts = Counter(_lexeme(word) for record in records for word in record.words)
        rows.execute(
            f"INSERT INTO {self._words} SELECT * FROM unnest(?::text[], ?::bigint[]) "
            f"ON CONFLICT (word) DO UPDATE SET texts = {self._words}.texts + excluded.texts",
            (list(texts), list(texts.values())),
        )
        return sum(record.words.total() for record in records)

    def _build_graph(self, count: int) -> None:
        """Build the graph of the vectors, unless it exists; other writers wait.

        If that fails, a warning is logged, and it is tried again when there are twice as many passages.
        """
        try:
            if self._has_graph():
                return
            with self._database.writing("; SET LOCAL statement_timeout = 0") as rows:
                rows.execute("SELECT pg_advisory_xact_lock(?)", (LOCK,))
                rows.execute(
                    f"CREATE INDEX IF NOT EXISTS {self._table}_graph ON {self._table} "
                    f"USING hnsw (vector {self._schema}.vector_ip_ops)"
                )
        except StorageError as error:
            self._graph_above = 2 * count
            warn_once(
                f"graph of {self.name}",
                "the passages are stored, but the graph of the vectors can't be built (%s): every vector of %s is "
                "compared until a later change builds it, by a process that is started anew or beyond %d passages",
                error, self.name, self._graph_above,
            )  # fmt: skip

    def _has_graph(self) -> bool:
        return self._database.query("SELECT to_regclass(?)", (f"{self._table}_graph",)) != [(None,)]

    def fetch(self, ids: Sequence[str]) -> list[Hit]:
        """Return those of these passages that are stored, each with the score 0."""
        storable = [each for each in ids if is_storable(each)]
        return _hits(self._database.query(f"SELECT {_COLUMNS}, 0.0 FROM {self._table} WHERE id = ANY(?)", (storable,)))

    def sample(self) -> Hit | None:
        """Return the first of the passages; None if there is none."""
        found = _hits(self._database.query(f"SELECT {_COLUMNS}, 0.0 FROM {self._table} ORDER BY place LIMIT 1"))
        return found[0] if found else None

    def passages(self, where: Filter | None = None) -> Iterator[Passage]:
        """Return every passage that a filter admits, in the order in which they were added, page by page."""
        condition, values = make_condition(where)
        after = 0
        while True:
            page = self._database.query(
                f"SELECT place, id, title, text, stated FROM {self._table} WHERE place > ? AND {condition} "
                "ORDER BY place LIMIT ?",
                (after, *values, PAGE),
            )
            yield from (Passage(id=id, title=title, text=text, metadata=stated) for _, id, title, text, stated in page)
            if len(page) < PAGE:
                return
            after = page[-1][0]

    def nearest(self, vector: FloatArray, limit: int, where: Filter | None) -> list[Hit]:
        """Return at most `limit` passages by falling inner product: all that match the filter, and perhaps others.

        The graph goes on when the filter leaves too few, and if it gives up, all that match are compared.
        """
        condition, values = make_condition(where)
        product = f"vector OPERATOR({self._schema}.<#>) ?::{self._schema}.vector"  # the negative inner product
        given = _to_text(vector)
        statement = (  # the columns of the best only, since the others would be read too
            f"SELECT {_COLUMNS}, score FROM (SELECT id, -({product}) AS score FROM {self._table} WHERE {condition} "
            f"ORDER BY {product} LIMIT {limit}) best JOIN {self._table} USING (id)"
        )
        parameters = (given, *values, given)
        graph = {"hnsw.iterative_scan": "relaxed_order", "hnsw.ef_search": str(_breadth(limit))}
        hits = _hits(self._database.query(statement, parameters, {**_PLAN, **graph}))
        if len(hits) < limit and self._has_graph():
            hits = _hits(self._database.query(statement, parameters, {**_PLAN, "enable_indexscan": "off"}))
        return sorted(hits, key=lambda hit: -hit.score)

    def by_words(self, words: Words, limit: int, where: Filter | None) -> list[Hit]:
        """Return at most `limit` passages with one of the words, by falling BM25 score; `where` as for `nearest`.

        Passages with the rarest words are scored first. Then only those can be among the best whose words together can
        reach the last of these scores; the index finds them.

        Source: Turtle and Flood, Query Evaluation: Strategies and Optimizations (1995): MaxScore.
        """
        condition, values = make_condition(where)
        with self._database.reading(_PLANNED) as rows:
            factors, texts, passages, scoring = self._weigh(rows, words)
            ranked = list(factors)
            read = 0
            hits: list[Hit] = []
            while read < len(ranked):
                read = count_next(ranked, texts, read, passages)
                matching = match_any(ranked[:read]) if read < len(ranked) else []
                hits = self._score(rows, matching, factors, scoring, condition, values, limit)
                if len(hits) < limit:
                    continue
                if sum(factors[word] for word in ranked[read:]) < hits[-1].score:
                    break
                if query := match_reaching(hits[-1].score, factors):
                    return self._score(rows, [query], factors, scoring, condition, values, limit)
        return hits

    def score_words(self, words: Words, ids: Sequence[str]) -> dict[str, float]:
        """Return the BM25 scores of those of these passages that have one of the words, by id."""
        with self._database.reading(_PLANNED) as rows:
            factors, _, _, scoring = self._weigh(rows, words)
            if not factors:
                return {}
            hits = self._score(rows, [], factors, scoring, "id = ANY(?)", [list(ids)], len(ids))
        return {hit.passage.id: hit.score for hit in hits}

    def _weigh(self, rows: Rows, words: Words) -> tuple[dict[str, float], dict[str, int], int, tuple[float, float]]:
        """Return the most that each known word adds to a score, the largest first, and its number of passages.

        Then come the number of all passages, and the parts of the BM25 norm.
        """
        times = Counter({_lexeme(word): count for word, count in words.items()})
        found = rows.execute(
            f"SELECT c.passages, c.words, w.word, w.texts FROM meve_corpora c JOIN {self._words} w "
            "ON w.word = ANY(?) AND w.texts > 0 WHERE c.name = ?",
            (list(times), self._collection),
        ).fetchall()
        if not found:
            return {}, {}, 0, (0.0, 0.0)
        total, length = found[0][:2]
        texts = {word: count for _, _, word, count in found}
        idf = bm25_idf(np.array(list(texts.values())), total).tolist()
        none, one = bm25_norm(np.arange(2), length / total, K1, B).tolist()
        factors = {word: (K1 + 1.0) * times[word] * weight for word, weight in zip(texts, idf, strict=True)}
        ranked = dict(sorted(factors.items(), key=lambda each: -each[1]))
        return ranked, texts, total, (none, one - none)

    def _score(
        self, rows: Rows, matching: Sequence[str], factors: dict[str, float], scoring: tuple[float, float],
        condition: str, values: Iterable[Any], limit: int,
    ) -> list[Hit]:  # fmt: skip
        """Return the best passages by the words of these factors; `matching` as for `make_scores`."""
        norms = f"(SELECT *, {scoring[0]!r}::float8 + {scoring[1]!r}::float8 * length AS norm FROM {self._table})"
        scores, given = make_scores(norms, factors, matching, condition, list(values))
        found = rows.execute(
            f"SELECT {_COLUMNS}, score FROM ({scores} ORDER BY score DESC, id LIMIT {limit}) best "
            f"JOIN {self._table} USING (id) ORDER BY score DESC, id",
            given,
        ).fetchall()
        return _hits(found)

    def metadata_names(self) -> frozenset[str]:
        """Return the names in the metadata of all passages, and of removed ones."""
        ((names,),) = self._database.query("SELECT names FROM meve_corpora WHERE name = ?", (self._collection,))
        return frozenset(names)

    def close(self) -> None:
        """Close all connections."""
        self._database.close()


_NULL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""The null character in JSON; not a backslash before `u0000`."""
_COLUMNS = "id, title, text, stated, tokens, vector::real[]"


def _hits(found: Iterable[tuple[Any, ...]]) -> list[Hit]:
    return [
        Hit(
            passage=Passage(id=id, title=title, text=text, metadata=metadata),
            tokens=tokens,
            vector=np.array(vector, dtype=np.float32),
            score=float(score),
        )
        for id, title, text, metadata, tokens, vector, score in found
    ]


def _breadth(limit: int) -> int:
    """Return how many neighbours the search of a graph keeps, in the range that pgvector allows."""
    return min(max(100, 2 * limit), 1_000)


def _check_storable(record: Record) -> None:
    """Check what PostgreSQL can't hold.

    Raises:
        PassageError: a null character, a very long id, or too many distinct words.
    """
    passage = record.passage
    metadata = json.dumps(dict(passage.metadata), ensure_ascii=False)
    if "\0" in f"{passage.id}{passage.title}{passage.text}" or _NULL.search(metadata):
        raise PassageError(
            f"passage {passage.id!r} must not hold the null character in PostgreSQL: remove it; nothing was changed"
        )
    if len(passage.id.encode()) > LONGEST_ID:
        raise PassageError(
            f"ids in PostgreSQL have at most {LONGEST_ID:,} bytes, got {len(passage.id.encode()):,}: "
            f"{passage.id!r:.80}; nothing was changed"
        )
    if sum(len(_lexeme(word).encode()) + 8 for word in record.words) > MOST_WORD_BYTES:
        raise PassageError(
            f"passage {passage.id!r} has more distinct words than PostgreSQL's text search can hold: split it; "
            "nothing was changed"
        )


def _lexeme(word: str) -> str:
    """Return how a word is kept: a very long one, such as encoded data, as its hash."""
    encoded = word.encode()
    return word if len(encoded) <= LONGEST_WORD else f"{blake2b(encoded, digest_size=16).hexdigest()}~"


def _to_text(vector: FloatArray) -> str:
    return f"[{','.join(f'{x:.9g}' for x in vector.tolist())}]"
