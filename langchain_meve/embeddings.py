"""LangChain `Embeddings` that use one of MeVe's embedders."""

from langchain_core.embeddings import Embeddings

from meve.components.embedders import resolve_embedder
from meve.ports import Embedder


class MeVeEmbeddings(Embeddings):
    """Embeds texts with one of MeVe's embedders.

    Args:
        embedder: as for `meve.Retriever`; None for MiniLM, which ships; `static` is faster. A store keeps to one.

    >>> len(MeVeEmbeddings().embed_query("a question"))
    384
    """

    def __init__(self, embedder: Embedder | str | None = None) -> None:
        self.embedder = resolve_embedder(embedder)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text."""
        vectors: list[list[float]] = self.embedder.embed_passages(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        vector: list[float] = self.embedder.embed_query(text).tolist()
        return vector
