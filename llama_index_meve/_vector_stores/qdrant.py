"""Indexes over Qdrant."""

from collections.abc import Iterator, Sequence
from typing import Any

from llama_index_meve._async_bridge import ask
from llama_index_meve._nodes import NodePassage, as_passage
from llama_index_meve._vector_stores.base import AnyIndex
from meve.errors import ConfigurationError

PAGE = 1_000


class Qdrant(AnyIndex):
    """QdrantVectorStore, which holds its nodes itself. It may have a client for threads, one for loops, or both."""

    @property
    def lists(self) -> bool:
        """Whether there is a client that a thread can ask."""
        return self.vectors._client is not None

    def native(self, name: str) -> Any:
        """An async method, if there is a client for it."""
        return None if self.vectors._aclient is None else getattr(self.vectors, name)

    def present(self, ids: Sequence[str], where: Any) -> list[NodePassage]:
        """Those that it holds and the filter admits."""
        if not ids or not self.size():
            return []
        from qdrant_client import models

        must: list[Any] = [models.HasIdCondition(has_id=list(ids))]
        if where is not None:  # its get_nodes would join ids and an OR filter by OR
            must.append(self.vectors._build_subfilter(where))
        points, _ = self._asked("scroll", scroll_filter=models.Filter(must=must), limit=len(ids), with_payload=True)
        return self._read(points)

    def everything(self) -> Iterator[NodePassage]:
        """All that it holds, page by page."""
        at = None
        while self.size():
            points, at = self._asked("scroll", limit=PAGE, offset=at, with_payload=True)
            yield from self._read(points)
            if at is None:
                return

    def size(self) -> int:
        """How many it holds."""
        if not self._asked("collection_exists"):
            return 0
        return int(self._asked("count", exact=True).count)

    def _asked(self, name: str, **how: Any) -> Any:
        threads, loops = self.vectors._client, self.vectors._aclient
        blocking = self._refused if threads is None else getattr(threads, name)
        return ask(blocking, None if loops is None else getattr(loops, name), self.vectors.collection_name, **how)

    def _refused(self, *_: Any, **__: Any) -> Any:
        raise ConfigurationError(
            f"the collection {self.vectors.collection_name!r} has an async client alone: await aretrieve and arefresh, "
            "or give QdrantVectorStore(…, client=…)"
        )

    def _read(self, points: Sequence[Any]) -> list[NodePassage]:
        return [as_passage(node) for node in self.vectors.parse_to_query_result(list(points)).nodes or []]
