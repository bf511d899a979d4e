"""Runs every system on every question of a set, in turn, and records the outcomes."""

import hashlib
import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial

from meve.errors import EvaluationError
from meve.evaluation._journal import Journal
from meve.evaluation._model_caches import SharedVerifier
from meve.evaluation.systems import IndexedPassages, SystemFactory
from meve.evaluation.types import (
    EMPTY_OUTPUT,
    EvaluationSet,
    Question,
    QuestionOutcome,
    SharedComponents,
    System,
    SystemOutput,
)
from meve.ports import Verifier
from meve.types import Progress, StageProgress


def sample_questions(questions: Sequence[Question], count: int | None, seed: int) -> list[Question]:
    """Return `count` questions, drawn without replacement; None for all of them.

    The order depends only on ids and the seed, so that a smaller sample is the beginning of a larger one.
    """
    shuffled = sorted(questions, key=lambda q: q.id)
    random.Random(seed).shuffle(shuffled)
    return shuffled if count is None else shuffled[:count]


def fingerprint_set(dataset: EvaluationSet) -> str:
    """Return a hash of a set's passages, questions and labels."""
    digest = hashlib.sha256()
    for p in dataset.passages:
        digest.update(json.dumps([p.id, p.title, p.text, dict(p.metadata)]).encode())
    for q in dataset.questions:
        digest.update(json.dumps(asdict(q), sort_keys=True).encode())
    return digest.hexdigest()[:16]


def run_set(
    dataset: EvaluationSet,
    systems: Mapping[str, tuple[SystemFactory, Sequence[Question]]],
    components: SharedComponents,
    journal: Journal,
    progress: StageProgress = lambda *_: None,
) -> None:
    """Ask each system its questions and record the outcomes; recorded ones are skipped, unless the system raised.

    Systems take turns question by question, so that other load on the machine slows all of them alike. A system that
    can't be built, or raises, is recorded in its outcomes.

    Args:
        dataset: the set.
        systems: by name, how each system is built and its questions.
        components: what the systems share.
        journal: where outcomes are recorded.
        progress: called for each question.

    Raises:
        MeveError: the passages can't be indexed.
    """
    pending = {
        name: {q.id for q in questions if (known := journal.get(dataset.name, name, q.id)) is None or known.error}
        for name, (_, questions) in systems.items()
    }
    questions_by_id = {q.id: q for _, questions in systems.values() for q in questions}
    embedding = partial(progress, f"{dataset.name}: embed")
    runner = _SetRunner(dataset, components, None if dataset.has_pools else embedding)
    for done, question in enumerate(questions_by_id.values()):
        progress(dataset.name, done, len(questions_by_id))
        for name, (factory, _) in systems.items():
            if question.id in pending[name]:
                journal.put(dataset.name, name, runner.ask(name, factory, question))
    if questions_by_id:
        progress(dataset.name, len(questions_by_id), len(questions_by_id))


def ask_system(system: System, question: Question, verifier: Verifier | None = None) -> QuestionOutcome:
    """Return the timed outcome of one question; an exception is recorded in it.

    Time that a `SharedVerifier` saved by cached scores is added.
    """
    spared_seconds = verifier.take_spared_seconds if isinstance(verifier, SharedVerifier) else float
    spared_seconds()
    start = time.perf_counter()
    try:
        output, error = system(question.text), ""
    except (Exception, SystemExit) as raised:  # a peer is foreign code: the run must go on, and report the error
        output, error = EMPTY_OUTPUT, f"{type(raised).__name__}: {raised}"
    ms = round((time.perf_counter() - start + spared_seconds()) * 1000, 3)
    return QuestionOutcome(question_id=question.id, output=output, ms=ms, error=error)


def build_system(factory: SystemFactory, passages: IndexedPassages) -> System:
    """Return the system; if building it fails, one that raises the reason for every question."""
    try:
        return factory(passages)
    except (Exception, SystemExit) as raised:
        error = EvaluationError(f"the system can't be built: {type(raised).__name__}: {raised}")

    def broken(_: str) -> SystemOutput:
        raise error

    return broken


class _SetRunner:
    """Builds systems once for a set, or for each question where questions have passages of their own."""

    def __init__(self, dataset: EvaluationSet, components: SharedComponents, progress: Progress | None) -> None:
        self._dataset, self._components, self._progress = dataset, components, progress
        self._passages = {p.id: p for p in dataset.passages}
        self._pool: tuple[str, ...] | None = ()
        self._indexed: IndexedPassages | None = None
        self._systems: dict[str, System] = {}
        self._warm: set[str] = set()

    def ask(self, name: str, factory: SystemFactory, question: Question) -> QuestionOutcome:
        """Return the outcome of one question; neither building a system nor its warm-up question is timed."""
        if self._indexed is None or self._pool != question.pool:
            self._pool, self._systems = question.pool, {}
            pool = question.pool
            passages = self._dataset.passages if pool is None else [self._passages[i] for i in pool]
            self._indexed = IndexedPassages(passages, self._components, self._progress).prepare()
        if name not in self._systems:
            self._systems[name] = build_system(factory, self._indexed)
            if name not in self._warm:
                self._warm.add(name)
                ask_system(self._systems[name], question)
                if isinstance(self._components.verifier, SharedVerifier):
                    self._components.verifier.clear()  # otherwise every system is charged for a cold start
        return ask_system(self._systems[name], question, self._components.verifier)
