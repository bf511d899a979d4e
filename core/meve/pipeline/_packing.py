"""Pack the candidates of a retrieval, and settle what becomes of a context that isn't sufficient."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from meve.errors import ConfigurationError, ModelError, wrap_errors
from meve.pipeline._deadline import DEADLINE
from meve.pipeline._run_state import Run
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.phases.budget import Composed, budget
from meve.pipeline.phases.condense import RATED_SENTENCE, READ_SENTENCE, SplitSentences, condense
from meve.pipeline.phases.fill import fill
from meve.pipeline.phases.follow import extend_query
from meve.pipeline.phases.prioritize import Relate
from meve.ports import Scorer, TokenCounter
from meve.types import Candidate, Dropped, Selection

UNVERIFIED = "unverified"
"""The reason of a candidate that `when_insufficient="verified_only"` leaves out."""
INSUFFICIENT = "insufficient"
"""The reason of a candidate that `when_insufficient="abstain"` leaves out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packer:
    """Reduces, packs, fills or withholds the candidates of one retrieval, with the components of its pipeline."""

    scorer: Scorer
    tokens: TokenCounter
    split: SplitSentences | None
    """Splits a text into sentences; needed for `packing="sentences"`."""
    repeats: Relate | None
    """Tells whether a passage repeats another one; None if that isn't known."""
    verifier_name: str

    def condense(self, run: Run) -> None:
        """Reduce the candidates to their evidence sentences, if `packing` asks for that."""
        config = run.config
        if not run.includes("condense") or config.packing != "sentences":
            return
        if self.split is None:
            raise ConfigurationError("packing 'sentences' needs a sentence splitter: give the pipeline a `split`")
        queries = [(run.query, "")]
        for piece in run.evidence:
            text = extend_query(run.query.text, [piece.passage.content], config.evidence_words)
            queries.append((replace(run.query, text=text), piece.id))
        is_rated = getattr(self.scorer, "scores_sentences", False)
        to_read = len(queries) * len(run.candidates)  # the sentences of a passage take about its time
        if not is_rated and not run.has_time_for(to_read):
            run.skip("condense", DEADLINE)
            return
        threshold = config.sentence_threshold
        if threshold is None:
            threshold = RATED_SENTENCE if is_rated else READ_SENTENCE
        with run.phase("condense", {"threshold": threshold, "verifier": self.verifier_name}) as phase:
            phase.selection = Selection(kept=condense(queries, run.candidates, self.scorer, self.split, threshold))

    def budget(self, run: Run) -> Composed:
        """Pack the candidates that `when_insufficient` admits."""
        config = run.config
        settings = {"max_tokens": config.max_tokens, "limit": config.limit, "tokens": self.tokens.name}
        with run.phase("budget", settings) as phase:
            verified_only = config.when_insufficient == "verified_only"
            admitted = [c for c in run.candidates if c.verified or not verified_only]
            others = [Dropped(candidate=c, reason=UNVERIFIED) for c in run.candidates if c not in admitted]
            composed = self._pack(admitted, config)
            phase.selection = replace(composed.selection, dropped=[*composed.selection.dropped, *others])
        return composed

    def settle(self, run: Run, composed: Composed) -> Composed:
        """Return the context that isn't sufficient as `when_insufficient` asks: as it is, filled, or empty."""
        if run.config.when_insufficient == "return" and self._fills(run):
            return self._fill(run)
        if run.config.when_insufficient != "abstain":
            return composed
        with run.phase("abstain", {}) as phase:
            phase.selection = Selection(
                kept=[], dropped=[Dropped(candidate=c, reason=INSUFFICIENT) for c in run.candidates]
            )
        return Composed(selection=Selection(kept=[]), text="", tokens=0)

    def _pack(self, candidates: Sequence[Candidate], config: RetrieverConfig) -> Composed:
        with wrap_errors(ModelError, f"counting tokens with {self.tokens.name!r}"):
            return budget(
                candidates,
                self.tokens,
                max_tokens=config.max_tokens,
                limit=config.limit,
                separator=config.separator,
                citations=config.citations,
            )

    def _fills(self, run: Run) -> bool:
        """Return whether an insufficient context is filled; an empty one stays empty."""
        config = run.config
        return bool(run.candidates) and config.fill and config.mode == "full" and config.packing == "passages"

    def _fill(self, run: Run) -> Composed:
        """Pack the remaining candidates of phase 1 after those of the context."""
        with run.phase("fill", {"max_tokens": run.config.max_tokens}) as phase:
            chosen = fill(run.candidates, run.retrieved, run.judged, duplicates=run.duplicates, repeats=self.repeats)
            composed = self._pack(chosen, run.config)
            phase.selection = Selection(kept=composed.selection.kept)  # the others were dropped before, with a reason
        return composed
