"""MeVeEmbedding: an embedder of MeVe as a LlamaIndex embedding model."""

import asyncio
from functools import partial
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import PrivateAttr

from meve.components.embedders import resolve_embedder
from meve.ports import Embedder


class MeVeEmbedding(BaseEmbedding):
    """Embeds with one of MeVe's embedders.

    Args:
        embedder: as for `meve.Retriever`; None for MiniLM, which ships; `static` is faster. An index keeps to one.

    >>> len(MeVeEmbedding().get_query_embedding("a question"))
    384
    """

    _embedder: Any = PrivateAttr()

    def __init__(self, embedder: Embedder | str | None = None, *, model_name: str | None = None, **kwargs: Any) -> None:
        resolved = resolve_embedder(model_name if embedder is None else embedder)
        super().__init__(model_name=resolved.name, **kwargs)
        self._embedder = resolved

    @classmethod
    def class_name(cls) -> str:
        """Return the class name for serialization."""
        return "MeVeEmbedding"

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> "MeVeEmbedding":
        """Return a copy that shares the embedder."""
        return self.model_copy()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the embedder's name, without callbacks, cache and rate limiter."""
        plain = {name: getattr(self, name) for name in ("model_name", "embed_batch_size", "num_workers")}
        return partial(MeVeEmbedding, **plain), ()

    def _get_query_embedding(self, query: str) -> list[float]:
        vector: list[float] = self._embedder.embed_query(query).tolist()
        return vector

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._embedder.embed_passages(texts).tolist()
        return vectors

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)
