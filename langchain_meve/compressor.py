"""A document compressor: verify, rank and cut the documents of another retriever."""

from collections.abc import Sequence
from typing import Any, Never, Self, SupportsIndex

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import ConfigDict, Field, field_validator

from langchain_meve._callback_events import make_event_emitter
from langchain_meve._documents import context_to_documents, found_passages
from langchain_meve._retriever_options import LANGCHAIN_OPTION_NAMES, PositiveInt, Probability
from meve.components.verifiers import VerifierLike
from meve.errors import ConfigurationError
from meve.integrations._option_names import check_wrapper_keywords, collect_options, merge_options
from meve.integrations._rerank_settings import resolve_rerank_config
from meve.pipeline.config import RetrieverConfig, WhenInsufficient
from meve.pipeline.engine import Engine, TokenCounterLike, make_engine
from meve.ports import Embedder


def _default_engine() -> Engine:
    return make_engine(config=resolve_rerank_config(None))


class MeVeCompressor(BaseDocumentCompressor):
    """Verifies and ranks documents and cuts them to a token budget, for `ContextualCompressionRetriever`.

    >>> from langchain_core.documents import Document
    >>> compressor = MeVeCompressor.make(k=1)
    >>> documents = [Document("Bread is baked from flour."), Document("Tomatoes want six to eight hours of sun a day.")]
    >>> [d.page_content for d in compressor.compress_documents(documents, "How much sun do tomatoes want?")]
    ['Tomatoes want six to eight hours of sun a day.']
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    engine: Any = Field(default_factory=_default_engine, exclude=True, repr=False)
    """A `meve.pipeline.engine.Engine` with models and settings, shared by all copies; by default the shipped models."""
    k: PositiveInt | None = None
    """The most documents to return; None for no limit but the budget."""
    threshold: Probability | None = None
    """The probability from which a document counts as verified, in [0, 1]; None for the value in `config`."""
    max_tokens: PositiveInt | None = None
    """The most tokens of all documents together, separators included; None for the value in `config`, which is 4,096
    without a `config`."""
    when_insufficient: WhenInsufficient | None = None
    """What to do with a context that isn't sufficient, as in `RetrieverConfig`; None for the value in `config`, by
    default `return`."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Other values of `meve.RetrieverConfig` by name, which can also be given as keyword arguments."""
    trace_text: bool = False
    """Whether callback events hold the text of query and context."""

    def __init__(self, **fields: Any) -> None:
        """Check the fields, and take any value of `meve.RetrieverConfig` by name.

        Raises:
            ConfigurationError: an unknown name, two names of the same option, or an invalid value.
        """
        super().__init__(**collect_options(type(self), LANGCHAIN_OPTION_NAMES, fields))

    @field_validator("engine")
    @classmethod
    def _check_engine(cls, engine: Any) -> Any:
        if not callable(getattr(engine, "select", None)):
            raise ValueError(
                f"engine must be a meve.pipeline.engine.Engine, got {engine!r:.60}: use MeVeCompressor.make(…)"
            )
        return engine

    @classmethod
    def make(
        cls,
        *,
        config: RetrieverConfig | None = None,
        embedder: Embedder | str | None = None,
        verifier: VerifierLike | None = None,
        tokens: TokenCounterLike | None = None,
        **fields: Any,
    ) -> Self:
        """Build a compressor from named components, or from the default ones.

        Args:
            config: the settings.
            embedder: an embedder, `static`, or the name of a model; None for MiniLM, which ships.
            verifier: as for `meve.Retriever`; None for the shipped one.
            tokens: counts tokens for budgets.
            fields: fields of this class, and values of `meve.RetrieverConfig`, by name.

        Raises:
            MeveError: an unknown option, or a component that can't be loaded.
        """
        check_wrapper_keywords(cls.make, cls, fields)
        config = resolve_rerank_config(config)
        engine = make_engine(config=config, embedder=embedder, verifier=verifier, tokens=tokens)
        return cls(engine=engine, **fields)

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> Never:
        """Refuse `pickle`.

        Raises:
            ConfigurationError: always; the message says what to do instead.
        """
        raise ConfigurationError(
            "a MeVeCompressor can't be pickled: threads may share it; make another one in the other process"
        )

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return a copy that shares the engine."""
        return self.model_copy()

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Return the documents of the context, in its order, as copies with the metadata keys of `MeVeRetriever`.

        Args:
            documents: the documents that another retriever found; of the same id and text, the first counts.
            query: the question; a blank one returns nothing.
            callbacks: LangChain's callbacks, which get an event for each phase.

        Raises:
            MeveError: as `meve.pipeline.engine.Engine.select`.
        """
        if not query.strip():
            return []
        names = ("k", "threshold", "max_tokens", "when_insufficient")
        own = {name: getattr(self, name) for name in names}
        options = {**self.options, **merge_options(LANGCHAIN_OPTION_NAMES, own)}
        emitter = make_event_emitter(callbacks, include_text=self.trace_text, runs=False)
        context = self.engine.select(query, found_passages(documents), observer=emitter, **options)
        if emitter:
            emitter.report_context(context)
        return context_to_documents(context)
