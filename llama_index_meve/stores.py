"""LlamaIndex's vector indexes as stores for the five phases: how each searches, filters, counts and lists."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.schema import BaseNode, QueryBundle
from llama_index.core.vector_stores.types import VectorStoreQuery
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from llama_index_meve.nodes import NodePassage, as_passage, as_passages
from meve.errors import ConfigurationError

PAGE = 1_000


def store_of(index: VectorStoreIndex) -> "AnyIndex":
    """The way to an index: one of its own for the vector stores that are known here, else what all have in common."""
    kinds = [kind.__name__ for kind in type(index.vector_store).__mro__]
    for name, made in KNOWN.items():
        if name in kinds:
            return made(index)
    return Described(index) if not index.vector_store.stores_text else AnyIndex(index)


class AnyIndex:
    """What every index can: search. Filters pass through; by words none is taken for admitted under one."""

    def __init__(self, index: VectorStoreIndex) -> None:
        self.index: Any = index
        self.vectors: Any = index.vector_store

    @property
    def name(self) -> str:
        """The vector store's class."""
        return type(self.vectors).__name__

    def canonical(self, passage_id: str) -> str:
        """An id as the store spells it."""
        return passage_id

    def nearest(self, query: str, k: int, where: Any) -> list[tuple[NodePassage, float | None]]:
        """What the index's own retriever brings."""
        retriever = self.index.as_retriever(similarity_top_k=k, filters=where)
        found = retriever.retrieve(QueryBundle(query_str=query))
        made = [(as_passage(each.node), each.score) for each in found]
        return [(passage, score) for passage, score in made if passage.text.strip()]

    def present(self, ids: Sequence[str], where: Any) -> list[NodePassage]:
        """Which of these it still holds; with a filter, none."""
        if where is not None:
            return []
        try:
            return as_passages(self.vectors.get_nodes(node_ids=list(ids)))
        except NotImplementedError:
            return []

    def everything(self) -> Iterable[NodePassage]:
        """All that it holds.

        Raises:
            ConfigurationError: it can't tell.
        """
        raise ConfigurationError(
            f"{self.name} can't list what it holds: give from_index(…, nodes=…) to search by words as well"
        )

    def size(self) -> int | None:
        """How many it holds; None where it can't tell."""
        return None


class Described(AnyIndex):
    """A vector store that holds no text: the index says which nodes are in it, the document store what they are.

    Deleting from an index leaves its nodes in the document store by default, and may leave their vectors (in
    FaissMapVectorStore, by document, after which the stock retriever raises): what the index no longer names is gone.
    """

    def nearest(self, query: str, k: int, where: Any) -> list[tuple[NodePassage, float | None]]:
        """What the vector store brings of what the index names."""
        vector = self.index._embed_model.get_agg_embedding_from_queries([query])
        reach = k
        while True:
            asked = VectorStoreQuery(query_embedding=vector, similarity_top_k=reach, query_str=query, filters=where)
            found = self.vectors.query(asked)
            scores = found.similarities or [None] * len(found.ids or [])
            hits = list(zip(found.ids or [], scores, strict=True))
            named = [(self.index.index_struct.nodes_dict.get(i), score) for i, score in hits]
            alive = {i: score for i, score in named if i is not None}
            if len(alive) >= k or len(hits) < reach:
                passages = {p.id: p for p in as_passages(self._nodes(list(alive)))}
                return [(passages[i], score) for i, score in alive.items() if i in passages][:k]
            reach *= 4

    def present(self, ids: Sequence[str], where: Any) -> list[NodePassage]:
        """Which of these the index names, and the filter admits where it can be asked."""
        if where is not None and not self.can_filter:
            return []
        named = self._named()
        return as_passages(self._nodes([i for i in ids if i in named and self.admitted(i, where)]))

    can_filter = False

    def admitted(self, node_id: str, where: Any) -> bool:  # noqa: ARG002
        """Whether the filter lets this node through."""
        return where is None

    def everything(self) -> Iterable[NodePassage]:
        """All that the index names."""
        return as_passages(self._nodes(list(self._named())))

    def size(self) -> int:
        """How many it names."""
        return len(self._named())

    def _named(self) -> dict[str, None]:
        return dict.fromkeys(self.index.index_struct.nodes_dict.values())

    def _nodes(self, ids: Sequence[str]) -> list[BaseNode]:
        found: list[BaseNode] = self.index.docstore.get_nodes(list(ids), raise_error=False)
        return found


class Simple(Described):
    """LlamaIndex's SimpleVectorStore; its filters are asked as it asks them itself."""

    can_filter = True

    def admitted(self, node_id: str, where: Any) -> bool:
        """By the metadata that the vector store keeps."""
        return bool(build_metadata_filter_fn(lambda i: self.vectors.data.metadata_dict.get(i, {}), where)(node_id))

    def _named(self) -> dict[str, None]:
        held = self.vectors.data.embedding_dict
        return dict.fromkeys(i for i in super()._named() if i in held)


class Qdrant(AnyIndex):
    """QdrantVectorStore, which holds its nodes itself."""

    def present(self, ids: Sequence[str], where: Any) -> list[NodePassage]:
        """Those that it holds and the filter admits."""
        if not ids:
            return []
        from qdrant_client import models

        must: list[Any] = [models.HasIdCondition(has_id=list(ids))]
        if where is not None:  # its get_nodes would join ids and an OR filter by OR
            must.append(self.vectors._build_subfilter(where))
        points, _ = self.vectors.client.scroll(
            self.vectors.collection_name, scroll_filter=models.Filter(must=must), limit=len(ids), with_payload=True
        )
        return self._read(points)

    def everything(self) -> Iterator[NodePassage]:
        """All that it holds, page by page."""
        at = None
        while self.size():
            points, at = self.vectors.client.scroll(
                self.vectors.collection_name, limit=PAGE, offset=at, with_payload=True
            )
            yield from self._read(points)
            if at is None:
                return

    def size(self) -> int:
        """How many it holds."""
        if not self.vectors.client.collection_exists(self.vectors.collection_name):
            return 0
        return int(self.vectors.client.count(self.vectors.collection_name, exact=True).count)

    def _read(self, points: Sequence[Any]) -> list[NodePassage]:
        return as_passages(self.vectors.parse_to_query_result(list(points)).nodes or [])


KNOWN: dict[str, type[AnyIndex]] = {"SimpleVectorStore": Simple, "QdrantVectorStore": Qdrant}
