"""From a long dialogue and a question to what fits into a small model's window, with an account of it.

Source: Design and Verification of a Query-Aware External Memory Pipeline for Small Language Models (Kim et al.).
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from meve.components.lexical.analyzers import content_words
from meve.conversation.importance import WINDOW, Window
from meve.dialogue._composition import compose, last_said, room_for_facts
from meve.dialogue._hybrid_scorer import WordsToo
from meve.dialogue._sources import ImportanceWindow, Latest, Namesakes
from meve.dialogue._word_index import names_of, spoken, words_of
from meve.dialogue.context import SmallContext, accounted
from meve.dialogue.dialogue import Dialogue, Progress, Read, checked_dialogue
from meve.dialogue.turns import Said
from meve.errors import ConfigurationError, ModelError, foreign
from meve.pipeline._scorers import SimilarityScorer
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.phases.prioritize import Relation
from meve.pipeline.pipeline import Pipeline, check_query
from meve.ports import Scorer, TokenCounter
from meve.types import Passage, Query

THRESHOLD = 0.30
"""The least cosine of a turn with the question. Source: the paper's τ, for all-MiniLM-L6-v2."""
REPEATED = 0.95
"""The cosine above which two turns are looked at, whether they say the same in the same words."""
MORE = 2_048
"""Where nothing is compared: how many turns are looked at beyond those that could stand in the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Small:
    """How a small context is made. Checked when made.

    Raises:
        ConfigurationError: a value of the wrong type or out of range.
    """

    max_tokens: int = 2_048
    """The most tokens that the text may have."""
    window: int | None = WINDOW
    """How many turns before and after one that names something are looked at; None to look at all turns."""
    threshold: float | None = THRESHOLD
    """The least cosine with the question, in [0, 1]; None to compare nothing, and take the latest first."""
    words: bool = True
    """Whether words that the question and its evidence hold, names above all, count beside the cosine."""
    recent: int = 2
    """How many of the last turns stand in it whatever they say, as far as they fit."""
    candidates: int = 256
    """How many turns at most are looked at one by one, the nearest to the question."""

    def __post_init__(self) -> None:
        for name, value in (("window", 0 if self.window is None else self.window), ("recent", self.recent)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ConfigurationError(f"{name} is {value!r}: give a whole number of at least 0")
        if not isinstance(self.words, bool):
            raise ConfigurationError(f"words is {self.words!r}: give True or False")
        self.config(self.max_tokens, self.candidates)

    def config(self, max_tokens: int, candidates: int) -> RetrieverConfig:
        """The same for the five phases."""
        return RetrieverConfig(
            candidates=candidates,
            threshold=0.0 if self.threshold is None else self.threshold,
            min_verified=0,
            fallback_k=0,
            redundancy=REPEATED,
            max_tokens=max_tokens,
            separator="\n",
        )


def small_context(
    dialogue: Dialogue,
    query: str,
    max_tokens: int = 2_048,
    *,
    window: int | None = WINDOW,
    threshold: float | None = THRESHOLD,
    words: bool = True,
    recent: int = 2,
    candidates: int = 256,
    progress: Progress | None = None,
) -> SmallContext:
    """What a small model needs of a long dialogue: the question, what was said last, and the facts in their order.

    Priorities under the limit: the question, never cut; the last turns, of which the oldest goes first; then the turns
    around those that name something, as far as they are like the question, the likest first. These stand in the order
    in which they were said.

    Args:
        dialogue: what was said.
        query: the question.
        max_tokens: the most tokens that the text may have, the question's included.
        window: how many turns before and after one that names something are looked at; None for all turns.
        threshold: the least cosine of a turn with the question, in [0, 1]; None for comparing nothing.
        words: whether words that the question and its evidence hold, names above all, count beside the cosine: a turn
            may reach the threshold by them, too.
        recent: how many of the last turns stand in it whatever they say.
        candidates: how many turns at most are looked at one by one, the nearest to the question.
        progress: told, while new turns are read, how many are, and of how many.

    Raises:
        QueryError: a blank question, or one that alone exceeds the limit.
        ConfigurationError: no dialogue, or a value out of range.
        ModelError: a model failed.
    """
    how = Small(
        max_tokens=max_tokens, window=window, threshold=threshold, words=words, recent=recent, candidates=candidates
    )
    return made_small(checked_dialogue(dialogue), query, how, progress=progress)


def made_small(
    dialogue: Dialogue, query: str, how: Small, *, scorer: Scorer | None = None, progress: Progress | None = None
) -> SmallContext:
    """The same with settings as one value, and with a scorer of one's own.

    Args:
        dialogue: what was said.
        query: the question.
        how: the settings.
        scorer: gives turns the score that orders them, in place of cosine or recency.
        progress: as for `small_context`.

    Raises:
        QueryError: a blank question, or one that alone exceeds the limit.
        ModelError: a model failed.
    """
    check_query(query)
    tokens = dialogue.parts.tokens
    read = dialogue.read(progress)
    with _counting(tokens):
        recent, crowded = last_said(query, _last(read, how.recent), tokens, how.max_tokens)
        room = room_for_facts(query, recent, tokens, how.max_tokens)
    stretches = _stretches(read, how)
    source, order, listed = _sought(dialogue, query, how, read, stretches, room, scorer)
    standing = {piece.id for piece in recent}
    pipeline = Pipeline(
        sources=[source],
        scorer=order,
        fallback=None,
        tokens=tokens,
        embedder=dialogue.parts.embedder,
        relate=_relation,
        shown=lambda passage: passage.id in standing,
        verifier_name="" if how.threshold is None else "cosine",
    )
    context = pipeline.run(Query(text=query), how.config(max(1, room), max(1, listed + len(recent))))
    facts = [(p, p.passage) for p in context.passages if isinstance(p.passage, Said)]
    with _counting(tokens):
        made = compose(query, recent, facts, tokens, how.max_tokens)
    return accounted(context, made, read, stretches, source.inside, crowded, how.max_tokens)


def _counting(tokens: TokenCounter) -> AbstractContextManager[None]:
    return foreign(ModelError, f"counting tokens with {tokens.name!r}")


def _sought(
    dialogue: Dialogue,
    query: str,
    how: Small,
    read: Read,
    stretches: Sequence[Window],
    room: int,
    given: Scorer | None,
) -> tuple[ImportanceWindow, Scorer, int]:
    """Where turns come from, what gives them their score, and how many are looked at one by one."""
    name = "dialogue" if how.window is None else "importance"
    source = ImportanceWindow(read=read, inside=read.inside(stretches), name=name)
    if given is not None:
        return source, given, len(read.pieces)
    if how.threshold is None:
        return replace(source, latest=True), Latest(count=len(read.turns)), _listed(read, source.rows, room)
    if not how.words:
        return source, SimilarityScorer(), how.candidates
    detector = dialogue.parts.entities
    with foreign(ModelError, f"finding entities with {detector.name!r}"):
        (found,) = detector.detect([query])
        asked, said = words_of(names_of(found)), spoken(read.speakers)
    wanted = frozenset(content_words(query))
    namesakes = Namesakes(read=read, wanted=wanted, asked=asked, said=said, threshold=how.threshold)
    scorer = WordsToo(
        worded=read.worded, wanted=wanted, named=read.named, asked=asked, said=said, threshold=how.threshold
    )
    return replace(source, namesakes=namesakes), scorer, how.candidates


def _stretches(read: Read, how: Small) -> list[Window]:
    if how.window is not None:
        return read.windows(how.window)
    return [(0, len(read.turns) - 1)] if read.turns else []


def _last(read: Read, count: int) -> Sequence[Said]:
    """The pieces of the last turns that say something, in order."""
    if not count or not read.pieces:
        return []
    first, turns = len(read.pieces), 0
    while first and (turns < count or read.pieces[first - 1].turn == read.pieces[first].turn):
        first -= 1
        turns += read.pieces[first].begins
    return read.pieces[first:]


def _listed(read: Read, rows: npt.NDArray[np.int64], room: int) -> int:
    """How many of the latest could stand in so many tokens if each fitted, and some more for what is said twice."""
    grows = np.cumsum(np.asarray(read.tokens, dtype=np.int64)[rows][::-1])
    return int(np.searchsorted(grows, room, "right")) + MORE


def _relation(one: Passage, other: Passage) -> Relation:
    """The same words by the same speaker, on the same day, say the same."""
    return "same" if one.shown.casefold().split() == other.shown.casefold().split() else ""
