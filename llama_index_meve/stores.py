"""LlamaIndex's vector indexes as stores for the five phases: how each searches, filters, counts and lists."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.schema import QueryBundle
from llama_index.core.vector_stores.types import VectorStoreQuery

from llama_index_meve.filters import admits, nested
from llama_index_meve.nodes import NodePassage, as_passage
from meve.errors import ConfigurationError

PAGE = 1_000


def store_of(index: VectorStoreIndex) -> "AnyIndex":
    """The way to an index: one of its own for the vector stores that are known here, else what all have in common.

    Raises:
        ConfigurationError: no index over a vector store.
    """
    if not isinstance(index, VectorStoreIndex):
        raise ConfigurationError(f"index is {type(index).__name__}: give a VectorStoreIndex, or nodes to from_nodes")
    kinds = [kind.__name__ for kind in type(index.vector_store).__mro__]
    for name, made in KNOWN.items():
        if name in kinds:
            return made(index)
    return AnyIndex(index) if index.vector_store.stores_text else Described(index)


class AnyIndex:
    """What every index can: search. Filters pass through; by words none is taken for admitted under one."""

    lists = False
    """Whether it can list and count what it holds."""

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
        """What the index's own retriever brings, of all that the vector store holds."""
        if self.size() == 0:
            return []
        retriever = self.index.as_retriever(similarity_top_k=k, filters=where)
        retriever._node_ids = None  # else it asks for the nodes that the index itself holds, which may be images alone
        found = retriever.retrieve(QueryBundle(query_str=query))
        return [(as_passage(each.node), each.score) for each in found]

    def present(self, ids: Sequence[str], where: Any) -> list[NodePassage]:
        """Which of these it still holds; with a filter, none."""
        if where is not None:
            return []
        try:
            return [as_passage(node) for node in self.vectors.get_nodes(node_ids=list(ids))]
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

    Deleting from an index leaves its nodes in the document store by default, may leave them in the index, and may leave
    their vectors (FaissMapVectorStore, by document, after which the stock retriever raises). So a node counts as gone
    as soon as one of vector store and index has let it go. Filters that the vector store can't ask are asked here.
    """

    lists = True

    def nearest(self, query: str, k: int, where: Any) -> list[tuple[NodePassage, float | None]]:
        """What the vector store brings of what is still there."""
        total = len(self.index.index_struct.nodes_dict)
        if not total:
            return []
        vector = self.index._embed_model.get_agg_embedding_from_queries([query])
        theirs = where if where is not None and self.asks(where) else None
        reach = k
        while True:
            asked = VectorStoreQuery(query_embedding=vector, similarity_top_k=reach, query_str=query, filters=theirs)
            found = self.vectors.query(asked)
            ids = list(found.ids or [])
            scores = dict(zip(map(self._node_id, ids), found.similarities or [None] * len(ids), strict=True))
            there = {p.id: p for p in self.present([i for i in scores if i is not None], where)}
            if len(there) >= k or len(ids) < reach or reach >= total:
                return [(there[i], score) for i, score in scores.items() if i in there][:k]
            reach = min(reach * 4, total)

    def asks(self, where: Any) -> bool:  # noqa: ARG002
        """Whether the vector store can ask this filter itself."""
        return False

    def present(self, ids: Sequence[str], where: Any) -> list[NodePassage]:
        """Which of these are still there, and admitted by the filter."""
        here = [i for i in ids if self.holds(i)]
        nodes = self.index.docstore.get_nodes(here, raise_error=False)
        passages = [as_passage(node) for node in nodes]
        return passages if where is None else [p for p in passages if admits(where)(p.metadata)]

    def holds(self, node_id: str) -> bool:
        """Whether neither index nor vector store has let it go."""
        return node_id in self._reverse()

    def everything(self) -> Iterable[NodePassage]:
        """All that is still there."""
        return self.present(list(self._reverse()), None)

    def size(self) -> int:
        """How many are still there."""
        return len(self.index.index_struct.nodes_dict)

    def _node_id(self, found: str) -> str | None:
        named: str | None = self.index.index_struct.nodes_dict.get(found)
        return named

    def _reverse(self) -> Mapping[str, Any]:
        """What the index names, by node id."""
        named: Mapping[str, str] = self.index.index_struct.nodes_dict
        return dict.fromkeys(named.values())


class ByNodeId(Described):
    """A vector store whose own ids are those of the nodes."""

    def held(self) -> Mapping[str, Any]:
        """What the vector store holds, by node id."""
        raise NotImplementedError

    def holds(self, node_id: str) -> bool:
        """Whether neither index nor vector store has let it go."""
        return node_id in self.held() and node_id in self.index.index_struct.nodes_dict

    def everything(self) -> Iterable[NodePassage]:
        """All that is still there."""
        return self.present(list(self.index.index_struct.nodes_dict), None)

    def size(self) -> int:
        """How many are still there."""
        named, held = self.index.index_struct.nodes_dict, self.held()
        return len(named) if len(named) == len(held) else sum(i in held for i in named)


class Simple(ByNodeId):
    """LlamaIndex's SimpleVectorStore."""

    def asks(self, where: Any) -> bool:
        """It asks all filters but nested ones."""
        return not nested(where)

    def held(self) -> Mapping[str, Any]:
        """Its vectors."""
        found: Mapping[str, Any] = self.vectors.data.embedding_dict
        return found


class FaissMap(ByNodeId):
    """FaissMapVectorStore, which asks no filters."""

    def held(self) -> Mapping[str, Any]:
        """Its vectors."""
        found: Mapping[str, Any] = self.vectors._node_id_to_faiss_id_map
        return found


class Qdrant(AnyIndex):
    """QdrantVectorStore, which holds its nodes itself."""

    lists = True

    def present(self, ids: Sequence[str], where: Any) -> list[NodePassage]:
        """Those that it holds and the filter admits."""
        if not ids or not self.size():
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
        return [as_passage(node) for node in self.vectors.parse_to_query_result(list(points)).nodes or []]


KNOWN: dict[str, type[AnyIndex]] = {
    "SimpleVectorStore": Simple,
    "FaissMapVectorStore": FaissMap,
    "QdrantVectorStore": Qdrant,
}
