"""The five phases in a row, over whatever sources and parts it is given; knows no corpus and no memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from meve._vectors import checked_vectors
from meve.clock import Clock, SystemClock
from meve.errors import ConfigurationError, ModelError, QueryError, foreign
from meve.pipeline._scorers import SimilarityScorer
from meve.pipeline._trace_builder import Recorder
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.context import Context
from meve.pipeline.phases import (
    Composed,
    budget,
    cascade,
    condense,
    fallback,
    follow,
    judge,
    prioritize,
    reconsider,
    retrieve,
    verify,
)
from meve.pipeline.phases.condense import Split
from meve.pipeline.phases.follow import with_evidence
from meve.pipeline.phases.prioritize import Relate
from meve.pipeline.trace import Observer
from meve.ports import Embedder, Estimator, Prior, Scorer, Source, TokenCounter
from meve.types import Candidate, ContextPassage, Dropped, FloatArray, Passage, Query, Selection

TURNED_DOWN = "turned down"
"""Where the fallback looks when phase 1 asked its source already, for as many or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """Five phases over given parts. Cheap to make, holds no state, safe to share between threads.

    Other systems plug in here: other sources for phase 1, another scorer for phase 2, another fallback. The phases
    don't know which system they serve.
    """

    sources: Sequence[Source]
    """Where candidates come from, the most trusted first."""
    scorer: Scorer
    """Whose score a candidate must reach the threshold with."""
    fallback: Source | None
    """Where phase 3 looks; None for nowhere."""
    tokens: TokenCounter
    embedder: Embedder | None = None
    """Embeds the query, once, and passages that come without a vector."""
    estimator: Estimator | None = None
    """Whether a context can carry an answer; without one, whether anything in it is verified."""
    prior: Prior | None = None
    """Which candidates stand no chance, for a verification that need not be exact."""
    relate: Relate | None = None
    """What two passages whose embeddings are close are to each other; None for taking them for the same."""
    shown: Callable[[Passage], bool] | None = None
    """Whether a passage stands before the reader already; the first phase drops it then. None for none."""
    split: Split | None = None
    """Into sentences; only needed where sentences are packed."""
    verifier_name: str = ""
    calibration: Mapping[str, Any] = field(default_factory=dict)
    """How the verifier's scores became probabilities, for the trace."""
    clock: Clock = field(default_factory=SystemClock)
    observer: Observer | None = None
    """Told of each phase while it happens."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """What the trace shall say of the sources, beside their names."""

    def run(self, query: Query, config: RetrieverConfig) -> Context:
        """From a question to a context.

        Raises:
            QueryError: the query is blank, or longer than a model's window.
            ModelError: a model failed; nothing stands in for it unsaid.
        """
        check_query(query.text)
        recorder = Recorder(self.clock, self.observer)
        verifying = config.mode in ("full", "no_fallback")
        query = self._embedded(query, config, recorder)
        found = self._retrieve(query, config, recorder)
        accepted, judged, spared = self._verify(query, found, config, recorder, verifying)
        if verifying and config.hops > 1:
            accepted, judged = self._follow(query, accepted, judged, spared, config, recorder)
        combined = self._fallback(query, accepted, judged, config, recorder, verifying)
        ordered = self._prioritize(combined, config, recorder)
        if verifying and config.packing == "sentences":
            ordered = self._condense(query, ordered, config, recorder)
        composed = self._budget(ordered, config, recorder)
        passages = tuple(
            ContextPassage(passage=c.passage, score=c.score, verified=c.verified, origin=c.origin, tokens=c.tokens or 0)
            for c in composed.selection.kept
        )
        enough, account = self._sufficient(query, passages, config, verifying)
        trace = recorder.finish(
            composed.selection.kept,
            mode=config.mode,
            embedder=self.embedder.name if self.embedder else "",
            verifier=self.verifier_name if verifying else "",
            tokens=self.tokens.name,
            sufficiency=account,
        )
        return Context(
            query=query.text,
            text=composed.text,
            tokens=composed.tokens,
            max_tokens=config.max_tokens,
            sufficient=enough,
            sufficiency=account.get("estimate"),
            passages=passages,
            trace=trace,
        )

    def _embedded(self, query: Query, config: RetrieverConfig, recorder: Recorder) -> Query:
        if self.embedder is None or query.vector is not None or config.mode == "no_rag":
            return query
        with recorder.embedding():
            return self._vector(query)

    def _vector(self, query: Query) -> Query:
        """The query with its vector; as it is where there is no embedder."""
        if self.embedder is None:
            return query
        with foreign(ModelError, f"embedding the query with {self.embedder.name!r}"):
            vector = self.embedder.embed_query(query.text)
        shape = (self.embedder.dimension,)
        return replace(query, vector=checked_vectors(vector, shape, f"embedder {self.embedder.name!r}"))

    def _retrieve(self, query: Query, config: RetrieverConfig, recorder: Recorder) -> list[Candidate]:
        if config.mode == "no_rag":
            recorder.skip("retrieve", received=0, returned=0, because="mode no_rag")
            return []
        names = [source.name for source in self.sources]
        settings = {"candidates": config.candidates, "sources": names, **self.notes}
        with recorder.phase("retrieve", received=0, settings=settings) as p:
            found = self._new(retrieve(query, self.sources, config.candidates))
            kept = p.done(found)
            return self._with_vectors(kept) if self._compares(config) else kept

    def _new(self, found: list[Candidate]) -> Selection:
        """What isn't shown already."""
        shown = self.shown or (lambda _: False)
        old = {c.id for c in found if shown(c.passage)}
        return Selection(
            kept=[c for c in found if c.id not in old],
            dropped=[Dropped(candidate=c, reason="shown_already") for c in found if c.id in old],
        )

    def _verify(
        self, query: Query, found: list[Candidate], config: RetrieverConfig, recorder: Recorder, verifying: bool
    ) -> tuple[list[Candidate], dict[str, Candidate], list[Dropped]]:
        """What is accepted, every verdict by id, and what was left unscored."""
        if not verifying:
            recorder.skip("verify", received=len(found), returned=len(found), because=f"mode {config.mode}")
            judged = judge(query, found, SimilarityScorer())
            return judged, {c.id: c for c in judged}, []
        settings: dict[str, Any] = {
            "threshold": config.threshold,
            "verifier": self.verifier_name,
            "calibration": self.calibration,
        }
        if not config.exact:
            settings |= {"exact": False, "prior": self.prior.name if self.prior else ""}
        with recorder.phase("verify", received=len(found), settings=settings) as p:
            selection = self._verified(query, found, config)
            p.done(selection)
        judged = [*selection.kept, *(d.candidate for d in selection.dropped if d.candidate.score is not None)]
        spared = [d for d in selection.dropped if d.candidate.score is None]
        return list(selection.kept), {c.id: c for c in judged}, spared

    def _verified(self, query: Query, found: list[Candidate], config: RetrieverConfig) -> Selection:
        if config.exact:
            return verify(query, found, self.scorer, config.threshold)
        redundancy, prior = config.redundancy, self.prior
        return cascade(query, found, self.scorer, config.threshold, redundancy=redundancy, prior=prior)

    def _follow(
        self,
        query: Query,
        accepted: list[Candidate],
        judged: dict[str, Candidate],
        spared: list[Dropped],
        config: RetrieverConfig,
        recorder: Recorder,
    ) -> tuple[list[Candidate], dict[str, Candidate]]:
        used: set[str] = set()
        for hop in range(2, config.hops + 1):
            evidence = [c for c in accepted if c.id not in used][: config.evidence]
            if not evidence:
                recorder.skip("follow", received=len(accepted), returned=len(accepted), because="no fresh evidence")
                break
            used.update(c.id for c in evidence)
            settings = {
                "hop": hop,
                "evidence": [c.id for c in evidence],
                "words": config.evidence_words,
                "follow_k": config.follow_k,
            }
            try:
                with recorder.phase("follow", received=len(accepted), settings=settings) as p:
                    found = follow(
                        query,
                        accepted,
                        judged,
                        evidence,
                        sources=[self._asked(source, config) for source in self.sources],
                        scorer=self.scorer,
                        embed=self._vector,
                        k=config.follow_k,
                        threshold=config.threshold,
                        words=config.evidence_words,
                        spared=spared,
                    )
                    accepted, judged = p.done(found.selection), dict(found.judged)
            except QueryError as error:  # the question alone fits; with evidence it doesn't
                recorder.skip("follow", received=len(accepted), returned=len(accepted), because=str(error))
                break
        return accepted, judged

    def _fallback(
        self,
        query: Query,
        accepted: list[Candidate],
        judged: dict[str, Candidate],
        config: RetrieverConfig,
        recorder: Recorder,
        verifying: bool,
    ) -> list[Candidate]:
        n = len(accepted)
        because = self._no_fallback(n, config)
        if because or self.fallback is None:
            recorder.skip("fallback", received=n, returned=n, because=because)
            return accepted
        sources = [source.name for source in self.sources]
        asked = self.fallback.name in sources and config.candidates >= config.fallback_k
        settings = {
            "min_verified": config.min_verified,
            "fallback_k": config.fallback_k,
            "fallback_floor": config.fallback_floor,
            "source": TURNED_DOWN if asked else self.fallback.name,
        }
        with recorder.phase("fallback", received=n, settings=settings) as p:
            if asked:
                return p.done(reconsider(accepted, judged, k=config.fallback_k, floor=config.fallback_floor))
            selection = fallback(
                query,
                accepted,
                judged,
                source=self._asked(self.fallback, config),
                scorer=self.scorer if verifying else SimilarityScorer(),
                k=config.fallback_k,
                floor=config.fallback_floor,
                threshold=config.threshold if verifying else None,
            )
            return p.done(selection)

    def _no_fallback(self, accepted: int, config: RetrieverConfig) -> str:
        if config.mode in ("no_fallback", "standard_rag", "no_rag"):
            return f"mode {config.mode}"
        if self.fallback is None:
            return "no fallback source"
        if accepted >= config.min_verified:
            return f"{accepted} accepted, {config.min_verified} wanted"
        return "" if config.fallback_k else "fallback_k is 0"

    def _prioritize(self, combined: list[Candidate], config: RetrieverConfig, recorder: Recorder) -> list[Candidate]:
        if config.mode in ("standard_rag", "no_rag"):
            recorder.skip("prioritize", received=len(combined), returned=len(combined), because=f"mode {config.mode}")
            return combined
        with recorder.phase("prioritize", received=len(combined), settings={"redundancy": config.redundancy}) as p:
            combined = self._with_vectors(combined)
            return p.done(prioritize(combined, _stacked(combined), config.redundancy, self.relate))

    def _condense(
        self, query: Query, ordered: list[Candidate], config: RetrieverConfig, recorder: Recorder
    ) -> list[Candidate]:
        if self.split is None:
            raise ConfigurationError("packing is 'sentences', and nothing splits into them: give the pipeline a split")
        asked = [(query, "")]
        for piece in [c for c in ordered if c.verified][: config.evidence] if config.hops > 1 else []:
            text = with_evidence(query.text, [piece.passage.content], config.evidence_words)
            asked.append((replace(query, text=text), piece.id))
        settings = {"threshold": config.sentence_threshold, "verifier": self.verifier_name}
        with recorder.phase("condense", received=len(ordered), settings=settings) as p:
            return p.done(condense(asked, ordered, self.scorer, self.split, config.sentence_threshold))

    def _budget(self, ordered: list[Candidate], config: RetrieverConfig, recorder: Recorder) -> Composed:
        settings = {"max_tokens": config.max_tokens, "limit": config.limit, "tokens": self.tokens.name}
        with recorder.phase("budget", received=len(ordered), settings=settings) as p:
            with foreign(ModelError, f"counting tokens with {self.tokens.name!r}"):
                composed = budget(
                    ordered,
                    self.tokens,
                    max_tokens=config.max_tokens,
                    limit=config.limit,
                    separator=config.separator,
                    citations=config.citations,
                )
            p.done(composed.selection)
            return composed

    def _sufficient(
        self, query: Query, passages: Sequence[ContextPassage], config: RetrieverConfig, verifying: bool
    ) -> tuple[bool, dict[str, Any]]:
        """Whether the context can carry an answer, and by which account. Nothing verified is never enough."""
        verified = any(p.verified for p in passages)
        if self.estimator is None or not verifying:
            return verified, {}
        threshold = config.sufficiency_threshold
        threshold = self.estimator.threshold if threshold is None else threshold
        with foreign(ModelError, f"estimating sufficiency with {self.estimator.name!r}"):
            estimate = float(self.estimator.estimate(query.text, passages))
        account = {"estimator": self.estimator.name, "estimate": round(estimate, 4), "threshold": threshold}
        return verified and estimate >= threshold, account

    def _compares(self, config: RetrieverConfig) -> bool:
        """Whether vectors of all candidates are compared, and not of those alone that phase 4 orders."""
        verifying = config.mode in ("full", "no_fallback")
        return not verifying or not config.exact or getattr(self.scorer, "reads_vectors", True)

    def _asked(self, source: Source, config: RetrieverConfig) -> Source:
        return _Vectored(source, self) if self._compares(config) else source

    def _with_vectors(self, candidates: list[Candidate]) -> list[Candidate]:
        """Candidates from a source that stores no vectors get theirs here, in one batch."""
        bare = [c for c in candidates if c.vector is None]
        if not bare:
            return candidates
        if self.embedder is None:
            raise ConfigurationError(
                f"{len(bare)} candidates of source {bare[0].origin!r} come without a vector: "
                "give the pipeline an embedder"
            )
        with foreign(ModelError, f"embedding {len(bare)} passages with {self.embedder.name!r}"):
            made = self.embedder.embed_passages([c.passage.content for c in bare])
        vectors = dict(zip((c.id for c in bare), made, strict=True))
        return [c if c.vector is not None else replace(c, vector=vectors[c.id]) for c in candidates]


@dataclass(frozen=True, slots=True)
class _Vectored:
    """A source whose candidates have vectors, whether or not it stores them."""

    inner: Source
    pipeline: Pipeline

    @property
    def name(self) -> str:
        return self.inner.name

    def search(self, query: Query, k: int) -> Sequence[Candidate]:
        return self.pipeline._with_vectors(list(self.inner.search(query, k)))


def check_query(text: object) -> None:
    """Refuse what isn't a question.

    Raises:
        QueryError: not text, blank, or with surrogates that stand for no character.
    """
    if not isinstance(text, str):
        raise QueryError(f"a query must be text, not {type(text).__name__}: {text!r:.80}")
    if not text.strip():
        raise QueryError(f"the query is blank ({text!r:.40}): ask something")
    try:
        text.encode()
    except UnicodeEncodeError as cause:
        raise QueryError(f"the query {text!r:.80} is no valid text: it can't be written as UTF-8") from cause


def _stacked(candidates: Sequence[Candidate]) -> FloatArray:
    vectors = [c.vector for c in candidates if c.vector is not None]
    return np.array(vectors) if vectors else np.zeros((0, 1), dtype=np.float32)
