"""The strategies that are measured: the whole method, its ablations and two baselines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from meve._formulas import cosines
from meve.dialogue import Dialogue, SmallContext
from meve.dialogue.small_context import SmallContextOptions, build_from_options
from meve.errors import ModelError
from meve.ports import Scorer
from meve.types import Candidate, FloatArray, Query

FULL, NO_EMBEDDING, NO_IMPORTANCE = "both", "importance only", "embedding only"
WINDOWS = "both, windows without words"
"""The paper's method without additions."""
NOTHING_LAST = "both, nothing said last"
"""The full method without the latest turns, since no question here depends on them."""
TRUNCATION, SUMMARY = "truncation", "extractive summary"
ALONE = "SLM only (Gemma2)"
"""The reader with the question alone; the paper doesn't state what its model alone was given."""
SUMMARY_TOKENS = 396
"""The token limit of a summary, as in the paper."""
LIMIT, SPENT = 2_048, 273
"""The paper's token limit, and the tokens that its method spent, which are a second limit here."""


@dataclass(frozen=True, slots=True)
class CentralityScorer:
    """A scorer by similarity to the mean of all turns, for an extractive summary that ignores the question."""

    name: str = "central"

    def score(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:  # noqa: ARG002
        """Return the cosines with the mean of all candidates, shape (n,).

        Raises:
            ModelError: a candidate without a vector.
        """
        vectors = [c.vector for c in candidates if c.vector is not None]
        if len(vectors) != len(candidates):
            raise ModelError("each candidate of a summary must have a vector: give the pipeline an embedder")
        matrix = np.array(vectors)
        return cosines(matrix.mean(axis=0), matrix) if vectors else np.zeros(0, dtype=np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A way to turn a dialogue into a context."""

    options: SmallContextOptions
    scorer: Scorer | None = None
    max_tokens: int | None = None
    """The strategy's own token limit; None for the given one."""
    without_dialogue: bool = False

    def build_context(self, dialogue: Dialogue, question: str, max_tokens: int) -> SmallContext:
        """Return the context for a question, under a limit."""
        if self.without_dialogue:
            dialogue = Dialogue(embedder=dialogue.components.embedder, tokens=dialogue.components.tokens)
        limit = max_tokens if self.max_tokens is None else min(max_tokens, self.max_tokens)
        return build_from_options(dialogue, question, replace(self.options, max_tokens=limit), scorer=self.scorer)


STRATEGIES: Mapping[str, Strategy] = {
    FULL: Strategy(options=SmallContextOptions()),
    NO_EMBEDDING: Strategy(options=SmallContextOptions(threshold=None)),
    NO_IMPORTANCE: Strategy(options=SmallContextOptions(window=None, words=False)),
    WINDOWS: Strategy(options=SmallContextOptions(words=False)),
    NOTHING_LAST: Strategy(options=SmallContextOptions(recent=0)),
    TRUNCATION: Strategy(options=SmallContextOptions(window=None, threshold=None, recent=0)),
    SUMMARY: Strategy(
        options=SmallContextOptions(window=None, threshold=None, recent=0),
        scorer=CentralityScorer(),
        max_tokens=SUMMARY_TOKENS,
    ),
}
"""The strategies by name; without importance and embedding, only truncation remains."""
READERS: Mapping[str, Strategy] = {ALONE: Strategy(options=SmallContextOptions(), without_dialogue=True)}
"""Additional strategies if a reader answers."""
