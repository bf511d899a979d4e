"""What every index over a vector store can."""

from collections.abc import Iterable, Sequence
from typing import Any

from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index_meve._async_bridge import ask, own
from llama_index_meve._nodes import NodePassage, as_passage
from llama_index_meve._question import as_put
from meve.errors import ConfigurationError


class AnyIndex:
    """What every index can: search. Filters pass through; by words none is taken for admitted under one.

    For those who wait on an event loop it is asked there, where the vector store has async methods of its own.
    """

    def __init__(self, index: VectorStoreIndex) -> None:
        self.index: Any = index
        self.vectors: Any = index.vector_store

    @property
    def name(self) -> str:
        """The vector store's class."""
        return type(self.vectors).__name__

    @property
    def lists(self) -> bool:
        """Whether it can list and count what it holds, here and now."""
        return False

    def canonical(self, passage_id: str) -> str:
        """An id as the store spells it."""
        return passage_id

    def nearest(self, query: str, k: int, where: Any) -> list[tuple[NodePassage, float | None]]:
        """What the index's own retriever brings, of all that the vector store holds."""
        if self.size() == 0:
            return []
        retriever = self.index.as_retriever(similarity_top_k=k, filters=where)
        retriever._node_ids = None  # else it asks for the nodes that the index itself holds, which may be images alone
        asked = as_put(query, self.index._embed_model if self.vectors.is_embedding_query else None)
        native = retriever.aretrieve if self.native("aquery") else None
        found = ask(retriever.retrieve, native, asked)
        return [(as_passage(each.node), each.score) for each in found]

    def native(self, name: str) -> Any:
        """An async method of the vector store's own; None where it has none."""
        return own(self.vectors, name, BasePydanticVectorStore)

    def present(self, ids: Sequence[str], where: Any) -> list[NodePassage]:
        """Which of these it still holds; with a filter, none."""
        if where is not None:
            return []
        try:
            found = ask(self.vectors.get_nodes, self.native("aget_nodes"), node_ids=list(ids))
            return [as_passage(node) for node in found]
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
