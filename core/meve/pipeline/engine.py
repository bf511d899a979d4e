"""The five phases with the parts that they need, over whatever sources a call brings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, Unpack

from meve.calibration.maps import account
from meve.clock import Clock, SystemClock
from meve.components._sentences import sentences
from meve.components._shipped_models import shipped_estimator, shipped_prior
from meve.components.embedders import resolve_embedder
from meve.components.embedders.cached import CachedEmbedder
from meve.components.tokenizers import resolve_tokens
from meve.components.verifiers import resolve_verifier
from meve.pipeline._preparation import Counters, checked
from meve.pipeline._scorers import VerifierScorer
from meve.pipeline.config import Overrides, RetrieverConfig, checked_config
from meve.pipeline.context import Context
from meve.pipeline.pipeline import Pipeline, check_query
from meve.pipeline.trace import Observer
from meve.ports import Embedder, Estimator, Prior, Source, TokenCounter, Verifier
from meve.types import Candidate, Passage, Query

Tokens: TypeAlias = TokenCounter | str | Callable[[str], int]
"""A part, a tokenizer's name or file, or a function from text to a number."""


class Engine:
    """Phases, parts and settings; no corpus. Threads may share one.

    Args:
        embedder: makes the vectors of queries, and of passages that come without; the last few thousand of these are
            remembered.
        verifier: judges.
        tokens: counts.
        config: how to decide.
        estimator: says whether a context can carry an answer; None for the one that ships with the verifier that ships.
        prior: says which candidates stand no chance, for `exact=False`; None likewise.
        clock: what time it is.

    >>> from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder
    >>> engine = Engine(embedder=WordEmbedder(), verifier=OverlapVerifier(), tokens=WordCounter())
    >>> found = [Passage(id="a", text="Grass is green."), Passage(id="b", text="The sky is blue.")]
    >>> engine.select("blue sky", found).text
    'The sky is blue.'
    """

    def __init__(
        self,
        *,
        embedder: Embedder,
        verifier: Verifier,
        tokens: TokenCounter,
        config: RetrieverConfig | None = None,
        estimator: Estimator | None = None,
        prior: Prior | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._cached_embedder = CachedEmbedder(embedder)
        self.verifier = verifier
        self.tokens = tokens
        self.config = checked_config(config)
        self.estimator = estimator
        self.prior = prior
        self._clock = clock or SystemClock()
        self._counters = Counters(tokens)

    @property
    def embedder(self) -> Embedder:
        """What makes vectors; with another one, none of this one's are remembered."""
        return self._cached_embedder.inner

    @embedder.setter
    def embedder(self, embedder: Embedder) -> None:
        self._cached_embedder = CachedEmbedder(embedder)

    def select(
        self,
        query: str,
        passages: Sequence[Passage],
        *,
        config: RetrieverConfig | None = None,
        fallback: Source | None = None,
        observer: Observer | None = None,
        **overrides: Unpack[Overrides],
    ) -> Context:
        """Phases 2 to 5 over given passages: the verified context for a question.

        Args:
            query: the question.
            passages: from wherever; of those with the same id, the first. Equal scores keep their order.
            config: instead of the engine's own, for this call.
            fallback: where phase 3 looks if too few are verified; None for nowhere.
            observer: told of each phase while it happens.
            overrides: any value of `RetrieverConfig`, by name.

        Raises:
            QueryError: blank, not text, or longer than a model's window.
            PassageError: something that is no passage, or one without text.
            ConfigurationError: an unknown option, or a value out of range.
            ModelError: a model failed.
        """
        check_query(query)
        checked(passages)
        settings = self.settings(config, overrides)
        first: dict[str, Passage] = {}
        for passage in passages:
            first.setdefault(passage.id, passage)
        return self._run(
            Query(text=query), settings, [_Given(tuple(first.values()))], fallback=fallback, observer=observer
        )

    def settings(self, config: RetrieverConfig | None, overrides: Mapping[str, Any]) -> RetrieverConfig:
        """What a call decides by.

        Raises:
            ConfigurationError: an unknown option, or a value out of range.
        """
        return checked_config(self.config if config is None else config).override(**overrides)

    def _run(
        self,
        query: Query,
        settings: RetrieverConfig,
        sources: Sequence[Source],
        *,
        fallback: Source | None,
        notes: Mapping[str, Any] | None = None,
        observer: Observer | None = None,
    ) -> Context:
        pipeline = Pipeline(
            sources=sources,
            scorer=VerifierScorer(self.verifier, self.embedder),
            fallback=fallback,
            tokens=self._counters.named(settings.tokens),
            embedder=self._cached_embedder,
            estimator=self.estimator or shipped_estimator(self.verifier),
            prior=None if settings.exact else self.prior or shipped_prior(self.embedder, self.verifier),
            split=sentences,
            verifier_name=self.verifier.name,
            calibration=account(self.verifier.calibration.to_dict()),
            clock=self._clock,
            notes=notes or {},
            observer=observer,
        )
        return pipeline.run(query, settings)


def make_engine(
    *,
    config: RetrieverConfig | None = None,
    embedder: Embedder | str | None = None,
    verifier: Verifier | str | None = None,
    tokens: Tokens | None = None,
) -> Engine:
    """An engine of parts that are named, or of those that ship; the arguments are those of `Retriever.empty`.

    Raises:
        ConfigurationError: parts that can't work, or an extra that isn't installed.
        ModelError: a model or a tokenizer that can't be had.
    """
    config = checked_config(config)
    found = resolve_embedder(embedder)
    counter = resolve_tokens(config.tokens if tokens is None else tokens)
    if tokens is not None:  # a part that is given is the engine's own, whatever the configuration names
        config = config.override(tokens=None)
    return Engine(embedder=found, verifier=resolve_verifier(verifier, found), tokens=counter, config=config)


@dataclass(frozen=True, slots=True)
class _Given:
    """Passages that were found already, all of them, in their order."""

    passages: tuple[Passage, ...]
    name: str = "given"

    def search(self, query: Query, k: int) -> Sequence[Candidate]:  # noqa: ARG002
        return [Candidate(passage=passage, origin=self.name, place=n) for n, passage in enumerate(self.passages)]
