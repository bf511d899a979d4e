"""Builds a small context of a long dialogue for a question, with its trace.

Source: Design and Verification of a Query-Aware External Memory Pipeline for Small Language Models (Kim et al.).
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from meve.components.lexical.analyzers import content_words
from meve.conversation.importance import DEFAULT_REACH, TurnWindow
from meve.dialogue._name_index import extract_names, join_names, speaker_words
from meve.dialogue._token_budget import compose_text, count_room_for_facts, fit_recent
from meve.dialogue._turn_passages import TurnPassage
from meve.dialogue._turn_scorers import HybridScorer, LatestScorer
from meve.dialogue._turn_sources import DialogueSource, EntityMatches
from meve.dialogue.dialogue import Dialogue, DialogueSnapshot, check_dialogue
from meve.dialogue.result import SmallContext, assemble_context
from meve.errors import ConfigurationError, ModelError, wrap_errors
from meve.pipeline._scorers import SimilarityScorer
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.phases.prioritize import Relate
from meve.pipeline.pipeline import Pipeline
from meve.pipeline.query_check import check_query
from meve.ports import Scorer, TokenCounter
from meve.types import Passage, Progress, Query

DEFAULT_THRESHOLD = 0.30
"""Minimum cosine of a turn with the question. Source: the paper's τ, for all-MiniLM-L6-v2."""
_REDUNDANCY = 0.95
"""Cosine above which two turns are compared word by word."""
_SPARE = 2_048
"""The number of turns ranked beyond those that could fit, when there is no threshold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallContextOptions:
    """Options of `build_small_context`, checked when created.

    Raises:
        ConfigurationError: a value of the wrong type or out of range.
    """

    max_tokens: int = 2_048
    """Maximum tokens of the text, the question included."""
    window: int | None = DEFAULT_REACH
    """Number of turns searched before and after an anchor, a turn that names something; None to search all turns."""
    threshold: float | None = DEFAULT_THRESHOLD
    """Minimum score of a turn, in [0, 1]; None to compare nothing and take the latest turns first."""
    words: bool = True
    """Whether shared words and names, not only the cosine, count for the score."""
    recent: int = 2
    """Number of last turns that are included whatever they say, as far as they fit."""
    candidates: int = 256
    """Maximum number of turns to rank, the nearest to the question."""

    def __post_init__(self) -> None:
        for name, value in (("window", 0 if self.window is None else self.window), ("recent", self.recent)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ConfigurationError(f"{name} must be a whole number of at least 0, got {value!r}")
        if not isinstance(self.words, bool):
            raise ConfigurationError(f"words must be True or False, got {self.words!r}")
        self.to_config(self.max_tokens, self.candidates)

    def to_config(self, max_tokens: int, candidates: int) -> RetrieverConfig:
        """Return the settings of the five phases."""
        return RetrieverConfig(
            candidates=candidates,
            threshold=0.0 if self.threshold is None else self.threshold,
            min_verified=0,
            fallback_k=0,
            redundancy=_REDUNDANCY,
            fill=False,
            max_tokens=max_tokens,
            separator="\n",
        )


def build_small_context(
    dialogue: Dialogue,
    query: str,
    max_tokens: int = 2_048,
    *,
    window: int | None = DEFAULT_REACH,
    threshold: float | None = DEFAULT_THRESHOLD,
    words: bool = True,
    recent: int = 2,
    candidates: int = 256,
    progress: Progress | None = None,
) -> SmallContext:
    """Return the question, the last turns, and the facts that bear on the question, under a token limit.

    The question is never cut. Facts are cut before the last turns, the least relevant first; of the last turns the
    oldest is cut first. Facts are turns near a turn that names something; the text has them in dialogue order.

    Args:
        dialogue: the dialogue to search.
        query: the question.
        max_tokens: maximum tokens of the text, the question included.
        window: as in `SmallContextOptions`, which describes the following ones too.
        threshold: minimum score of a turn.
        words: whether shared words and names count.
        recent: how many of the last turns are included.
        candidates: maximum number of turns to rank.
        progress: called while new turns are read, as in `Dialogue.read`.

    Raises:
        QueryError: a blank question, or one that alone exceeds the limit.
        ConfigurationError: not a dialogue, or a value out of range.
        ModelError: a model failed.
    """
    options = SmallContextOptions(
        max_tokens=max_tokens, window=window, threshold=threshold, words=words, recent=recent, candidates=candidates
    )
    return build_from_options(check_dialogue(dialogue), query, options, progress=progress)


def build_from_options(
    dialogue: Dialogue,
    query: str,
    options: SmallContextOptions,
    *,
    scorer: Scorer | None = None,
    progress: Progress | None = None,
) -> SmallContext:
    """Build a small context as `build_small_context` does; a scorer replaces cosine, words and recency."""
    check_query(query)
    tokens = dialogue.components.tokens
    snapshot = dialogue.read(progress)
    with _map_count_errors(tokens):
        last_turns = _last_passages(snapshot, options.recent)
        recent, crowded = fit_recent(query, last_turns, tokens, options.max_tokens)
        room = count_room_for_facts(query, recent, tokens, options.max_tokens)
    windows = _find_windows(snapshot, options)
    source, order, limit = _choose_parts(dialogue, query, options, snapshot, windows, room, scorer)
    recent_ids = {passage.id for passage in recent}
    pipeline = Pipeline(
        sources=[source],
        scorer=order,
        fallback=None,
        tokens=tokens,
        embedder=dialogue.components.embedder,
        relate=_relate_by_words(),
        already_shown=lambda passage: passage.id in recent_ids,
        verifier_name="" if options.threshold is None else "cosine",
    )
    context = pipeline.run(Query(text=query), options.to_config(max(1, room), max(1, limit + len(recent))))
    facts = [(p, p.passage) for p in context.passages if isinstance(p.passage, TurnPassage)]
    with _map_count_errors(tokens):
        text = compose_text(query, recent, facts, tokens, options.max_tokens)
    return assemble_context(context, text, snapshot, windows, source.inside, crowded, options.max_tokens)


def _map_count_errors(tokens: TokenCounter) -> AbstractContextManager[None]:
    return wrap_errors(ModelError, f"counting tokens with {tokens.name!r}")


def _choose_parts(
    dialogue: Dialogue,
    query: str,
    options: SmallContextOptions,
    snapshot: DialogueSnapshot,
    windows: Sequence[TurnWindow],
    room: int,
    scorer: Scorer | None,
) -> tuple[DialogueSource, Scorer, int]:
    """Return the source of turns, their scorer, and how many turns to rank."""
    name = "dialogue" if options.window is None else "importance"
    source = DialogueSource(snapshot=snapshot, inside=snapshot.mask_passages(windows), name=name)
    if scorer is not None:
        return source, scorer, len(snapshot.passages)
    if options.threshold is None:
        limit = _count_latest(snapshot, source.rows, room)
        return replace(source, latest=True), LatestScorer(count=len(snapshot.turns)), limit
    if not options.words:
        return source, SimilarityScorer(), options.candidates
    detector = dialogue.components.entities
    with wrap_errors(ModelError, f"finding entities with {detector.name!r}"):
        (entities,) = detector.detect([query])
        query_names = join_names(extract_names(entities))
    query_words, speakers = frozenset(content_words(query)), speaker_words(snapshot.speakers)
    matches = EntityMatches(
        snapshot=snapshot, query_words=query_words, query_names=query_names, speaker_words=speakers,
        threshold=options.threshold,
    )  # fmt: skip
    hybrid = HybridScorer(
        words_of=snapshot.words_of, query_words=query_words, names_of=snapshot.names_of, query_names=query_names,
        speaker_words=speakers, threshold=options.threshold,
    )  # fmt: skip
    return replace(source, matches=matches), hybrid, options.candidates


def _find_windows(snapshot: DialogueSnapshot, options: SmallContextOptions) -> list[TurnWindow]:
    if options.window is not None:
        return snapshot.find_windows(options.window)
    return [(0, len(snapshot.turns) - 1)] if snapshot.turns else []


def _last_passages(snapshot: DialogueSnapshot, count: int) -> Sequence[TurnPassage]:
    """Return the passages of the last `count` turns that aren't blank, in order."""
    passages = snapshot.passages
    if not count or not passages:
        return []
    first, turns = len(passages), 0
    while first and (turns < count or passages[first - 1].turn == passages[first].turn):
        first -= 1
        turns += passages[first].begins
    return passages[first:]


def _count_latest(snapshot: DialogueSnapshot, rows: npt.NDArray[np.int64], room: int) -> int:
    """Return how many of the latest passages fit into `room` tokens, plus a reserve for repeated ones."""
    sums = np.cumsum(np.asarray(snapshot.tokens, dtype=np.int64)[rows][::-1])
    return int(np.searchsorted(sums, room, "right")) + _SPARE


def _relate_by_words() -> Relate:
    """Return a function that calls two passages "same" if speaker, day and words are the same."""
    words: dict[str, list[str]] = {}  # a passage may be compared with thousands

    def read(passage: Passage) -> list[str]:
        if passage.id not in words:
            words[passage.id] = passage.prompt_text.casefold().split()
        return words[passage.id]

    return lambda one, other: "same" if read(one) == read(other) else ""
