"""Who is measured: the whole, each ablation, and two baselines, all of them the same five phases with other parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from meve._formulas import cosines
from meve.dialogue import Dialogue, SmallContext
from meve.dialogue.small_context import Small, made_small
from meve.errors import ModelError
from meve.ports import Scorer
from meve.types import Candidate, FloatArray, Query

FULL, NO_EMBEDDING, NO_IMPORTANCE = "both", "importance only", "embedding only"
WINDOWS = "both, windows without words"
"""The paper's method to the letter."""
NOTHING_LAST = "both, nothing said last"
"""For questions that don't hang on what was said last, as none here does."""
TRUNCATION, SUMMARY = "truncation", "extractive summary"
ALONE = "SLM only (Gemma2)"
"""The reader without the dialogue. The paper doesn't say what its model alone was given; here it is the question."""
SUMMARY_TOKENS = 396
"""The most that a summary may take: what the paper's took."""


@dataclass(frozen=True, slots=True)
class Central:
    """Likeness to what all turns say together: what an extractive summary goes by, whatever the question is."""

    name: str = "central"

    def score(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:  # noqa: ARG002
        """Cosines with the mean of all, shape (n,).

        Raises:
            ModelError: a candidate without a vector.
        """
        vectors = [c.vector for c in candidates if c.vector is not None]
        if len(vectors) != len(candidates):
            raise ModelError("a summary needs a vector of each candidate: give the pipeline an embedder")
        every = np.array(vectors)
        return cosines(every.mean(axis=0), every) if vectors else np.zeros(0, dtype=np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """How a dialogue becomes a context."""

    how: Small
    scorer: Scorer | None = None
    most: int | None = None
    """The most tokens that it takes, whatever the limit."""
    bare: bool = False
    """Whether nothing of the dialogue goes in."""

    def context(self, dialogue: Dialogue, question: str, max_tokens: int) -> SmallContext:
        """The context for a question, under a limit."""
        if self.bare:
            dialogue = Dialogue(embedder=dialogue.parts.embedder, tokens=dialogue.parts.tokens)
        most = max_tokens if self.most is None else min(max_tokens, self.most)
        return made_small(dialogue, question, replace(self.how, max_tokens=most), scorer=self.scorer)


STRATEGIES: Mapping[str, Strategy] = {
    FULL: Strategy(how=Small()),
    NO_EMBEDDING: Strategy(how=Small(threshold=None)),
    NO_IMPORTANCE: Strategy(how=Small(window=None, words=False)),
    WINDOWS: Strategy(how=Small(words=False)),
    NOTHING_LAST: Strategy(how=Small(recent=0)),
    TRUNCATION: Strategy(how=Small(window=None, threshold=None, recent=0)),
    SUMMARY: Strategy(how=Small(window=None, threshold=None, recent=0), scorer=Central(), most=SUMMARY_TOKENS),
}
"""By name; without importance and without embedding what is left is truncation."""
READERS: Mapping[str, Strategy] = {ALONE: Strategy(how=Small(), bare=True)}
"""Besides, where a reader answers."""
