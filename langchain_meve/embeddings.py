"""An embedder of MeVe's as LangChain's embeddings, so that a vector store needs no other."""

from langchain_core.embeddings import Embeddings

from meve.components.embedders import resolve_embedder
from meve.ports import Embedder


class MeVeEmbeddings(Embeddings):
    """Embeds with one of MeVe's embedders.

    Args:
        embedder: as for `meve.Retriever`; None for the one that ships, which needs neither torch nor a network.

    >>> len(MeVeEmbeddings().embed_query("a question"))
    256
    """

    def __init__(self, embedder: Embedder | str | None = None) -> None:
        self.embedder = resolve_embedder(embedder)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector for each text."""
        made: list[list[float]] = self.embedder.embed_passages(texts).tolist()
        return made

    def embed_query(self, text: str) -> list[float]:
        """A question's vector."""
        made: list[float] = self.embedder.embed_query(text).tolist()
        return made
