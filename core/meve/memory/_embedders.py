"""The embedders of a memory: the one that embeds now, and those that made vectors which `reembed` hasn't replaced."""

from collections.abc import Sequence

from meve.ports import Embedder
from meve.types import FloatArray, Similarity


def model_of(embedder: Embedder) -> str:
    """Return the name under which an embedder's vectors are stored: its own name, and their dimension.

    >>> from meve.testing.fakes import WordEmbedder
    >>> model_of(WordEmbedder())
    'words-by-initial 27'
    """
    return f"{embedder.name} {embedder.dimension}"


class MemoryEmbedders:
    """An embedder that delegates to the current one of a memory, and knows the others. See `meve.ports.Embedder`."""

    def __init__(self, embedder: Embedder) -> None:
        self._current = embedder
        self._known = {model_of(embedder): embedder}

    @property
    def name(self) -> str:
        """The name of the current embedder."""
        return self._current.name

    @property
    def dimension(self) -> int:
        """The dimension of the current embedder."""
        return self._current.dimension

    @property
    def similarity(self) -> Similarity:
        """The similarity function of the current embedder."""
        return self._current.similarity

    @property
    def model(self) -> str:
        """The current embedder's name and dimension."""
        return model_of(self._current)

    @property
    def models(self) -> tuple[str, ...]:
        """The names of all known embedders, the current one first."""
        return (self.model, *(name for name in self._known if name != self.model))

    @property
    def current(self) -> Embedder:
        """The current embedder."""
        return self._current

    def of(self, model: str) -> Embedder:
        """Return a known embedder by its name in the store."""
        return self._known[model]

    def switch(self, embedder: Embedder) -> None:
        """Embed with another embedder from now on."""
        self._known = {**self._known, model_of(embedder): embedder}
        self._current = embedder

    def embed_query(self, text: str) -> FloatArray:
        """Embed one query with the current embedder."""
        return self._current.embed_query(text)

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Embed passages with the current embedder."""
        return self._current.embed_passages(texts)
