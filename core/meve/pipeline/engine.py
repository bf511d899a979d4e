"""Combine models, tokenizer and settings into an engine that runs the five phases over any sources."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, Unpack

import numpy as np

from meve.calibration.probability_maps import summarize_calibration
from meve.clock import Clock, SystemClock
from meve.components._constraints import find_missing
from meve.components._repeated_text import RepeatedText
from meve.components._sentence_splitter import split_passage
from meve.components._shared_words import shares_code, shares_words
from meve.components._shipped_models import find_estimator, find_fitted_models
from meve.components._spelling import correct_spelling
from meve.components.embedders import resolve_embedder
from meve.components.embedders.cached import CachedEmbedder
from meve.components.evidence import EvidenceModel
from meve.components.lexical import make_lexical
from meve.components.tokenizers import resolve_tokens
from meve.components.verifiers import VerifierLike, resolve_verifier
from meve.pipeline._language_check import warn_of_language
from meve.pipeline._log import log_context
from meve.pipeline._preparation import TokenCounters, check_passages
from meve.pipeline._scorers import VerifierScorer
from meve.pipeline.config import Overrides, RetrieverConfig, Settings, check_option_names, validate_config
from meve.pipeline.context import Context
from meve.pipeline.phases.fill import GIVEN
from meve.pipeline.pipeline import Pipeline
from meve.pipeline.query_check import check_query
from meve.pipeline.trace import Observer
from meve.ports import Embedder, Estimator, EvidenceCombiner, Prior, Source, TokenCounter, Verifier
from meve.types import Candidate, Passage, Query

MARGIN = 0.1
"""The shipped prior skips candidates unless the threshold is more than this below one half, in log-odds."""
TokenCounterLike: TypeAlias = TokenCounter | str | Callable[[str], int]
"""A token counter, a tokenizer's name or file, or a function from text to a count."""


class EngineOptions(Settings, total=False):
    """The keyword arguments that choose an engine's components and settings; absent means the default."""

    config: RetrieverConfig | None
    """The settings, which those given by name override; by default `RetrieverConfig()`."""
    embedder: Embedder | str | None
    """An embedder, the name or folder of a sentence-transformers model, or one of those that ship and need no torch:
    `minilm` (all-MiniLM-L6-v2), the default, and `static`, which is faster and finds less."""
    verifier: VerifierLike | None
    """A verifier, the name or folder of a cross-encoder, a reranker of your own (docs/rerankers.md), or `cosine` for
    the calibrated cosine of `minilm`; by default the cross-encoder that ships and needs no torch."""
    tokens: TokenCounterLike | None
    """The token counter; by default the one that `config` names, else BERT's WordPiece, which ships."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Engine:
    """The components and settings that decide a retrieval. Holds no corpus; threads may share one.

    >>> from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder
    >>> engine = Engine(embedder=WordEmbedder(), verifier=OverlapVerifier(), tokens=WordCounter())
    >>> passages = [Passage(id="a", text="Grass is green."), Passage(id="b", text="The sky is blue.")]
    >>> engine.select("blue sky", passages).text
    'The sky is blue.'
    """

    embedder: Embedder
    """Embeds queries, and passages that come without a vector; the vectors of the last few thousand are cached."""
    verifier: Verifier
    tokens: TokenCounter
    config: RetrieverConfig = field(default_factory=RetrieverConfig)
    evidence: EvidenceCombiner | None = None
    """Combines the verifier's logits with keyword scores and cosines; by default the one fitted to the verifier that
    ships and to MiniLM's vectors, or, with any other embedder, to no vectors."""
    estimator: Estimator | None = None
    """Estimates whether a context suffices; by default the one fitted to the verifier and the evidence that ship, which
    holds under another calibration too."""
    prior: Prior | None = None
    """Predicts which candidates will fail, unless `exact`; by default the one fitted to the models that ship."""
    clock: Clock = field(default_factory=SystemClock)
    warned: set[str] = field(default_factory=set, repr=False)
    """What was warned of already; each warning comes once."""
    _cached_embedder: CachedEmbedder = field(init=False, repr=False)
    _counters: TokenCounters = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "config", validate_config(self.config))
        object.__setattr__(self, "_cached_embedder", CachedEmbedder(self.embedder))
        object.__setattr__(self, "_counters", TokenCounters(self.tokens))

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
        """Run phases 2 to 5 over given passages and return the verified context.

        Args:
            query: the question.
            passages: of passages with the same id, the first counts. Equal scores keep their order.
            config: replaces the engine's own for this call.
            fallback: the source that phase 3 searches if too few passages are verified; None to reconsider the best of
                the given passages.
            observer: called when a phase begins and ends.
            overrides: any value of `RetrieverConfig`, by name.

        Raises:
            QueryError: a blank query, one that isn't text, or one of more than 4,096 tokens.
            PassageError: an item that is no `Passage`, or one without text.
            ConfigurationError: an unknown option, or a value out of range.
            ModelError: a model failed.
        """
        check_query(query)
        check_passages(passages)
        settings = self.resolve_config(config, overrides)
        first: dict[str, Passage] = {}
        for passage in passages:
            first.setdefault(passage.id, passage)
        sources = [_Given(tuple(first.values()))]
        return self.run(Query(text=query), settings, sources, fallback=fallback, observer=observer)

    def resolve_config(self, config: RetrieverConfig | None, overrides: Mapping[str, Any]) -> RetrieverConfig:
        """Return the settings of one call: `config`, or else the engine's own, with the overrides applied.

        Raises:
            ConfigurationError: an unknown option, or a value out of range.
        """
        return validate_config(self.config if config is None else config).override(**overrides)

    def counter(self, settings: RetrieverConfig) -> TokenCounter:
        """Return the token counter that the settings name, else the engine's own.

        Raises:
            TokenizerUnavailableError: the named tokenizer isn't available here.
        """
        return self._counters.get(settings.tokens)

    def make_scorer(self) -> VerifierScorer:
        """Return the scorer of phase 2."""
        return make_verifier_scorer(self.verifier, self._cached_embedder, self.evidence)

    def run(
        self,
        query: Query,
        settings: RetrieverConfig,
        sources: Sequence[Source],
        *,
        fallback: Source | None,
        notes: Mapping[str, Any] | None = None,
        observer: Observer | None = None,
    ) -> Context:
        """Run all phases over the given sources, with the engine's components.

        Args:
            query: the question, with its vector if that is known.
            settings: from `resolve_config`.
            sources: searched by phase 1, the most trusted first.
            fallback: searched by phase 3; None to reconsider the best rejected candidates of the first source.
            notes: further facts about the sources, for the trace.
            observer: called when a phase begins and ends.

        Raises:
            QueryError: a query of more than 4,096 tokens.
            ModelError: a model failed.
        """
        scorer = self.make_scorer()
        pipeline = Pipeline(
            sources=sources,
            scorer=scorer,
            fallback=sources[0] if fallback is None else fallback,
            tokens=self.counter(settings),
            embedder=self._cached_embedder,
            estimator=self.estimator or self._find_estimator(),
            prior=self._find_prior(settings, scorer),
            correct=correct_spelling,
            repeats=RepeatedText(),
            shares_words=shares_words,
            shares_code=shares_code,
            find_missing=find_missing,
            split=split_passage,
            verifier_name=self.verifier.name,
            calibration=summarize_calibration(scorer.calibration.to_dict()),
            clock=self.clock,
            notes=notes or {},
            observer=observer,
        )
        context = pipeline.run(query, settings)
        log_context(context)
        warn_of_language(context, context.trace.verifier, self.warned)
        return context

    def _find_estimator(self) -> Estimator | None:
        return find_estimator(self.verifier.name, self.verifier.calibration, self.embedder.name, self.evidence)

    def _find_prior(self, settings: RetrieverConfig, scorer: VerifierScorer) -> Prior | None:
        """Return the engine's prior, else the one that ships; None if every candidate is scored in any order.

        The one that ships predicts which candidates the evidence model gives one half. Where a calibration or a lower
        threshold verifies more than that, it only orders the candidates.
        """
        if settings.exact is True and settings.deadline is None:
            return None
        shipped = find_fitted_models(self.verifier.name, self.verifier.calibration.to_dict(), self.embedder.name)
        if self.prior is not None or shipped.prior is None or shipped.evidence is None:
            return self.prior
        judge = scorer.combiner
        is_known = isinstance(judge, EvidenceModel) and judge.fits == shipped.evidence.fits
        just_below = scorer.calibration.apply(np.array([-MARGIN], dtype=np.float32))[0]
        return shipped.prior if is_known and just_below < settings.threshold else replace(shipped.prior, least=0.0)


def make_verifier_scorer(
    verifier: Verifier, embedder: Embedder, evidence: EvidenceCombiner | None = None
) -> VerifierScorer:
    """Return the scorer that judges by an evidence model, by default the one that ships for verifier and embedder."""
    if evidence is None:
        evidence = find_fitted_models(verifier.name, verifier.calibration.to_dict(), embedder.name).evidence
    return VerifierScorer(verifier, embedder, evidence=evidence, split=split_passage)


def make_engine(
    *,
    config: RetrieverConfig | None = None,
    embedder: Embedder | str | None = None,
    verifier: VerifierLike | None = None,
    tokens: TokenCounterLike | None = None,
    **settings: Unpack[Settings],
) -> Engine:
    """Build an engine from `EngineOptions`.

    Raises:
        ConfigurationError: components that don't work together, or an extra that isn't installed.
        ModelError: a model or a tokenizer that isn't available.
    """
    check_option_names(settings, EngineOptions.__annotations__)
    config = validate_config(config).override(**settings)
    resolved = resolve_embedder(embedder)
    counter = resolve_tokens(config.tokens if tokens is None else tokens)
    if tokens is not None:  # a given tokenizer is the engine's own, whatever the configuration names
        config = config.override(tokens=None)
    return Engine(embedder=resolved, verifier=resolve_verifier(verifier, resolved), tokens=counter, config=config)


@dataclass(frozen=True, slots=True)
class _Given:
    """A source that returns all of the given passages, in their order. Keyword scores compare them with each other."""

    passages: tuple[Passage, ...]
    name: str = GIVEN

    def search(self, query: Query, k: int) -> Sequence[Candidate]:  # noqa: ARG002
        return [Candidate(passage=passage, origin=self.name, place=n) for n, passage in enumerate(self.passages)]

    def score_ids(self, query: Query, ids: Sequence[str]) -> dict[str, float]:
        """Return the keyword scores of given passages by id, 0 for those that share no word with the query."""
        index = make_lexical("bm25")
        index.add(np.arange(len(self.passages)), [passage.content for passage in self.passages])
        rows, scores = index.search(query.text, len(self.passages))
        found = {self.passages[row].id: score for row, score in zip(rows.tolist(), scores.tolist(), strict=True)}
        return {each: found.get(each, 0.0) for each in ids}
