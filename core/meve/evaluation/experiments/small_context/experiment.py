"""The experiment on small contexts: five strategies on two sets under two limits, thresholds, windows."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import ClassVar, TypeAlias

from meve.components.embedders import resolve_embedder
from meve.components.entities import resolve_entities
from meve.components.tokenizers import resolve_tokens
from meve.dialogue import Dialogue, SmallContext
from meve.dialogue import SmallContextOptions
from meve.errors import ConfigurationError, EvaluationError, wrap_errors
from meve.evaluation._answer_matching import searchable_answers, words
from meve.evaluation.datasets.synthetic_dialogues import DialogueQuestion, read_locomo_dialogues, read_wiki_dialogues
from meve.evaluation.experiments._experiment import QUESTIONS, SEED
from meve.evaluation.experiments.memory.memory_results import MemoryResults, Tally
from meve.evaluation.experiments.small_context.paper_values import LIMIT, SPENT
from meve.evaluation.experiments.small_context.strategies import FULL, READERS, STRATEGIES, Strategy
from meve.evaluation.measures.fact_recovery import facts
from meve.evaluation.measures.token_recall import recalled
from meve.evaluation.types import Outcome
from meve.evaluation.peers import named
from meve.evaluation.results import versions
from meve.evaluation._set_runner import Progress
from meve.evaluation.types import SystemOutput

RECOVERY, IN_CONTEXT, ANSWERED, TOKENS = "fact recovery", "context token recall", "token recall", "tokens"
MS = "ms to compose"
WIKI, LOCOMO = "2wiki", "locomo"
SWEEP, REACH, FILTER = "thresholds", "windows", "what windows leave"
THRESHOLDS = (0.1, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7)
REACHES = (0, 1, 2, 5, 10, 20)
QUIET = "2wiki among chit-chat that names nothing"
QUIET_CHAT = 0.97
"""The share of chit-chat there: stretches so long that windows leave most of them out."""
CHAT = 0.9
"""The share of chit-chat among the turns of 2Wiki's dialogues."""

Reader: TypeAlias = Callable[[str, str], str]
"""A model that reads: from the question and a context to an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallResults(MemoryResults):
    """All of a run."""

    experiment: ClassVar[str] = "small-context"


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallContexts:
    """What to measure."""

    data: Path
    """The folder with a folder a set: `2wiki`, `irc` and `locomo`."""
    questions: int | None = QUESTIONS
    """A set; None for all."""
    aside: int = 0
    """How many of 2Wiki's, those drawn first, are passed over."""
    chat: float = CHAT
    seed: int = SEED
    embedder: str | None = None
    entities: str | None = None
    reader: str | None = None
    """`module:function`, a `Reader`; None for measuring on the context alone."""


def small_contexts(wanted: SmallContexts, progress: Progress = lambda *_: None) -> SmallResults:
    """Run it.

    Args:
        wanted: what; the same gives the same figures but for milliseconds.
        progress: told of the stage, how much of it is done, and of how much.

    Raises:
        DatasetError: a set that is absent, cut short or of another format.
        ConfigurationError: a reader that can't be had, or a share that can't be.
        ModelError: an embedder that can't be had.
    """
    if not 0 <= wanted.chat < 1:
        raise ConfigurationError(f"chat is {wanted.chat!r}: give a share from 0 up to, but not including, 1")
    reader = None if wanted.reader is None else named(wanted.reader, option="--reader", example="my_model:answer")
    stage = _Stage(wanted, reader, progress)
    wiki = read_wiki_dialogues(wanted.data, questions=wanted.questions, seed=wanted.seed, chat=wanted.chat, aside=wanted.aside)
    quiet = stage.quiet(wanted)
    locomo = read_locomo_dialogues(wanted.data, questions=wanted.questions, seed=wanted.seed)
    found = [
        *stage.compared(WIKI, wiki),
        *stage.compared(LOCOMO, locomo),
        stage.swept(SWEEP, wiki, {f"{t:.2f}": (t, replace(SmallContextOptions(), threshold=t)) for t in THRESHOLDS}, (LIMIT, SPENT)),
        stage.swept(REACH, wiki, {f"±{w}": (w, SmallContextOptions(window=w, threshold=None)) for w in REACHES}, (LIMIT,)),
        *stage.compared(QUIET, quiet, (LIMIT,)),
        stage.filtered({WIKI: wiki, LOCOMO: locomo, QUIET: quiet}),
    ]
    return SmallResults(
        settings={
            "seed": wanted.seed, "questions": {WIKI: len(wiki), LOCOMO: len(locomo)}, "aside": wanted.aside,
            "chat": wanted.chat, "turns": {WIKI: _mean(wiki), LOCOMO: _mean(locomo), QUIET: _mean(quiet)},
            "small": asdict(SmallContextOptions()), "reader": wanted.reader or "", "embedder": stage.embedder.name,
            "entities": stage.entities.name, "tokens": stage.tokens.name, "versions": versions(),
        },
        figures=tuple(figure for tally in found for figure in tally.figures()),
        curves=tuple(curve for tally in found for curve in tally.curves),
    )  # fmt: skip


def _mean(told: Sequence[DialogueQuestion]) -> dict[str, float]:
    count = max(1, len(told))
    return {
        "turns": round(sum(len(t.turns) for t in told) / count, 1),
        "chit-chat": round(sum(t.chat for t in told) / count, 1),
    }


class _Stage:
    """Parts, and the dialogues that were read already."""

    def __init__(self, wanted: SmallContexts, reader: Reader | None, progress: Progress) -> None:
        self.embedder, self.tokens = resolve_embedder(wanted.embedder), resolve_tokens(None)
        self.entities = resolve_entities(wanted.entities)
        self._seed, self._reader, self._progress = wanted.seed, reader, progress
        self._read: dict[str, Dialogue] = {}

    def quiet(self, wanted: SmallContexts) -> list[DialogueQuestion]:
        """2Wiki's questions again, in dialogues whose chit-chat names nothing: where windows have most to leave out."""
        return read_wiki_dialogues(
            wanted.data, questions=wanted.questions, seed=wanted.seed, chat=QUIET_CHAT, aside=wanted.aside,
            quiet=lambda texts: [not named for named in self.entities.detect(texts)], name="quiet ",
        )  # fmt: skip

    def compared(self, name: str, told: Sequence[DialogueQuestion], limits: Sequence[int] = (LIMIT, SPENT)) -> list[Tally]:
        """Every strategy under each limit."""
        strategies = {**STRATEGIES, **(READERS if self._reader else {})}
        tallies = {most: Tally(f"{name}, {most:,} tokens", self._seed, against=FULL) for most in limits}
        for one in self._each(name, told):
            for most, tally in tallies.items():
                for system, strategy in strategies.items():
                    self._measure(tally, system, one, strategy, most, answer=most == LIMIT)
        return list(tallies.values())

    def swept(
        self, name: str, told: Sequence[DialogueQuestion], settings: Mapping[str, tuple[float, SmallContextOptions]], limits: Sequence[int]
    ) -> Tally:
        """The whole under other settings."""
        tally = Tally(name, self._seed)
        labels = {(label, most): f"{label}, {most:,} tokens" for most in limits for label in settings}
        for one in self._each(name, told):
            for (label, most), system in labels.items():
                self._measure(tally, system, one, Strategy(how=settings[label][1]), most, brief=True)
        for most in limits:
            for measure in (RECOVERY, TOKENS):
                points = {x: tally.mean(labels[label, most], measure) for label, (x, _) in settings.items()}
                tally.draw(f"{most:,} tokens", measure, name[:-1], points)
        return tally

    def filtered(self, sets: Mapping[str, Sequence[DialogueQuestion]]) -> Tally:
        """How many turns name something, and how many lie around one that does."""
        tally = Tally(FILTER, self._seed)
        for name, told in sets.items():
            for one in {t.dialogue: t for t in told}.values():
                read = self._dialogue(one).read()
                tally.add(name, "turns that name something", float(read.anchors.mean()))
                for reach in (2, 10):
                    inside = float(read.mask_passages(read.find_windows(reach)).mean())
                    tally.add(name, f"turns within ±{reach} of one", inside)
        return tally

    def _each(self, name: str, told: Sequence[DialogueQuestion]) -> Iterator[DialogueQuestion]:
        if not told:
            raise EvaluationError(f"{name} has no questions left: ask for more, or pass over fewer")
        for n, one in enumerate(told):
            self._progress(name, n, len(told))
            yield one
        self._progress(name, len(told), len(told))

    def _dialogue(self, one: DialogueQuestion) -> Dialogue:
        if one.dialogue not in self._read:
            made = Dialogue.from_turns(one.turns, embedder=self.embedder, entities=self.entities, tokens=self.tokens)
            self._read[one.dialogue] = made
            made.read()
        return self._read[one.dialogue]

    def _measure(
        self, tally: Tally, system: str, one: DialogueQuestion, strategy: Strategy, most: int, *, answer: bool = False,
        brief: bool = False,
    ) -> None:  # fmt: skip
        dialogue = self._dialogue(one)
        start = time.perf_counter()
        context = strategy.context(dialogue, one.question.text, most)
        took = 1_000 * (time.perf_counter() - start)
        outcome = _outcome(one, context, took)
        tally.add(system, RECOVERY, facts(one.question, outcome) or 0.0)
        if (there := recalled(one.question, outcome)) is not None:
            tally.add(system, IN_CONTEXT, there)
        if answer and self._reader is not None and (said := answered(one, self._reader, context)) is not None:
            tally.add(system, ANSWERED, said)
        tally.add(system, TOKENS, float(context.tokens))
        if not brief:
            tally.add(system, MS, took)


def answered(one: DialogueQuestion, reader: Reader, context: SmallContext) -> float | None:
    """The share of the answer's distinct words that a reader's answer holds; None where they can't be looked for.

    Source: the paper's token recall.

    Raises:
        EvaluationError: the reader failed, or returned something else than text.
    """
    wanted = searchable_answers(one.question.answers)
    if not wanted:
        return None
    with wrap_errors(EvaluationError, f"the reader, asked question {one.question.id!r},"):
        said = reader(one.question.text, context.text)
    if not isinstance(said, str):
        raise EvaluationError(f"the reader returned {type(said).__name__}: a reader returns its answer as text")
    there = set(words(said))
    return max(len(set(words(a)) & there) / len(set(words(a))) for a in wanted)


def _outcome(one: DialogueQuestion, context: SmallContext, ms: float) -> Outcome:
    output = SystemOutput(passages=(), ranked=(), text=context.text, tokens=context.tokens)
    return Outcome(question_id=one.question.id, output=output, ms=ms)
