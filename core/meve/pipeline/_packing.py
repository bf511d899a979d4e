"""Pack the candidates of a retrieval, and settle what becomes of a context that isn't sufficient."""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from functools import partial

from meve._warn_once import warn_once
from meve.errors import ConfigurationError, ModelError, wrap_errors
from meve.pipeline._deadline import DEADLINE
from meve.pipeline._run_state import Run
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.phases.budget import OVER_BUDGET, Composed, Cut, budget, with_counts
from meve.pipeline.phases.condense import (
    RATED_SENTENCE,
    READ_SENTENCE,
    ScoreSentences,
    SharesCode,
    SplitSentences,
    condense,
    find_spans,
    put_named_first,
)
from meve.pipeline.phases.fill import SharesWords, fill
from meve.pipeline.phases.follow import extend_query
from meve.pipeline.phases.prioritize import REDUNDANT_WITH, Relate
from meve.pipeline.phases.shorten import LEAST, MOST_SHARING, find_pieces, rate_by_words, share_budget, shorten
from meve.ports import Scorer, TokenCounter
from meve.types import Candidate, Dropped, Passage, Query, Selection, TextSpans, sort_best_first

UNVERIFIED = "unverified"
"""The reason of a candidate that `when_insufficient="verified_only"` leaves out."""
INSUFFICIENT = "insufficient"
"""The reason of a candidate that `when_insufficient="abstain"` leaves out."""
MANY = 4
"""A context with so many verified passages is filled: if several passages answer, others may answer too."""
_NUMBER = "[10] "
"""A number before a passage that is cited, to count its tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packer:
    """Reduces, packs, fills or withholds the candidates of one retrieval, with the components of its pipeline."""

    scorer: Scorer
    tokens: TokenCounter
    split: SplitSentences | None
    """Splits a text into sentences; needed for `packing="sentences"`."""
    repeats: Relate | None
    """Tells whether a passage repeats another one; None if that isn't known."""
    shares_words: SharesWords | None
    """Tells whether a text's words relate it to a question; None if that isn't known."""
    shares_code: SharesCode | None
    """Tells whether a text has a code of the question, such as E3; None if that isn't known."""
    verifier_name: str
    cut: Callable[[Query, Candidate, int], Candidate] | None = None
    """Reduces one of the best candidates to a number of tokens where a small budget can't hold it."""

    def shorten(self, run: Run) -> None:
        """Reduce the candidates that exceed the budget by themselves, so that none is lost for its length."""
        config = run.config
        if self.split is None or not run.includes("verify"):
            return
        counted = self._count(run.candidates)
        too_long = {c.id for c in counted if self._exceeds(c, config)}
        if not too_long:
            return
        share = share_budget(counted, config.max_tokens, self._overhead(config), config.limit)
        with run.phase("shorten", {"max_tokens": share}) as phase:
            phase.selection = Selection(kept=[self._shorten(run, c, share) if c.id in too_long else c for c in counted])

    def _count(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        with wrap_errors(ModelError, f"counting tokens with {self.tokens.name!r}"):
            return with_counts(candidates, self.tokens)

    def _exceeds(self, candidate: Candidate, config: RetrieverConfig) -> bool:
        """Return whether a counted candidate exceeds the budget by itself, as it is packed."""
        tokens = (candidate.tokens or 0) + (self.tokens.count(_NUMBER) if config.citations else 0)
        is_marked = candidate.passage.packed_text(numbered=config.citations) != candidate.passage.prompt_text
        if tokens <= config.max_tokens and not is_marked:
            return False
        return self.tokens.count(self._pack_alone(candidate.passage, config)) > config.max_tokens

    def _pack_alone(self, passage: Passage, config: RetrieverConfig) -> str:
        """Return the text of a passage as it is packed, after its number if passages are cited."""
        text = passage.packed_text(numbered=config.citations)
        return f"{_NUMBER}{text}" if config.citations else text

    def _overhead(self, config: RetrieverConfig) -> int:
        """Return the tokens between two passages."""
        return self.tokens.count(config.separator)

    def _shorten(self, run: Run, candidate: Candidate, max_tokens: int) -> Candidate:
        warn_once(
            "shortened",
            "a passage of %d tokens exceeds max_tokens=%d by itself and is shortened to its best sentences (phase "
            "'shorten' of the trace): raise max_tokens, or split the documents into smaller passages",
            self.tokens.count(self._pack_alone(candidate.passage, run.config)), run.config.max_tokens,
        )  # fmt: skip
        if self.split is None:
            return candidate
        pieces, headers = find_pieces(candidate.passage.text, self.split)
        ratings = self._rate(run, candidate, pieces, headers)
        least = self._least(run) if ratings else float("inf")
        return shorten(
            candidate,
            pieces,
            ratings or rate_by_words(run.query.text, candidate.passage.text, pieces),
            self.tokens,
            max_tokens,
            least=least,
            widen=run.config.packing == "passages",
            headers=headers,
            pack=lambda passage: self._pack_alone(passage, run.config),
        )

    def _rate(self, run: Run, candidate: Candidate, pieces: TextSpans, headers: Container[int]) -> list[float]:
        """Return the ratings of a passage's pieces in the readings that scored it; empty if there are none.

        `headers` has the places of the pieces that are rows of a table.
        """
        if not getattr(self.scorer, "scores_sentences", False):
            return []
        read = [
            q
            for q, piece in self._queries(run)
            if (piece in candidate.read_with if piece else self._was_read(candidate))
        ]
        texts = [candidate.passage.text[start:end] for start, end in pieces]
        spans = find_spans(candidate.passage, texts)
        rate: ScoreSentences = getattr(self.scorer, "score_sentences")  # noqa: B009 - not part of `Scorer`
        rated = [rate(query, [candidate], [spans])[0].tolist() for query in read]
        best = [max(of_piece) for of_piece in zip(*rated, strict=True)]
        if self.shares_code is None or not best:
            return best
        return put_named_first(best, texts, headers, partial(self.shares_code, run.query.text))

    def _was_read(self, candidate: Candidate) -> bool:
        return self.scorer.name in candidate.scores

    def _queries(self, run: Run) -> list[tuple[Query, str]]:
        """Return the question, and the question extended by each evidence passage, with the passage's id."""
        queries = [(run.query, "")]
        for piece in run.evidence:
            text = extend_query(run.query.text, [piece.passage.content], run.config.evidence_words)
            queries.append((replace(run.query, text=text), piece.id))
        return queries

    def _least(self, run: Run) -> float:
        """Return the least probability of an evidence sentence."""
        if run.config.sentence_threshold is not None:
            return run.config.sentence_threshold
        return RATED_SENTENCE if getattr(self.scorer, "scores_sentences", False) else READ_SENTENCE

    def condense(self, run: Run) -> None:
        """Reduce the candidates to their evidence sentences, if `packing` asks for that."""
        config = run.config
        if not run.includes("condense") or config.packing != "sentences":
            return
        if self.split is None:
            raise ConfigurationError("packing 'sentences' needs a sentence splitter: give the pipeline a `split`")
        queries = self._queries(run)
        is_rated = getattr(self.scorer, "scores_sentences", False)
        to_read = len(queries) * len(run.candidates)  # the sentences of a passage take about its time
        if not is_rated and not run.has_time_for(to_read):
            run.skip("condense", DEADLINE)
            return
        threshold = self._least(run)
        with run.phase("condense", {"threshold": threshold, "verifier": self.verifier_name}) as phase:
            phase.selection = Selection(
                kept=condense(queries, run.candidates, self.scorer, self.split, threshold, shares_code=self.shares_code)
            )

    def budget(self, run: Run) -> Composed:
        """Pack the candidates that `when_insufficient` admits."""
        config = run.config
        settings = {"max_tokens": config.max_tokens, "limit": config.limit, "tokens": self.tokens.name}
        with run.phase("budget", settings) as phase:
            verified_only = config.when_insufficient == "verified_only"
            admitted = [c for c in run.candidates if c.verified or not verified_only]
            left_out = [c for c in run.candidates if verified_only and not c.verified]
            others = [Dropped(candidate=c, reason=UNVERIFIED) for c in left_out]
            cut = self.cut and partial(self.cut, run.query)
            composed = self._pack(admitted, config, run.find_reason, cut=cut)
            if freed := self._find_freed(run, composed):
                again = [*admitted, *freed]
                ordered = sorted(again, key=lambda c: not c.verified) if config.diversify else sort_best_first(again)
                composed = self._pack(ordered, config, run.find_reason, cut=cut)
            phase.selection = replace(composed.selection, dropped=[*composed.selection.dropped, *others])
        return composed

    def _find_freed(self, run: Run, composed: Composed) -> list[Candidate]:
        """Return copies of candidates that don't fit, unless they repeat one that does, or each other."""
        config, kept = run.config, [c.passage for c in composed.selection.kept]
        if self.repeats is None or config.duplicates != "repeated" or config.packing != "passages":
            return []
        out = {f"{REDUNDANT_WITH}{d.candidate.id}" for d in composed.selection.dropped if d.reason == OVER_BUDGET}
        freed: list[Candidate] = []
        for candidate in (d.candidate for d in run.copies if d.reason in out):
            is_admitted = candidate.verified or config.when_insufficient != "verified_only"
            if is_admitted and not any(self.repeats(candidate.passage, other) for other in kept):
                freed.append(candidate)
                kept.append(candidate.passage)
        return freed

    def settle(self, run: Run, composed: Composed, sufficient: bool, estimate: float | None) -> Composed:
        """Return the context filled if it is uncertain, empty if it isn't sufficient and that is asked, or as it is."""
        config = run.config
        has_many = config.fill_below > 0 and self._has_many(run)
        uncertain = not sufficient or has_many or (estimate is not None and estimate < config.fill_below)
        if uncertain and config.when_insufficient == "return" and self._fills(run):
            return self._fill(run)
        if sufficient or config.when_insufficient != "abstain":
            return composed
        with run.phase("abstain", {}) as phase:
            phase.selection = Selection(
                kept=[], dropped=[Dropped(candidate=c, reason=INSUFFICIENT) for c in run.candidates]
            )
        return Composed(selection=Selection(kept=[]), text="", tokens=0)

    def _pack(
        self,
        candidates: Sequence[Candidate],
        config: RetrieverConfig,
        find_reason: Callable[[Candidate], str] | None = None,
        cut: Cut | None = None,
    ) -> Composed:
        with wrap_errors(ModelError, f"counting tokens with {self.tokens.name!r}"):
            return budget(
                candidates,
                self.tokens,
                max_tokens=config.max_tokens,
                limit=config.limit,
                separator=config.separator,
                citations=config.citations,
                find_reason=find_reason,
                cut=cut,
            )

    def _fills(self, run: Run) -> bool:
        """Return whether an uncertain context is filled, an empty one too, unless no verified passage fits in it."""
        config = run.config
        if any(c.verified for c in run.judged.values()) and not any(c.verified for c in run.candidates):
            return False
        return config.fill and config.mode == "full" and config.packing == "passages"

    def _has_many(self, run: Run) -> bool:
        return sum(c.verified for c in run.candidates) >= MANY

    def _fill(self, run: Run) -> Composed:
        """Pack the remaining candidates of phase 1 after those of the context.

        Their scores decide the order, unless many passages are verified: then the scores of the others tell little.
        """
        with run.phase("fill", {"max_tokens": run.config.max_tokens}) as phase:
            filled = fill(
                run.candidates,
                run.retrieved,
                run.judged,
                duplicates=run.duplicates,
                repeats=self.repeats,
                query=run.query,
                shares_words=self.shares_words,
                by_score=not self._has_many(run),
            )
            composed = self._pack(filled.kept, run.config)
            if filled.kept and not composed.selection.kept and self.split is not None:
                composed = self._pack(self._shorten_first(run, filled.kept), run.config)
            # those that don't fit were dropped before, with a reason
            phase.selection = Selection(kept=composed.selection.kept, dropped=filled.dropped)
        return composed

    def _shorten_first(self, run: Run, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the first candidates, none of which fits the budget, each reduced to its share of it."""
        first = self._count(candidates[: min(run.config.limit or MOST_SHARING, MOST_SHARING)])
        least = min(LEAST, run.config.max_tokens)
        share = max(run.config.max_tokens // len(first) - self._overhead(run.config), least)
        return [self._shorten(run, c, share) for c in first]
