"""Indexes over vector stores that hold no text: SimpleVectorStore, FAISS and others."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llama_index.core.vector_stores.types import VectorStoreQuery

from llama_index_meve._async_bridge import ask
from llama_index_meve._metadata_filters import admits, nested
from llama_index_meve._nodes import NodePassage, as_passage
from llama_index_meve._question import as_put
from llama_index_meve._vector_stores.base import AnyIndex


class Described(AnyIndex):
    """A vector store that holds no text: the index says which nodes are in it, the document store what they are.

    Deleting from an index leaves its nodes in the document store by default, may leave them in the index, and may leave
    their vectors (FaissMapVectorStore, by document, after which the stock retriever raises). So a node counts as gone
    as soon as one of vector store and index has let it go. Filters that the vector store can't ask are asked here.
    """

    @property
    def lists(self) -> bool:
        """Its index can."""
        return True

    def nearest(self, query: str, k: int, where: Any) -> list[tuple[NodePassage, float | None]]:
        """What the vector store brings of what is still there."""
        total = len(self.index.index_struct.nodes_dict)
        if not total:
            return []
        vector = as_put(query, self.index._embed_model).embedding
        theirs = where if where is not None and self.asks(where) else None
        reach = k
        while True:
            asked = VectorStoreQuery(query_embedding=vector, similarity_top_k=reach, query_str=query, filters=theirs)
            found = ask(self.vectors.query, self.native("aquery"), asked)
            ids = list(found.ids or [])
            scores = dict(zip(map(self._node_id, ids), found.similarities or [None] * len(ids), strict=True))
            there = {p.id: p for p in self._read([i for i in scores if i is not None], where)}
            if len(there) >= k or len(ids) < reach or reach >= total:
                return [(there[i], score) for i, score in scores.items() if i in there][:k]
            reach = min(reach * 4, total)

    def native(self, name: str) -> Any:
        """Any async method, though it blocks: what lives in memory mustn't be searched while the loop adds to it."""
        return getattr(self.vectors, name)

    def asks(self, where: Any) -> bool:  # noqa: ARG002
        """Whether the vector store can ask this filter itself."""
        return False

    def present(self, ids: Sequence[str], where: Any) -> list[NodePassage]:
        """Which of these are still there, and admitted by the filter."""
        return self._read(self.still(ids), where)

    def still(self, ids: Sequence[str]) -> list[str]:
        """Which of these neither index nor vector store has let go."""
        named = set(self.index.index_struct.nodes_dict.values())
        return [i for i in ids if i in named]

    def everything(self) -> Iterable[NodePassage]:
        """All that is still there."""
        return self._read(list(dict.fromkeys(self.index.index_struct.nodes_dict.values())), None)

    def size(self) -> int:
        """How many are still there."""
        return len(self.index.index_struct.nodes_dict)

    def _node_id(self, found: str) -> str | None:
        named: str | None = self.index.index_struct.nodes_dict.get(found)
        return named

    def _read(self, ids: Sequence[str], where: Any) -> list[NodePassage]:
        nodes = self.index.docstore.get_nodes(list(ids), raise_error=False)
        passages = [as_passage(node) for node in nodes]
        return passages if where is None else [p for p in passages if admits(where)(p.metadata)]


class ByNodeId(Described):
    """A vector store whose own ids are those of the nodes."""

    def held(self) -> Mapping[str, Any]:
        """What the vector store holds, by node id."""
        raise NotImplementedError

    def still(self, ids: Sequence[str]) -> list[str]:
        """Which of these neither index nor vector store has let go."""
        named, held = self.index.index_struct.nodes_dict, self.held()
        return [i for i in ids if i in held and i in named]

    def everything(self) -> Iterable[NodePassage]:
        """All that is still there."""
        return self.present(list(self.index.index_struct.nodes_dict), None)

    def size(self) -> int:
        """How many are still there."""
        named, held = self.index.index_struct.nodes_dict, self.held()
        return len(named) if len(named) == len(held) else sum(i in held for i in named)

    def _node_id(self, found: str) -> str | None:
        return found if self.still([found]) else None


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
