"""The small-context experiment: five strategies on two sets under two limits, and sweeps of thresholds and windows."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeAlias

from meve.components.embedders import FAST, resolve_embedder
from meve.components.entities import resolve_entities
from meve.components.tokenizers import resolve_tokens
from meve.dialogue import Dialogue, SmallContext, SmallContextOptions
from meve.errors import ConfigurationError, EvaluationError, wrap_errors
from meve.evaluation.datasets.synthetic_dialogues import DialogueQuestion, read_locomo_dialogues, read_wiki_dialogues
from meve.evaluation.experiments._experiment import QUESTIONS, SEED
from meve.evaluation.experiments.memory.memory_results import MemoryResults, Tally
from meve.evaluation.experiments.small_context.strategies import FULL, LIMIT, READERS, SPENT, STRATEGIES, Strategy
from meve.evaluation.measures.answers import has_searchable_answer, searchable_answers, share_of_words, token_recall
from meve.evaluation.measures.gold_passages import fact_recovery, has_facts
from meve.evaluation.peers import import_function
from meve.evaluation.results import collect_versions
from meve.evaluation.types import QuestionOutcome, SystemOutput
from meve.types import StageProgress

RECOVERY, IN_CONTEXT, ANSWERED, TOKENS = "fact recovery", "context token recall", "token recall", "tokens"
MS = "ms to compose"
WIKI, LOCOMO = "2wiki", "locomo"
SWEEP, WINDOW_SWEEP, FILTER = "thresholds", "windows", "what windows leave"
THRESHOLDS = (0.1, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7)
WINDOW_SIZES = (0, 1, 2, 5, 10, 20)
QUIET = "2wiki among chit-chat that names nothing"
QUIET_CHAT = 0.97
"""The share of chit-chat in quiet dialogues, so high that windows leave most turns out."""
CHAT = 0.9
"""The share of chit-chat among the turns of 2Wiki's dialogues."""

Reader: TypeAlias = Callable[[str, str], str]
"""A function from a question and a context to an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallContextBenchOptions:
    """The options of the small-context experiment."""

    data: Path
    """The folder with the folders `2wiki`, `irc` and `locomo`."""
    questions: int | None = QUESTIONS
    """Questions per set; None for all."""
    skip: int = 0
    """The number of 2Wiki's first questions that are skipped."""
    chat: float = CHAT
    seed: int = SEED
    embedder: str | None = None
    entities: str | None = None
    reader: str | None = None
    """`module:function`, a `Reader`; None to measure the context alone."""


def run_small_context(options: SmallContextBenchOptions, progress: StageProgress = lambda *_: None) -> MemoryResults:
    """Run the experiment; the same options give the same figures, except for milliseconds.

    Args:
        options: the options.
        progress: called with the stage, how many of its steps are done, and how many there are.

    Raises:
        DatasetError: a set that is absent, truncated or of another format.
        ConfigurationError: a reader that can't be imported, or `chat` outside [0, 1).
        ModelError: an embedder that can't be loaded.
    """
    if not 0 <= options.chat < 1:
        raise ConfigurationError(f"chat must be at least 0 and less than 1, got {options.chat!r}")
    name = options.reader
    reader = None if name is None else import_function(name, option="--reader", example="my_model:answer")
    runner = _Runner(options, reader, progress)
    wiki = read_wiki_dialogues(
        options.data, questions=options.questions, seed=options.seed, chat=options.chat, skip=options.skip
    )
    quiet = runner.read_quiet_dialogues(options)
    locomo = read_locomo_dialogues(options.data, questions=options.questions, seed=options.seed)
    thresholds = {f"{t:.2f}": (t, replace(SmallContextOptions(), threshold=t)) for t in THRESHOLDS}
    windows = {f"±{w}": (w, SmallContextOptions(window=w, threshold=None)) for w in WINDOW_SIZES}
    tallies = [
        *runner.compare_strategies(WIKI, wiki),
        *runner.compare_strategies(LOCOMO, locomo),
        runner.sweep(SWEEP, wiki, thresholds, (LIMIT, SPENT)),
        runner.sweep(WINDOW_SWEEP, wiki, windows, (LIMIT,)),
        *runner.compare_strategies(QUIET, quiet, (LIMIT,)),
        runner.count_window_turns({WIKI: wiki, LOCOMO: locomo, QUIET: quiet}),
    ]
    settings = {
        "seed": options.seed, "questions": {WIKI: len(wiki), LOCOMO: len(locomo)}, "skip": options.skip,
        "chat": options.chat, "turns": {WIKI: _mean(wiki), LOCOMO: _mean(locomo), QUIET: _mean(quiet)},
        "small": asdict(SmallContextOptions()), "reader": options.reader or "", "embedder": runner.embedder.name,
        "entities": runner.entities.name, "tokens": runner.tokens.name, "versions": collect_versions(),
    }  # fmt: skip
    return MemoryResults.from_tallies("small-context", settings, tallies)


def _mean(questions: Sequence[DialogueQuestion]) -> dict[str, float]:
    count = max(1, len(questions))
    return {
        "turns": round(sum(len(q.turns) for q in questions) / count, 1),
        "chit-chat": round(sum(q.chat for q in questions) / count, 1),
    }


class _Runner:
    """Holds the models, and the dialogues that were read already."""

    def __init__(self, options: SmallContextBenchOptions, reader: Reader | None, progress: StageProgress) -> None:
        self.embedder, self.tokens = resolve_embedder(options.embedder, default=FAST), resolve_tokens(None)
        self.entities = resolve_entities(options.entities)
        self._seed, self._reader, self._progress = options.seed, reader, progress
        self._dialogues: dict[str, Dialogue] = {}

    def read_quiet_dialogues(self, options: SmallContextBenchOptions) -> list[DialogueQuestion]:
        """Return 2Wiki's questions in dialogues whose chit-chat names nothing, where windows leave most out."""
        return read_wiki_dialogues(
            options.data, questions=options.questions, seed=options.seed, chat=QUIET_CHAT, skip=options.skip,
            select=lambda texts: [not entities for entities in self.entities.detect(texts)], name="quiet ",
        )  # fmt: skip

    def compare_strategies(
        self, name: str, questions: Sequence[DialogueQuestion], limits: Sequence[int] = (LIMIT, SPENT)
    ) -> list[Tally]:
        """Measure every strategy under each limit."""
        strategies = {**STRATEGIES, **(READERS if self._reader else {})}
        tallies = {limit: Tally(f"{name}, {limit:,} tokens", self._seed, against=FULL) for limit in limits}
        for question in self._each(name, questions):
            for limit, tally in tallies.items():
                for system, strategy in strategies.items():
                    self._measure(tally, system, question, strategy, limit, answer=limit == LIMIT)
        return list(tallies.values())

    def sweep(
        self,
        name: str,
        questions: Sequence[DialogueQuestion],
        settings: Mapping[str, tuple[float, SmallContextOptions]],
        limits: Sequence[int],
    ) -> Tally:
        """Measure the whole method under each setting and limit."""
        tally = Tally(name, self._seed)
        labels = {(label, limit): f"{label}, {limit:,} tokens" for limit in limits for label in settings}
        for question in self._each(name, questions):
            for (label, limit), system in labels.items():
                self._measure(tally, system, question, Strategy(options=settings[label][1]), limit, timed=False)
        for limit in limits:
            for measure in (RECOVERY, TOKENS):
                points = {x: tally.mean(labels[label, limit], measure) for label, (x, _) in settings.items()}
                tally.add_curve(f"{limit:,} tokens", measure, name[:-1], points)
        return tally

    def count_window_turns(self, sets: Mapping[str, Sequence[DialogueQuestion]]) -> Tally:
        """Tally the share of turns that name something, and of those in a window around one."""
        tally = Tally(FILTER, self._seed)
        for name, questions in sets.items():
            for question in {q.dialogue: q for q in questions}.values():
                snapshot = self._dialogue(question).read()
                tally.add(name, "turns that name something", float(snapshot.anchors.mean()))
                for window in (2, 10):
                    inside = float(snapshot.mask_passages(snapshot.find_windows(window)).mean())
                    tally.add(name, f"turns within ±{window} of one", inside)
        return tally

    def _each(self, name: str, questions: Sequence[DialogueQuestion]) -> Iterator[DialogueQuestion]:
        if not questions:
            raise EvaluationError(f"{name} has no questions left: raise --questions, or lower --skip")
        for n, question in enumerate(questions):
            self._progress(name, n, len(questions))
            yield question
        self._progress(name, len(questions), len(questions))

    def _dialogue(self, question: DialogueQuestion) -> Dialogue:
        if question.dialogue not in self._dialogues:
            dialogue = Dialogue.from_turns(
                question.turns, embedder=self.embedder, entities=self.entities, tokens=self.tokens
            )
            self._dialogues[question.dialogue] = dialogue
            dialogue.read()
        return self._dialogues[question.dialogue]

    def _measure(
        self, tally: Tally, system: str, question: DialogueQuestion, strategy: Strategy, limit: int, *,
        answer: bool = False, timed: bool = True,
    ) -> None:  # fmt: skip
        dialogue = self._dialogue(question)
        start = time.perf_counter()
        context = strategy.build_context(dialogue, question.question.text, limit)
        ms = 1_000 * (time.perf_counter() - start)
        output = SystemOutput(passages=(), ranked=(), text=context.text, tokens=context.tokens)
        outcome = QuestionOutcome(question_id=question.question.id, output=output, ms=ms)
        tally.add(system, RECOVERY, fact_recovery(question.question, outcome) if has_facts(question.question) else 0.0)
        if has_searchable_answer(question.question):
            tally.add(system, IN_CONTEXT, token_recall(question.question, outcome))
        if answer and self._reader and (answered := answer_recall(question, self._reader, context)) is not None:
            tally.add(system, ANSWERED, answered)
        tally.add(system, TOKENS, float(context.tokens))
        if timed:
            tally.add(system, MS, ms)


def answer_recall(question: DialogueQuestion, reader: Reader, context: SmallContext) -> float | None:
    """Return the share of the accepted answer's distinct words in the reader's answer; None for yes and no.

    Source: the paper's token recall.

    Raises:
        EvaluationError: the reader failed, or returned something else than text.
    """
    answers = searchable_answers(question.question.answers)
    if not answers:
        return None
    with wrap_errors(EvaluationError, f"the reader, asked question {question.question.id!r},"):
        answer = reader(question.question.text, context.text)
    if not isinstance(answer, str):
        raise EvaluationError(f"the reader returned {type(answer).__name__}: return the answer as text")
    return share_of_words(answers, answer)
