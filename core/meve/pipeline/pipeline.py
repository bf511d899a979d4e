"""Run the five phases over given sources and components; knows no corpus and no memory."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from meve._telemetry import span
from meve.clock import Clock, SystemClock
from meve.errors import ModelError, QueryError, wrap_errors
from meve.pipeline._candidate_vectors import SourceWithVectors, stack_vectors, with_query_vector, with_vectors
from meve.pipeline._deadline import DEADLINE, Deadline
from meve.pipeline._insufficient import explain_insufficient, raise_insufficient
from meve.pipeline._packing import Packer
from meve.pipeline._retrieval_report import describe_retrieval
from meve.pipeline._run_state import Run
from meve.pipeline._scorers import SimilarityScorer
from meve.pipeline._trace_builder import TraceBuilder
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.context import Context
from meve.pipeline.phases.budget import Composed, fills_budget, fits_alone
from meve.pipeline.phases.cascade import DUPLICATE_OF, cascade, order_by_chance, split_unlikely
from meve.pipeline.phases.condense import SharesCode, SplitSentences
from meve.pipeline.phases.fallback import fallback, reconsider
from meve.pipeline.phases.fill import SharesWords
from meve.pipeline.phases.follow import follow
from meve.pipeline.phases.prioritize import RankedCandidates, Relate, diversify, drop_copies, prioritize
from meve.pipeline.phases.retrieve import retrieve
from meve.pipeline.phases.verify import score_candidates, verify
from meve.pipeline.query_check import check_query
from meve.pipeline.trace import Observer
from meve.ports import Embedder, Estimator, Prior, Scorer, Source, TokenCounter
from meve.types import Candidate, Dropped, Entity, Passage, Query, Selection

REJECTED = "rejected"
"""The fallback's source in the trace if phase 1 has searched it already, or the time is up: the rejected candidates."""


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
    """Predicts which candidates will fail, unless `exact`."""
    correct: Callable[[str, Callable[[str], int]], tuple[str, dict[str, str]]] | None = None
    """Corrects the misspelt words of a question, given what counts the texts with a word, and names the corrections."""
    relate: Relate | None = None
    """Relates two similar passages in phase 4; None for the rule that `RetrieverConfig.duplicates` names."""
    compares_packed: bool = False
    """If True, phase 4 only ranks, and phase 5 compares only the candidates that fit, which saves time. Nothing is
    filled or diversified then."""
    repeats: Relate | None = None
    """Tells whether a passage repeats another one; None if that isn't known, and all similar ones are duplicates."""
    shares_words: SharesWords | None = None
    """Tells whether a text's words relate it to a question; None if only vectors and scores do, when a context is
    filled."""
    shares_code: SharesCode | None = None
    """Tells whether a sentence has a code of the question; None if ratings alone choose sentences."""
    already_shown: Callable[[Passage], bool] | None = None
    """Returns whether the reader has a passage already; phase 1 drops such passages."""
    find_missing: Callable[[str, Sequence[str]], Sequence[Entity]] | None = None
    """Finds what a question names and none of the texts holds, for the trace."""
    split: SplitSentences | None = None
    """Splits a text into sentences; needed for `packing="sentences"`."""
    cut: Callable[[Query, Candidate, int], Candidate] | None = None
    """Reduces one of the best candidates to a number of tokens, where a small budget can't hold it; None for never."""
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
            QueryError: a blank query, or one of more than 4,096 tokens.
            InsufficientContextError: the context isn't sufficient, and `when_insufficient` is `raise`.
            ModelError: a model failed.
        """
        check_query(query.text)
        with span("retrieval") as reported:
            context = self._run(query, config)
            describe_retrieval(reported, query, config, context)
        if not context.sufficient and config.when_insufficient == "raise":
            raise_insufficient(context)
        return context

    def _run(self, query: Query, config: RetrieverConfig) -> Context:
        deadline = None if config.deadline is None else Deadline(self.clock, config.deadline)
        run = Run(
            query=query, asked=query.text, config=config, trace=TraceBuilder(self.clock, self.observer),
            deadline=deadline,
        )  # fmt: skip
        self._correct_spelling(run)
        self._embed_query(run)
        self._retrieve(run)
        self._verify(run)
        self._follow(run)
        self._fall_back(run)
        packer = self._make_packer()
        packer.shorten(run)
        self._prioritize(run)
        packer.condense(run)
        composed = packer.budget(run)
        sufficient, account = self._sufficiency(run)
        packed = run.candidates
        composed = packer.settle(run, composed, sufficient, account.get("estimate"))
        if not sufficient:
            reason = explain_insufficient(run, packed, account, is_filled=bool(composed.selection.kept))
            account["reason"] = "; ".join([reason, *self.notes.get("warnings", ())])
        return self._context(run, composed, sufficient, account)

    def _make_packer(self) -> Packer:
        return Packer(
            scorer=self.scorer, tokens=self.tokens, split=self.split, repeats=self.repeats, cut=self.cut,
            shares_words=self.shares_words, shares_code=self.shares_code, verifier_name=self.verifier_name,
        )  # fmt: skip

    def _correct_spelling(self, run: Run) -> None:
        """Correct misspelt words, if a source tells which words its passages hold."""
        if self.correct is None or not run.config.spelling or not run.includes("retrieve"):
            return
        make = next((m for s in (*self.sources, self.fallback) if (m := getattr(s, "word_counter", None))), None)
        if make is not None and (count_texts := make(run.query)) is not None:
            text, run.corrections = self.correct(run.query.text, count_texts)
            run.query = replace(run.query, text=text)

    def _embed_query(self, run: Run) -> None:
        if run.includes("retrieve") and self.embedder is not None and run.query.vector is None:
            with run.trace.embedding():
                run.query = with_query_vector(run.query, self.embedder)

    def _retrieve(self, run: Run) -> None:
        if not run.includes("retrieve"):
            run.skip("retrieve")
            return
        names = [source.name for source in self.sources]
        with run.phase("retrieve", {"candidates": run.config.candidates, "sources": names, **self.notes}) as phase:
            phase.selection = self._without_shown(retrieve(run.query, self.sources, run.config.candidates))
            if self._compares_vectors(run):
                phase.selection = replace(phase.selection, kept=with_vectors(phase.selection.kept, self.embedder))
        run.retrieved = run.candidates

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
        if most := getattr(self.scorer, "most_windows", None):
            settings["most_windows"] = most
        if config.exact is False:
            settings["exact"] = False
        if run.deadline:
            settings["deadline"] = config.deadline
        if self._skips(run) or run.deadline:
            settings["prior"] = self.prior.name if self.prior else ""
        with run.phase("verify", settings) as phase:
            if config.exact is not False:
                ordered = order_by_chance(run.query, run.candidates, self.prior)
                least = self.prior.least if self.prior and self._skips(run) else 0.0
                candidates, unlikely = split_unlikely(ordered, least)
                chosen = verify(run.query, candidates, self.scorer, config.threshold, deadline=run.deadline)
                phase.selection = replace(chosen, dropped=[*chosen.dropped, *unlikely])
            else:
                phase.selection = cascade(
                    run.query,
                    run.candidates,
                    self.scorer,
                    config.threshold,
                    redundancy=config.redundancy,
                    relate=self._relate(config),
                    prior=self.prior,
                    is_full=partial(self._is_full, config),
                    fits=partial(fits_alone, counter=self.tokens, max_tokens=config.max_tokens),
                    deadline=run.deadline,
                )
        dropped = phase.selection.dropped
        scored = [*phase.selection.kept, *(d.candidate for d in dropped if d.candidate.score is not None)]
        run.judged = {c.passage.id: c for c in scored}
        run.unscored = [d for d in dropped if d.candidate.score is None]
        run.duplicates |= {d.candidate.id for d in dropped if d.reason.startswith(DUPLICATE_OF)}

    def _skips(self, run: Run) -> bool:
        """Return whether phase 2 and further hops leave unlikely candidates without a score."""
        return run.config.exact is False or (run.config.exact is None and self.prior is not None)

    def _is_full(self, config: RetrieverConfig, verified: Sequence[Candidate]) -> bool:
        """Return whether verified candidates fill the context, as far as their tokens tell before they are packed."""
        distinct = prioritize(verified, stack_vectors(verified), config.redundancy, self._relate(config)).kept
        max_tokens = config.max_tokens if config.packing == "passages" else None
        with wrap_errors(ModelError, f"counting tokens with {self.tokens.name!r}"):
            return fills_budget(distinct, self.tokens, max_tokens=max_tokens, limit=config.limit)

    def _follow(self, run: Run) -> None:
        if not run.includes("follow"):
            return
        used: set[str] = set()
        for hop in range(2, run.config.hops + 1):
            evidence = [c for c in run.candidates if c.id not in used][: run.config.evidence]
            if not evidence:
                run.skip("follow", "no fresh evidence")
                return
            if not run.has_time_for(1):
                run.skip("follow", DEADLINE)
                return
            used.update(c.id for c in evidence)
            try:
                self._hop(run, hop, evidence)
                run.evidence += evidence
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
                embed=partial(with_query_vector, embedder=self.embedder),
                k=config.follow_k,
                threshold=config.threshold,
                words=config.evidence_words,
                prior=self.prior if self._skips(run) else None,
                unscored=run.unscored,
                deadline=run.deadline,
            )
            phase.selection, run.judged = followed.selection, dict(followed.judged)

    def _fall_back(self, run: Run) -> None:
        config, because = run.config, self._no_fallback(run)
        if because or self.fallback is None:
            run.skip("fallback", because)
            return
        is_source = self.fallback.name in [source.name for source in self.sources]
        has_verdicts = run.includes("verify")
        was_asked = is_source and config.candidates >= config.fallback_k
        reconsiders = was_asked or (has_verdicts and not run.has_time_for(1))
        settings = {
            "min_verified": config.min_verified,
            "fallback_k": config.fallback_k,
            "fallback_floor": config.fallback_floor,
            "source": REJECTED if reconsiders else self.fallback.name,
        }
        distinct = partial(self._distinct, config) if self._drops_copies(run) else None
        with run.phase("fallback", settings) as phase:
            if reconsiders:
                phase.selection = reconsider(
                    run.candidates, run.judged, k=config.fallback_k, floor=config.fallback_floor, distinct=distinct
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
                    distinct=distinct,
                    deadline=run.deadline if has_verdicts else None,
                )
        found = [*phase.selection.kept, *(d.candidate for d in phase.selection.dropped)]
        run.judged |= {c.id: c for c in found if c.score is not None}

    def _no_fallback(self, run: Run) -> str:
        """Return why phase 3 doesn't run; empty if it does."""
        if not run.includes("fallback"):
            return f"mode {run.config.mode}"
        if self.fallback is None:
            return "no fallback source"
        accepted = len(run.candidates)
        if accepted >= run.config.min_verified and self._drops_copies(run):
            accepted = len(self._distinct(run.config, run.candidates, ()))  # copies don't count
        if accepted >= run.config.min_verified:
            return f"{accepted} accepted, {run.config.min_verified} wanted"
        return "" if run.config.fallback_k else "fallback_k is 0"

    def _prioritize(self, run: Run) -> None:
        if not run.includes("prioritize"):
            run.skip("prioritize")
            return
        config = run.config
        settings: dict[str, Any] = {"redundancy": config.redundancy, "duplicates": config.duplicates}
        if config.diversify:
            settings["diversify"] = config.diversify
        with run.phase("prioritize", settings) as phase:
            candidates = with_vectors(run.candidates, self.embedder)
            vectors = stack_vectors(candidates)
            shortened = {c.id for c in candidates if c.sentences is not None}
            ranked = RankedCandidates(candidates, vectors, config.redundancy, self._relate(config, shortened))
            if self.compares_packed:
                phase.selection, run.find_reason = Selection(kept=ranked.order), ranked.find_reason
                return
            phase.selection = ranked.select()
            run.duplicates |= {d.candidate.id for d in phase.selection.dropped}
            run.copies = list(phase.selection.dropped)
            if config.diversify:
                kept = phase.selection.kept
                ordered = diversify(kept, stack_vectors(kept), config.diversify)
                phase.selection = replace(phase.selection, kept=ordered)

    def _drops_copies(self, run: Run) -> bool:
        """Return whether copies neither count nor take places in phase 3; in the paper, phase 4 alone drops them."""
        return (
            run.includes("prioritize") and run.config.duplicates == "repeated" and self._relate(run.config) is not None
        )

    def _distinct(
        self, config: RetrieverConfig, candidates: Sequence[Candidate], known: Sequence[Candidate]
    ) -> list[Candidate]:
        """Return the candidates that copy neither a known one nor one before them."""
        fresh = with_vectors(candidates, self.embedder)
        return drop_copies(fresh, with_vectors(known, self.embedder), config.redundancy, self._relate(config))

    def _relate(self, config: RetrieverConfig, shortened: Set[str] = frozenset()) -> Relate | None:
        """Return the rule of phase 4. A shortened passage stands only for what is left of it."""
        repeats = self.repeats
        if self.relate or config.duplicates == "repeated" or not shortened or repeats is None:
            return self.relate or (repeats if config.duplicates == "repeated" else None)
        return lambda one, other: repeats(one, other) if {one.id, other.id} & shortened else "same"

    def _context(self, run: Run, composed: Composed, sufficient: bool, account: Mapping[str, Any]) -> Context:
        trace = run.trace.finish(
            run.candidates,
            mode=run.config.mode,
            embedder=self.embedder.name if self.embedder else "",
            verifier=self.verifier_name if run.includes("verify") else "",
            tokens=self.tokens.name,
            sufficiency=account,
        )
        return Context(
            query=run.asked,
            text=composed.text,
            tokens=composed.tokens,
            max_tokens=run.config.max_tokens,
            sufficient=sufficient,
            sufficiency=account.get("estimate"),
            passages=run.passages,
            trace=trace,
            corrections=run.corrections,
        )

    def _sufficiency(self, run: Run) -> tuple[bool, dict[str, Any]]:
        """Return whether the context is sufficient, and by which estimate; without a verified passage it never is."""
        has_verified = any(c.verified for c in run.candidates)
        if self.estimator is None or not run.includes("verify"):
            return has_verified, {}
        passages = run.passages
        find = self.find_missing or (lambda *_: ())
        missing = find(run.asked, [p.passage.content for p in passages])
        threshold = run.config.sufficiency_threshold
        threshold = self.estimator.threshold if threshold is None else threshold
        with wrap_errors(ModelError, f"estimating sufficiency with {self.estimator.name!r}"):
            estimate = float(self.estimator.estimate(run.query.text, passages))
        if not 0 <= estimate <= 1:
            raise ModelError(f"estimator {self.estimator.name!r} must return a probability in [0, 1], got {estimate:g}")
        account = {"estimator": self.estimator.name, "estimate": round(estimate, 4), "threshold": threshold}
        if missing:
            account["missing"] = [{"kind": e.kind, "start": e.start, "end": e.start + len(e.text)} for e in missing]
        return has_verified and estimate >= threshold, account

    def _without_shown(self, candidates: list[Candidate]) -> Selection:
        if self.already_shown is None:
            return Selection(kept=candidates)
        old = {c.id for c in candidates if self.already_shown(c.passage)}
        return Selection(
            kept=[c for c in candidates if c.id not in old],
            dropped=[Dropped(candidate=c, reason="shown_already") for c in candidates if c.id in old],
        )

    def _compares_vectors(self, run: Run) -> bool:
        """Return whether all candidates need vectors, not only those that phase 4 orders."""
        has_prior = run.deadline is not None and self.prior is not None
        return (
            not run.includes("verify") or self._skips(run) or has_prior or getattr(self.scorer, "reads_vectors", True)
        )

    def _source(self, run: Run, source: Source) -> Source:
        return SourceWithVectors(source, self.embedder) if self._compares_vectors(run) else source
