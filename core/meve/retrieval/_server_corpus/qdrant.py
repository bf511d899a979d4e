"""Passages in Qdrant: named dense and sparse vectors, and the sparse ones weighted by BM25.

A point has the vector of its passage, and the BM25 weight of each of its words; Qdrant multiplies them by the inverse
document frequency. Qdrant doesn't know the mean length of the passages. It is that of the first large change.
"""

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import numpy as np

from meve._extras import require_imports
from meve._fork_safety import ForkSafeLock
from meve._formulas import bm25_norm
from meve.errors import ConfigurationError, StorageError, wrap_errors
from meve.filters import Filter
from meve.retrieval._corpus import check_change
from meve.retrieval._server_corpus.records import About, Hit, Record, Words
from meve.types import FloatArray, Passage

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

NEEDS = {"qdrant_client": "qdrant"}
DENSE, SPARSE = "dense", "words"
ABOUT = "meve"
"""The key of our description in the collection's metadata, which Qdrant has from version 1.16 on."""
LENGTH = "meve_mean_length"
"""The key of the passages' mean length, in content words, which all weights of a collection share."""
K1, B, DEFAULT_LENGTH, ENOUGH = 1.5, 0.75, 64.0, 50
"""BM25's parameters; the mean length until a change brings enough passages, and how many are enough."""
BATCH, PAGE = 128, 500
"""Points in a request that writes, and that reads."""
MOST_NAMES = 10_000
T = TypeVar("T")


class QdrantServer:
    """A collection in Qdrant.

    Args:
        url: `qdrant://host:port`, with `?https=true` for TLS and the API key in QDRANT_API_KEY; `qdrant:///folder` or
            `qdrant://:memory:` for Qdrant's local mode, inside this process.
        collection: its name.

    Raises:
        MissingExtraError: qdrant-client isn't installed.
        ConfigurationError: an invalid URL.
        StorageError: the server can't be used.
    """

    kind = "qdrant"

    def __init__(self, url: str, collection: str) -> None:
        with require_imports("Qdrant", NEEDS):
            import qdrant_client  # noqa: F401
        self._options = _parse_url(url)
        self.is_local = bool({"location", "path"} & set(self._options))
        self._collection = collection
        self.name = f"collection {collection!r} in Qdrant" + (
            f" at {urlsplit(url).hostname}" if not self.is_local else ""
        )
        self._turn = ForkSafeLock()
        self._kept: QdrantClient | None = None
        self._process = os.getpid()
        self._is_closed = False

    @contextmanager
    def _client(self, action: str) -> "Iterator[QdrantClient]":
        """Lend the client; local mode isn't safe between threads, so they take turns.

        Raises:
            StorageError: Qdrant failed.
        """
        with wrap_errors(StorageError, f"{action} {self.name}"):
            with self._turn:
                if self._is_closed:
                    raise StorageError(f"{self.name} is closed: open it again")
                if self._kept is None or (self._process != os.getpid() and not self.is_local):
                    from qdrant_client import QdrantClient

                    self._kept, self._process = QdrantClient(**self._options), os.getpid()
                client = self._kept
            with self._turn if self.is_local else nullcontext():
                yield client

    def about(self) -> About | None:
        """Return the models of the collection; None if it doesn't exist.

        Raises:
            ConfigurationError: a collection that MeVe didn't make.
        """
        with self._client("opening") as client:
            if not client.collection_exists(self._collection):
                return None
            metadata = client.get_collection(self._collection).config.metadata or {}
        if ABOUT not in metadata:
            raise ConfigurationError(
                f"{self.name} wasn't made by MeVe: give another name; to search the collection of another program, "
                "use from_vectorstore of langchain_meve or llama_index_meve (Qdrant must be 1.16 or newer)"
            )
        return About.from_dict(metadata[ABOUT], self.name)

    def create(self, about: About) -> About:
        """Create the collection unless another process has, and return the models that it holds."""
        from qdrant_client import models

        with suppress(StorageError), self._client("creating") as client:  # another process may have been faster
            client.create_collection(
                self._collection,
                vectors_config={DENSE: models.VectorParams(size=about.dimension, distance=models.Distance.DOT)},
                sparse_vectors_config={SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)},
                metadata={ABOUT: about.to_dict()},
            )
        held = self.about()
        if held is None:
            raise StorageError(f"{self.name} can't be created")
        return held

    def __len__(self) -> int:
        with self._client("counting") as client:
            return client.count(self._collection, exact=True).count

    def known(self, ids: Sequence[str]) -> set[str]:
        """Return those of these ids that are taken."""
        return {payload["id"] for payload, _ in self._retrieve(ids, ["id"], [])}

    def fetch(self, ids: Sequence[str]) -> list[Hit]:
        """Return those of these passages that are stored, each with the score 0."""
        return [_make_hit(*point, 0.0) for point in self._retrieve(ids, True, [DENSE])]

    def _retrieve(self, ids: Sequence[str], payload: bool | list[str], vectors: list[str]) -> list[tuple[Any, Any]]:
        points: list[tuple[Any, Any]] = []
        for page in _split(list(dict.fromkeys(ids)), PAGE):
            with self._client("reading") as client:
                found = client.retrieve(self._collection, list(map(to_point_id, page)), payload, vectors)
            points += [(point.payload, point.vector) for point in found]
        return points

    def write(self, add: Sequence[Record], remove: Sequence[str]) -> None:
        """Add and remove records. Each batch is one request; a failure takes back what was added so far."""
        from qdrant_client import models

        known = self.known([*(record.passage.id for record in add), *remove])
        check_change(known, [record.passage for record in add], remove)
        mean = self._mean_length(add) if add else DEFAULT_LENGTH
        points = [_make_point(record, mean) for record in add]
        self._index_fields([point.payload or {} for point in points])
        written: list[models.ExtendedPointId] = []
        try:
            for batch in _split(points, BATCH):
                written += [point.id for point in batch if (point.payload or {})["id"] not in known]
                with self._client("writing to") as client:
                    client.upsert(self._collection, batch, wait=True)
        except BaseException:
            with suppress(Exception), self._client("restoring") as client:
                client.delete(self._collection, written, wait=True)
            raise
        gone: list[models.ExtendedPointId] = [
            to_point_id(each) for each in set(remove).difference(record.passage.id for record in add)
        ]
        for some in _split(gone, PAGE):
            with self._client("writing to") as client:
                client.delete(self._collection, some, wait=True)

    def _mean_length(self, records: Sequence[Record]) -> float:
        """Return the mean length of the collection's passages; the first change with enough of them sets it."""
        with self._client("writing to") as client:
            metadata = client.get_collection(self._collection).config.metadata or {}
            if LENGTH in metadata:
                return float(metadata[LENGTH])
            if len(records) < ENOUGH:
                return DEFAULT_LENGTH
            mean = max(1.0, sum(record.words.total() for record in records) / len(records))
            client.update_collection(self._collection, metadata={LENGTH: mean})
        return mean

    def _index_fields(self, payloads: Sequence[dict[str, Any]]) -> None:
        """Index the fields that filters use; fields that are indexed already stay so."""
        if self.is_local or not payloads:
            return  # local mode compares all
        from qdrant_client import models

        from meve.retrieval._server_corpus.qdrant_filters import NAMES, VALUES, bound_fields

        fields = dict.fromkeys((NAMES, VALUES), models.PayloadSchemaType.KEYWORD)
        fields |= dict.fromkeys(bound_fields(payloads), models.PayloadSchemaType.FLOAT)
        with self._client("writing to") as client:
            known = client.get_collection(self._collection).payload_schema
            for field, kind in fields.items():
                if field not in known:
                    client.create_payload_index(self._collection, field, kind, wait=True)

    def sample(self) -> Hit | None:
        """Return any one of the passages; None if there is none."""
        with self._client("reading") as client:
            points, _ = client.scroll(self._collection, limit=1, with_vectors=[DENSE])
        return _make_hit(points[0].payload, points[0].vector, 0.0) if points else None

    def passages(self, where: Filter | None = None) -> Iterator[Passage]:
        """Return every passage that a filter admits, in the order of Qdrant's ids, page by page."""
        from meve.retrieval._server_corpus.qdrant_filters import make_filter

        scope, after = make_filter(where), None
        while True:
            with self._client("reading") as client:
                points, after = client.scroll(self._collection, scope, limit=PAGE, offset=after)
            yield from (_make_passage(point.payload) for point in points)
            if after is None:
                return

    def nearest(self, vector: FloatArray, limit: int, where: Filter | None) -> list[Hit]:
        """Return at most `limit` passages by falling inner product: all that match the filter, and perhaps others."""
        return self._query(vector.tolist(), DENSE, limit, where)

    def by_words(self, words: Words, limit: int, where: Filter | None) -> list[Hit]:
        """Return at most `limit` passages with one of the words, by falling BM25 score; `where` as for `nearest`."""
        return self._query(_to_sparse({word: float(count) for word, count in words.items()}), SPARSE, limit, where)

    def _query(self, query: Any, using: str, limit: int, where: Filter | None) -> list[Hit]:  # noqa: ANN401
        from qdrant_client import models

        from meve.retrieval._server_corpus.qdrant_filters import make_filter

        is_graph = using == DENSE and not self.is_local
        with self._client("searching") as client:
            points = client.query_points(
                self._collection, query=query, using=using, limit=limit, query_filter=make_filter(where),
                search_params=models.SearchParams(hnsw_ef=max(128, 2 * limit)) if is_graph else None,
                with_vectors=[DENSE],
            ).points  # fmt: skip
        return [_make_hit(point.payload, point.vector, point.score) for point in points]

    def score_words(self, words: Words, ids: Sequence[str]) -> dict[str, float]:
        """Return the BM25 scores of those of these passages that have one of the words, by id."""
        from qdrant_client import models

        query = _to_sparse({word: float(count) for word, count in words.items()})
        scope = models.Filter(must=[models.HasIdCondition(has_id=list(map(to_point_id, ids)))])
        with self._client("searching") as client:
            points = client.query_points(
                self._collection, query=query, using=SPARSE, limit=len(ids), query_filter=scope, with_payload=["id"]
            ).points
        return {(point.payload or {})["id"]: point.score for point in points}

    def metadata_names(self) -> frozenset[str]:
        """Return the names in the metadata of all passages."""
        from meve.retrieval._server_corpus.qdrant_filters import NAMES

        self._index_fields([{"bounds": {}}])
        with self._client("searching") as client:
            found = client.facet(self._collection, NAMES, limit=MOST_NAMES)
        return frozenset(str(hit.value) for hit in found.hits)

    def close(self) -> None:
        """Close the connections."""
        with self._turn:
            client, self._kept, self._is_closed = self._kept, None, True
        if client is not None:
            client.close()


def _parse_url(url: str) -> dict[str, Any]:
    """Return the arguments of the client.

    Raises:
        ConfigurationError: an invalid URL.
    """
    if url == "qdrant://:memory:":
        return {"location": ":memory:"}
    message = (
        "a Qdrant URL must be like qdrant://host:6333, qdrant://host:6333?https=true or qdrant:///folder; "
        "an API key is read from QDRANT_API_KEY"
    )
    try:
        parts = urlsplit(url)
        port, host, path = parts.port, parts.hostname, parts.path.rstrip("/")
    except ValueError:
        raise ConfigurationError(message) from None
    if "@" in parts.netloc or bool(host) is bool(path) or parts.query not in ("", "https=true", "https=false"):
        raise ConfigurationError(message)
    if not host:
        return {"path": path, "force_disable_check_same_thread": True}
    return {
        "host": host,
        "port": port or 6333,
        "https": parts.query == "https=true",
        "api_key": os.environ.get("QDRANT_API_KEY"),
        "timeout": 60,
        "check_compatibility": False,  # it asks in a thread that nobody waits for
    }


def to_point_id(passage_id: str) -> str:
    """Return the id of a passage's point."""
    return str(uuid.UUID(bytes=blake2b(passage_id.encode("utf-8", "surrogatepass"), digest_size=16).digest()))


def _split(items: list[T], size: int) -> list[list[T]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _make_point(record: Record, mean: float) -> "models.PointStruct":
    from qdrant_client import models

    from meve.retrieval._server_corpus.qdrant_filters import make_fields

    passage = record.passage
    norm = float(bm25_norm(np.array(record.words.total()), mean, K1, B))
    weights = {word: count * (K1 + 1.0) / (count + norm) for word, count in record.words.items()}
    payload = {
        "id": passage.id, "title": passage.title, "text": passage.text, "metadata": dict(passage.metadata),
        "tokens": record.tokens, **make_fields(passage.metadata),
    }  # fmt: skip
    vectors = {DENSE: record.vector.tolist(), SPARSE: _to_sparse(weights)}
    return models.PointStruct(id=to_point_id(passage.id), payload=payload, vector=vectors)


def _to_sparse(weights: dict[str, float]) -> "models.SparseVector":
    """Return the weights of words under the numbers of their words; of words with one number, the sum."""
    from qdrant_client import models

    numbered: dict[int, float] = {}
    for word, weight in weights.items():
        number = int.from_bytes(blake2b(word.encode(), digest_size=4).digest(), "big")
        numbered[number] = numbered.get(number, 0.0) + weight
    return models.SparseVector(indices=list(numbered), values=list(numbered.values()))


def _make_passage(payload: Any) -> Passage:  # noqa: ANN401
    return Passage(id=payload["id"], title=payload["title"], text=payload["text"], metadata=payload["metadata"])


def _make_hit(payload: Any, vector: Any, score: float) -> Hit:  # noqa: ANN401
    stored = np.array(vector[DENSE], dtype=np.float32)
    return Hit(passage=_make_passage(payload), tokens=payload["tokens"], vector=stored, score=float(score))
