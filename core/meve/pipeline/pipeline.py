"""Run the five phases over given sources and components; knows no corpus and no memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from meve._vectors import validate_vectors
from meve.clock import Clock, SystemClock
from meve.errors import ConfigurationError, ModelError, QueryError, wrap_errors
from meve.pipeline._run_state import Run
from meve.pipeline._scorers import SimilarityScorer
from meve.pipeline._trace_builder import TraceBuilder
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.context import Context
from meve.pipeline.phases.budget import Composed, budget
from meve.pipeline.phases.cascade import cascade
from meve.pipeline.phases.condense import SplitSentences, condense
from meve.pipeline.phases.fallback import fallback, reconsider
from meve.pipeline.phases.follow import extend_query, follow
from meve.pipeline.phases.prioritize import Relate, prioritize
from meve.pipeline.phases.retrieve import retrieve
from meve.pipeline.phases.verify import score_candidates, verify
from meve.pipeline.trace import Observer
from meve.ports import Embedder, Estimator, Prior, Scorer, Source, TokenCounter
from meve.types import Candidate, ContextPassage, Dropped, FloatArray, Passage, Query, Selection

REJECTED = "rejected"
"""The fallback's source in the trace if phase 1 has searched it already: the rejected candidates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The five phases over given components. Cheap to make and without state, so threads may share it.

    Other systems plug in other sources, another scorer or another fallback.
    """

    sources: Sequence[Source]
    """The sources of phase 1, the most trusted first."""
    scorer: Scorer
    """The scorer of phase 2, whose scores are compared with the threshold."""
    fallback: Source | None
    """The source of phase 3; None for none."""
    tokens: TokenCounter
    embedder: Embedder | None = None
    """Embeds the query and the passages that come without a vector."""
    estimator: Estimator | None = None
    """Estimates whether the context suffices; without an estimator, any verified passage suffices."""
    prior: Prior | None = None
    """Predicts which candidates will fail, for `exact=False`."""
    relate: Relate | None = None
    """Relates two similar passages in phase 4; None to treat similar passages as the same."""
    already_shown: Callable[[Passage], bool] | None = None
    """Returns whether the reader has a passage already; phase 1 drops such passages."""
    split: SplitSentences | None = None
    """Splits a text into sentences; needed for `packing="sentences"`."""
    verifier_name: str = ""
    calibration: Mapping[str, Any] = field(default_factory=dict)
    """The verifier's calibration, for the trace."""
    clock: Clock = field(default_factory=SystemClock)
    observer: Observer | None = None
    """Called when a phase begins and ends."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Further facts about the sources, for the trace."""

    def run(self, query: Query, config: RetrieverConfig) -> Context:
        """Run the phases of the configured mode and return the context.

        Raises:
            QueryError: a blank query, or one longer than a model's window.
            ModelError: a model failed.
        """
        check_query(query.text)
        run = Run(query=query, config=config, trace=TraceBuilder(self.clock, self.observer))
        self._embed_query(run)
        self._retrieve(run)
        self._verify(run)
        self._follow(run)
        self._fall_back(run)
        self._prioritize(run)
        self._condense(run)
        composed = self._budget(run)
        return self._context(run, composed)

    def _embed_query(self, run: Run) -> None:
        if run.includes("retrieve") and self.embedder is not None and run.query.vector is None:
            with run.trace.embedding():
                run.query = self._with_query_vector(run.query)

    def _retrieve(self, run: Run) -> None:
        if not run.includes("retrieve"):
            run.skip("retrieve")
            return
        names = [source.name for source in self.sources]
        with run.phase("retrieve", {"candidates": run.config.candidates, "sources": names, **self.notes}) as phase:
            phase.selection = self._without_shown(retrieve(run.query, self.sources, run.config.candidates))
            if self._compares_vectors(run):
                phase.selection = replace(phase.selection, kept=self._with_vectors(phase.selection.kept))

    def _verify(self, run: Run) -> None:
        if not run.includes("verify"):
            run.skip("verify")
            run.candidates = score_candidates(run.query, run.candidates, SimilarityScorer())
            run.judged = {c.id: c for c in run.candidates}
            return
        config = run.config
        settings = {"threshold": config.threshold, "verifier": self.verifier_name, "calibration": self.calibration}
        if evidence := getattr(self.scorer, "evidence", ""):
            settings |= {"evidence": evidence}
        if not config.exact:
            settings |= {"exact": False, "prior": self.prior.name if self.prior else ""}
        with run.phase("verify", settings) as phase:
            if config.exact:
                phase.selection = verify(run.query, run.candidates, self.scorer, config.threshold)
            else:
                phase.selection = cascade(
                    run.query,
                    run.candidates,
                    self.scorer,
                    config.threshold,
                    redundancy=config.redundancy,
                    prior=self.prior,
                )
        dropped = phase.selection.dropped
        scored = [*phase.selection.kept, *(d.candidate for d in dropped if d.candidate.score is not None)]
        run.judged = {c.id: c for c in scored}
        run.unscored = [d for d in dropped if d.candidate.score is None]

    def _follow(self, run: Run) -> None:
        if not run.includes("follow"):
            return
        used: set[str] = set()
        for hop in range(2, run.config.hops + 1):
            evidence = [c for c in run.candidates if c.id not in used][: run.config.evidence]
            if not evidence:
                run.skip("follow", "no fresh evidence")
                return
            used.update(c.id for c in evidence)
            try:
                self._hop(run, hop, evidence)
            except QueryError as error:  # the question alone fits the model's window; with evidence it doesn't
                run.skip("follow", str(error))
                return

    def _hop(self, run: Run, hop: int, evidence: Sequence[Candidate]) -> None:
        config = run.config
        settings = {
            "hop": hop,
            "evidence": [c.id for c in evidence],
            "words": config.evidence_words,
            "follow_k": config.follow_k,
        }
        with run.phase("follow", settings) as phase:
            followed = follow(
                run.query,
                run.candidates,
                run.judged,
                evidence,
                sources=[self._source(run, source) for source in self.sources],
                scorer=self.scorer,
                embed=self._with_query_vector,
                k=config.follow_k,
                threshold=config.threshold,
                words=config.evidence_words,
                unscored=run.unscored,
            )
            phase.selection, run.judged = followed.selection, dict(followed.judged)

    def _fall_back(self, run: Run) -> None:
        config, because = run.config, self._no_fallback(run)
        if because or self.fallback is None:
            run.skip("fallback", because)
            return
        is_source = self.fallback.name in [source.name for source in self.sources]
        was_asked = is_source and config.candidates >= config.fallback_k
        settings = {
            "min_verified": config.min_verified,
            "fallback_k": config.fallback_k,
            "fallback_floor": config.fallback_floor,
            "source": REJECTED if was_asked else self.fallback.name,
        }
        has_verdicts = run.includes("verify")
        with run.phase("fallback", settings) as phase:
            if was_asked:
                phase.selection = reconsider(
                    run.candidates, run.judged, k=config.fallback_k, floor=config.fallback_floor
                )
            else:
                phase.selection = fallback(
                    run.query,
                    run.candidates,
                    run.judged,
                    source=self._source(run, self.fallback),
                    scorer=self.scorer if has_verdicts else SimilarityScorer(),
                    k=config.fallback_k,
                    floor=config.fallback_floor,
                    threshold=config.threshold if has_verdicts else None,
                )

    def _no_fallback(self, run: Run) -> str:
        """Return why phase 3 doesn't run; empty if it does."""
        if not run.includes("fallback"):
            return f"mode {run.config.mode}"
        if self.fallback is None:
            return "no fallback source"
        if len(run.candidates) >= run.config.min_verified:
            return f"{len(run.candidates)} accepted, {run.config.min_verified} wanted"
        return "" if run.config.fallback_k else "fallback_k is 0"

    def _prioritize(self, run: Run) -> None:
        if not run.includes("prioritize"):
            run.skip("prioritize")
            return
        redundancy = run.config.redundancy
        with run.phase("prioritize", {"redundancy": redundancy}) as phase:
            candidates = self._with_vectors(run.candidates)
            phase.selection = prioritize(candidates, _stack_vectors(candidates), redundancy, self.relate)

    def _condense(self, run: Run) -> None:
        config = run.config
        if not run.includes("condense") or config.packing != "sentences":
            return
        if self.split is None:
            raise ConfigurationError("packing 'sentences' needs a sentence splitter: give the pipeline a `split`")
        queries = [(run.query, "")]
        for piece in [c for c in run.candidates if c.verified][: config.evidence] if config.hops > 1 else []:
            text = extend_query(run.query.text, [piece.passage.content], config.evidence_words)
            queries.append((replace(run.query, text=text), piece.id))
        threshold = config.sentence_threshold
        with run.phase("condense", {"threshold": threshold, "verifier": self.verifier_name}) as phase:
            phase.selection = Selection(kept=condense(queries, run.candidates, self.scorer, self.split, threshold))

    def _budget(self, run: Run) -> Composed:
        config = run.config
        settings = {"max_tokens": config.max_tokens, "limit": config.limit, "tokens": self.tokens.name}
        with (
            run.phase("budget", settings) as phase,
            wrap_errors(ModelError, f"counting tokens with {self.tokens.name!r}"),
        ):
            composed = budget(
                run.candidates,
                self.tokens,
                max_tokens=config.max_tokens,
                limit=config.limit,
                separator=config.separator,
                citations=config.citations,
            )
            phase.selection = composed.selection
        return composed

    def _context(self, run: Run, composed: Composed) -> Context:
        passages = tuple(
            ContextPassage(passage=c.passage, score=c.score, verified=c.verified, origin=c.origin, tokens=c.tokens or 0)
            for c in run.candidates
        )
        sufficient, account = self._sufficiency(run, passages)
        trace = run.trace.finish(
            run.candidates,
            mode=run.config.mode,
            embedder=self.embedder.name if self.embedder else "",
            verifier=self.verifier_name if run.includes("verify") else "",
            tokens=self.tokens.name,
            sufficiency=account,
        )
        return Context(
            query=run.query.text,
            text=composed.text,
            tokens=composed.tokens,
            max_tokens=run.config.max_tokens,
            sufficient=sufficient,
            sufficiency=account.get("estimate"),
            passages=passages,
            trace=trace,
        )

    def _sufficiency(self, run: Run, passages: Sequence[ContextPassage]) -> tuple[bool, dict[str, Any]]:
        """Return whether the context is sufficient, and by which estimate; without a verified passage it never is."""
        has_verified = any(p.verified for p in passages)
        if self.estimator is None or not run.includes("verify"):
            return has_verified, {}
        threshold = run.config.sufficiency_threshold
        threshold = self.estimator.threshold if threshold is None else threshold
        with wrap_errors(ModelError, f"estimating sufficiency with {self.estimator.name!r}"):
            estimate = float(self.estimator.estimate(run.query.text, passages))
        account = {"estimator": self.estimator.name, "estimate": round(estimate, 4), "threshold": threshold}
        return has_verified and estimate >= threshold, account

    def _without_shown(self, candidates: list[Candidate]) -> Selection:
        shown = self.already_shown or (lambda _: False)
        old = {c.id for c in candidates if shown(c.passage)}
        return Selection(
            kept=[c for c in candidates if c.id not in old],
            dropped=[Dropped(candidate=c, reason="shown_already") for c in candidates if c.id in old],
        )

    def _compares_vectors(self, run: Run) -> bool:
        """Return whether all candidates need vectors, not only those that phase 4 orders."""
        return not run.includes("verify") or not run.config.exact or getattr(self.scorer, "reads_vectors", True)

    def _source(self, run: Run, source: Source) -> Source:
        return _WithVectors(source, self) if self._compares_vectors(run) else source

    def _with_query_vector(self, query: Query) -> Query:
        if self.embedder is None:
            return query
        with wrap_errors(ModelError, f"embedding the query with {self.embedder.name!r}"):
            vector = self.embedder.embed_query(query.text)
        shape = (self.embedder.dimension,)
        return replace(query, vector=validate_vectors(vector, shape, f"embedder {self.embedder.name!r}"))

    def _with_vectors(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        """Embed the candidates that come without a vector, in one batch."""
        bare = [c for c in candidates if c.vector is None]
        if not bare:
            return candidates
        if self.embedder is None:
            raise ConfigurationError(
                f"{len(bare)} candidates of source {bare[0].origin!r} have no vector: give the pipeline an embedder"
            )
        with wrap_errors(ModelError, f"embedding {len(bare)} passages with {self.embedder.name!r}"):
            embedded = self.embedder.embed_passages([c.passage.content for c in bare])
        vectors = dict(zip((c.id for c in bare), embedded, strict=True))
        return [c if c.vector is not None else replace(c, vector=vectors[c.id]) for c in candidates]


@dataclass(frozen=True, slots=True)
class _WithVectors:
    """A source whose candidates all have vectors, stored or embedded here."""

    inner: Source
    pipeline: Pipeline

    @property
    def name(self) -> str:
        return self.inner.name

    def search(self, query: Query, k: int) -> Sequence[Candidate]:
        return self.pipeline._with_vectors(self.inner.search(query, k))


def check_query(text: object) -> None:
    """Check that a query is text.

    Raises:
        QueryError: another type, a blank query, or one that isn't valid Unicode.
    """
    if not isinstance(text, str):
        raise QueryError(f"query must be a string, got {type(text).__name__}: {text!r:.80}")
    if not text.strip():
        raise QueryError(f"query must not be blank, got {text!r:.40}")
    try:
        text.encode()
    except UnicodeEncodeError as cause:
        raise QueryError(f"query must be valid Unicode text, got {text!r:.80}") from cause


def _stack_vectors(candidates: Sequence[Candidate]) -> FloatArray:
    vectors = [c.vector for c in candidates if c.vector is not None]
    return np.array(vectors) if vectors else np.zeros((0, 1), dtype=np.float32)
