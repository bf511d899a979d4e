"""The adapter for indexes over Qdrant."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llama_index.core.indices.vector_store.base import VectorStoreIndex

from llama_index_meve._async_bridge import await_or_call
from llama_index_meve._nodes import NodePassage, node_to_passage
from llama_index_meve._vector_stores.base import IndexStore
from meve.errors import ConfigurationError
from meve.integrations._qdrant_vectors import read_point_vectors
from meve.types import FloatArray

_PAGE_SIZE = 1_000


class QdrantStore(IndexStore):
    """QdrantVectorStore, which holds its nodes, with a sync client, an async client, or both."""

    def __init__(self, index: VectorStoreIndex) -> None:
        super().__init__(index)
        self.can_list = self.vectors._client is not None

    def async_method(self, name: str) -> Any:
        return None if self.vectors._aclient is None else getattr(self.vectors, name)

    def check_hybrid(self) -> None:
        """Check that the store has sparse vectors."""
        if not self.vectors.enable_hybrid:
            raise ConfigurationError("keyword_search='store' needs QdrantVectorStore(enable_hybrid=True)")

    def fetch(self, ids: Sequence[str], where: Any) -> list[NodePassage]:
        if not ids or not self.size():
            return []
        from qdrant_client import models

        must: list[Any] = [models.HasIdCondition(has_id=list(ids))]
        if where is not None:  # get_nodes would join the ids to an OR filter by OR
            must.append(self.vectors._build_subfilter(where))
        points, _ = self._call("scroll", scroll_filter=models.Filter(must=must), limit=len(ids), with_payload=True)
        return self._read(points)

    def list_passages(self) -> Iterator[NodePassage]:
        offset = None
        while self.size():
            points, offset = self._call("scroll", limit=_PAGE_SIZE, offset=offset, with_payload=True)
            yield from self._read(points)
            if offset is None:
                return

    def size(self) -> int:
        if not self._call("collection_exists"):
            return 0
        return int(self._call("count", exact=True).count)

    def _read_vectors(self, ids: Sequence[str]) -> Mapping[str, FloatArray]:
        points = self._call("retrieve", ids=list(ids), with_payload=False, with_vectors=True)
        return read_point_vectors(points, {i: i for i in ids}, self.vectors.dense_vector_name)

    def _call(self, name: str, **arguments: Any) -> Any:
        client, async_client = self.vectors._client, self.vectors._aclient
        blocking = self._require_sync_client if client is None else getattr(client, name)
        native = None if async_client is None else getattr(async_client, name)
        return await_or_call(blocking, native, self.vectors.collection_name, **arguments)

    def _require_sync_client(self, *_: Any, **__: Any) -> Any:
        raise ConfigurationError(
            f"the collection {self.vectors.collection_name!r} has only an async client: await aretrieve and arefresh, "
            "or give QdrantVectorStore(…, client=…)"
        )

    def _read(self, points: Sequence[Any]) -> list[NodePassage]:
        return [node_to_passage(node) for node in self.vectors.parse_to_query_result(list(points)).nodes or []]
