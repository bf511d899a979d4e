"""The adapter for indexes over any vector store that keeps its nodes' text."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQueryMode

from llama_index_meve._async_bridge import await_or_call, native_method
from llama_index_meve._nodes import NodePassage, node_to_passage
from llama_index_meve._query_bundle import bundle_with_embedding
from llama_index_meve.embedding import MeVeEmbedding
from meve.errors import ConfigurationError
from meve.integrations._foreign_minilm import is_shipped_minilm
from meve.types import FloatArray


class IndexStore:
    """An index that can only be searched.

    Filters go to the vector store. Under a filter, keyword search returns nothing, since the filter can't be checked.
    """

    can_list = False
    """Whether the store can list and count its nodes synchronously."""

    def __init__(self, index: VectorStoreIndex) -> None:
        self.index: Any = index
        self.vectors: Any = index.vector_store
        self.name = type(self.vectors).__name__
        self._known_embedders: dict[str, bool] = {}

    def canonical_id(self, passage_id: str) -> str:
        """Return an id as the store spells it."""
        return passage_id

    def nearest(self, query: str, k: int, where: Any) -> list[tuple[NodePassage, float | None]]:
        """Return the k nearest nodes with their scores, by the index's own retriever."""
        return self._search(query, similarity_top_k=k, filters=where)

    def search_both(self, query: str, k: int, where: Any) -> list[tuple[NodePassage, float | None]]:
        """Return the nodes of the store's own search by vectors and words: k by each, in their joint order."""
        mode = VectorStoreQueryMode.HYBRID
        tops = {"similarity_top_k": k, "sparse_top_k": k, "hybrid_top_k": 2 * k}
        return self._search(query, vector_store_query_mode=mode, filters=where, **tops)

    def check_hybrid(self) -> None:
        """Check that the store searches vectors and words together, as far as is known.

        Raises:
            ConfigurationError: it doesn't.
        """

    def _search(self, query: str, **options: Any) -> list[tuple[NodePassage, float | None]]:
        if self.size() == 0:
            return []
        retriever = self.index.as_retriever(**options)
        retriever._node_ids = None  # else it searches only the nodes held by the index itself, perhaps only images
        bundle = bundle_with_embedding(query, self.index._embed_model if self.vectors.is_embedding_query else None)
        native = retriever.aretrieve if self.async_method("aquery") else None
        nodes = await_or_call(retriever.retrieve, native, bundle)
        return [(node_to_passage(each.node), each.score) for each in nodes]

    def async_method(self, name: str) -> Any:
        """Return the vector store's own async method; None if it has none."""
        return native_method(self.vectors, name, BasePydanticVectorStore)

    def fetch(self, ids: Sequence[str], where: Any) -> list[NodePassage]:
        """Return the nodes with these ids that are still stored; none if a filter is given."""
        if where is not None:
            return []
        try:
            nodes = await_or_call(self.vectors.get_nodes, self.async_method("aget_nodes"), node_ids=list(ids))
            return [node_to_passage(node) for node in nodes]
        except NotImplementedError:
            return []

    def list_passages(self) -> Iterable[NodePassage]:
        """Return all stored nodes.

        Raises:
            ConfigurationError: the vector store can't list its nodes.
        """
        raise ConfigurationError(
            f"{self.name} can't list its nodes: give from_index(…, nodes=…) to enable keyword search"
        )

    def size(self) -> int | None:
        return None

    def read_vectors(self, ids: Sequence[str], embedder: str) -> Mapping[str, FloatArray]:
        """Return the stored vectors of these nodes by id; none unless the index embeds by this embedder's model."""
        return self._read_vectors(ids) if ids and self._embeds_by(embedder) else {}

    def _read_vectors(self, ids: Sequence[str]) -> Mapping[str, FloatArray]:  # noqa: ARG002
        """Return the vectors that the store holds, by id; none if it can't tell."""
        return {}

    def truncates(self, embedder: str) -> bool:
        """Return whether vectors that count as this embedder's may be those of the beginnings of long texts."""
        return not isinstance(self.index._embed_model, MeVeEmbedding) and self._embeds_by(embedder)

    def _embeds_by(self, embedder: str) -> bool:
        if embedder not in self._known_embedders:
            model = self.index._embed_model
            self._known_embedders[embedder] = (
                model.model_name == embedder
                if isinstance(model, MeVeEmbedding)
                else is_shipped_minilm(model.model_name, embedder, model.get_text_embedding_batch)
            )
        return self._known_embedders[embedder]
