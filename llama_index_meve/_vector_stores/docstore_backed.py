"""Adapters for indexes whose vector store holds no text, such as SimpleVectorStore and FAISS."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llama_index.core.vector_stores.types import VectorStoreQuery

from llama_index_meve._async_bridge import await_or_call
from llama_index_meve._metadata_filters import filter_predicate, has_nested_filters
from llama_index_meve._nodes import NodePassage, node_to_passage
from llama_index_meve._query_bundle import bundle_with_embedding
from llama_index_meve._vector_stores.base import IndexStore
from meve.errors import ConfigurationError
from meve.integrations._faiss_vectors import read_flat_vectors
from meve.types import FloatArray


class DocstoreBackedStore(IndexStore):
    """An index whose vector store holds no text: the index lists its nodes, and the document store holds them.

    A deleted node may remain in the document store, the index or the vector store. It counts as deleted as soon as the
    index or the vector store lacks it. Filters that the vector store doesn't support are applied here.
    """

    can_list = True

    def nearest(self, query: str, k: int, where: Any) -> list[tuple[NodePassage, float | None]]:
        total = len(self.index.index_struct.nodes_dict)
        if not total:
            return []
        vector = bundle_with_embedding(query, self.index._embed_model).embedding
        filters = where if where is not None and self.supports_filter(where) else None
        top_k = k
        while True:
            request = VectorStoreQuery(query_embedding=vector, similarity_top_k=top_k, query_str=query, filters=filters)
            result = await_or_call(self.vectors.query, self.async_method("aquery"), request)
            ids = list(result.ids or [])
            scores = dict(zip(map(self._node_id, ids), result.similarities or [None] * len(ids), strict=True))
            passages = {p.id: p for p in self._read([i for i in scores if i is not None], where)}
            if len(passages) >= k or len(ids) < top_k or top_k >= total:
                return [(passages[i], score) for i, score in scores.items() if i in passages][:k]
            top_k = min(top_k * 4, total)

    def check_hybrid(self) -> None:
        raise ConfigurationError(
            f"keyword_search must be True over {self.name}, which searches vectors alone, got 'store'"
        )

    def async_method(self, name: str) -> Any:
        """Return the async method even if it blocks: the loop mustn't add to an in-memory store during a search."""
        return getattr(self.vectors, name)

    def supports_filter(self, where: Any) -> bool:  # noqa: ARG002
        return False

    def fetch(self, ids: Sequence[str], where: Any) -> list[NodePassage]:
        return self._read(self.existing_ids(ids), where)

    def existing_ids(self, ids: Sequence[str]) -> list[str]:
        """Return those of the ids that neither the index nor the vector store has deleted."""
        indexed = set(self.index.index_struct.nodes_dict.values())
        return [i for i in ids if i in indexed]

    def list_passages(self) -> Iterable[NodePassage]:
        return self.fetch(list(dict.fromkeys(self.index.index_struct.nodes_dict.values())), None)

    def size(self) -> int:
        return len(self.index.index_struct.nodes_dict)

    def _node_id(self, vector_id: str) -> str | None:
        node_id: str | None = self.index.index_struct.nodes_dict.get(vector_id)
        return node_id

    def _read(self, ids: Sequence[str], where: Any) -> list[NodePassage]:
        nodes = self.index.docstore.get_nodes(list(ids), raise_error=False)
        passages = [node_to_passage(node) for node in nodes]
        return passages if where is None else [p for p in passages if filter_predicate(where)(p.metadata)]


class NodeIdStore(DocstoreBackedStore):
    """A vector store that uses the node ids as its own."""

    def stored_vectors(self) -> Mapping[str, Any]:
        raise NotImplementedError

    def existing_ids(self, ids: Sequence[str]) -> list[str]:
        indexed, stored = self.index.index_struct.nodes_dict, self.stored_vectors()
        return [i for i in ids if i in stored and i in indexed]

    def size(self) -> int:
        indexed, stored = self.index.index_struct.nodes_dict, self.stored_vectors()
        return len(indexed) if len(indexed) == len(stored) else sum(i in stored for i in indexed)

    def _node_id(self, vector_id: str) -> str | None:
        return vector_id if self.existing_ids([vector_id]) else None


class SimpleStore(NodeIdStore):
    """LlamaIndex's SimpleVectorStore."""

    def supports_filter(self, where: Any) -> bool:
        return not has_nested_filters(where)

    def stored_vectors(self) -> Mapping[str, Any]:
        vectors: Mapping[str, Any] = self.vectors.data.embedding_dict
        return vectors

    def _read_vectors(self, ids: Sequence[str]) -> Mapping[str, FloatArray]:
        stored = self.stored_vectors()
        return {i: stored[i] for i in ids if i in stored}


class FaissStore(DocstoreBackedStore):
    """LlamaIndex's FaissVectorStore, whose own ids are rows."""

    def _read_vectors(self, ids: Sequence[str]) -> Mapping[str, FloatArray]:
        wanted = set(ids)
        rows = {node: int(row) for row, node in self.index.index_struct.nodes_dict.items() if node in wanted}
        return read_flat_vectors(self.vectors._faiss_index, rows)


class FaissMapStore(NodeIdStore):
    """Adapter of FaissMapVectorStore, which supports no filters."""

    def stored_vectors(self) -> Mapping[str, Any]:
        faiss_ids: Mapping[str, Any] = self.vectors._node_id_to_faiss_id_map
        return faiss_ids

    def _read_vectors(self, ids: Sequence[str]) -> Mapping[str, FloatArray]:
        rows = self.stored_vectors()
        return read_flat_vectors(self.vectors._faiss_index, {i: rows[i] for i in ids if i in rows})
