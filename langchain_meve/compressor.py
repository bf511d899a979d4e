"""Phases 2 to 5 on documents that somebody else's retriever found."""

from collections.abc import Sequence
from typing import Any, Self

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import ConfigDict, Field, field_validator

from langchain_meve._callback_events import teller
from langchain_meve._documents import as_documents, as_passages
from langchain_meve._options import NAMES, Count, Share
from meve.integrations._options import overrides
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.engine import Tokens, make_engine
from meve.ports import Embedder, Verifier


class MeVeCompressor(BaseDocumentCompressor):
    """Verifies, orders and packs documents into a budget, for `ContextualCompressionRetriever`.

    >>> from langchain_core.documents import Document
    >>> compressor = MeVeCompressor.make(k=1)
    >>> found = [Document("Bread is baked from flour."), Document("Tomatoes want six to eight hours of sun a day.")]
    >>> [d.page_content for d in compressor.compress_documents(found, "How much sun do tomatoes want?")]
    ['Tomatoes want six to eight hours of sun a day.']
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    engine: Any = Field(exclude=True, repr=False)
    """A `meve.pipeline.engine.Engine`: models and settings; shared by all copies."""
    k: Count | None = None
    """How many documents at most; None for as many as the budget takes."""
    threshold: Share | None = None
    """The probability from which on a document counts as verified; None for the engine's."""
    max_tokens: Count | None = None
    """The most tokens of all documents together, separators included; None for the engine's."""
    trace_text: bool = False
    """Whether events hold the text of query and context."""

    @field_validator("engine")
    @classmethod
    def _selects(cls, engine: Any) -> Any:
        if not callable(getattr(engine, "select", None)):
            raise ValueError(
                f"engine is {engine!r:.60}: give a meve.pipeline.engine.Engine, or use MeVeCompressor.make(…)"
            )
        return engine

    @classmethod
    def make(
        cls,
        *,
        config: RetrieverConfig | None = None,
        embedder: Embedder | str | None = None,
        verifier: Verifier | str | None = None,
        tokens: Tokens | None = None,
        **fields: Any,
    ) -> Self:
        """A compressor of parts that are named, or of those that ship.

        Raises:
            MeveError: parts that can't be had.
        """
        engine = make_engine(config=config, embedder=embedder, verifier=verifier, tokens=tokens)
        return cls(engine=engine, **fields)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """A copy that shares the engine."""
        return self.model_copy()

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Those that answer, best first, as copies with the keys that `MeVeRetriever` gives.

        Args:
            documents: what was found.
            query: the question; for a blank one nothing answers.
            callbacks: LangChain's; phases are told to them as events.

        Raises:
            MeveError: as `meve.pipeline.engine.Engine.select`.
        """
        if not query.strip():
            return []
        mine = overrides(NAMES, {name: getattr(self, name) for name in ("k", "threshold", "max_tokens")})
        tell = teller(callbacks, text=self.trace_text, runs=False)
        context = self.engine.select(query, as_passages(documents), observer=tell, **mine)
        if tell:
            tell.end(context)
        return as_documents(context)
