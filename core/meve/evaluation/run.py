"""Asks every system every question, in turn, and takes down what each hands over."""

import hashlib
import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TypeAlias

from meve.errors import EvaluationError
from meve.evaluation.journal import Journal
from meve.evaluation.outcome import NOTHING, Outcome
from meve.evaluation.scores import ReadOnce
from meve.evaluation.systems import Build, Workbench
from meve.evaluation.types import EvaluationSet, Handed, Parts, Question, System
from meve.ports import Verifier
from meve.types import Passage

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with a stage, how many questions are done, and how many there are."""


def sample(questions: Sequence[Question], count: int | None, seed: int) -> list[Question]:
    """So many questions, drawn without replacement and in an order that depends on nothing but ids and the seed.

    A smaller sample is the beginning of a larger one. None for all of them.
    """
    drawn = sorted(questions, key=lambda q: q.id)
    random.Random(seed).shuffle(drawn)
    return drawn if count is None else drawn[:count]


def fingerprint(chosen: EvaluationSet) -> str:
    """A hash of a set's passages, questions and labels: two runs with the same one asked the same."""
    digest = hashlib.sha256()
    for p in chosen.passages:
        digest.update(json.dumps([p.id, p.title, p.text, dict(p.metadata)]).encode())
    for q in chosen.questions:
        digest.update(json.dumps(asdict(q), sort_keys=True).encode())
    return digest.hexdigest()[:16]


def run_set(
    chosen: EvaluationSet,
    systems: Mapping[str, tuple[Build, Sequence[Question]]],
    parts: Parts,
    journal: Journal,
    progress: Progress | None = None,
) -> None:
    """Ask, and put each outcome into the journal; what is there already isn't asked again, unless it raised.

    Systems take turns question by question, so that whatever else the machine does slows all of them.

    Args:
        chosen: the set.
        systems: by name, how each is made and which questions it gets.
        parts: what they share.
        journal: where outcomes go.
        progress: told of each question.

    Raises:
        MeveError: the passages can't be indexed. A system that can't be made, or raises, is noted in its outcomes.
    """
    pending = {
        name: {q.id for q in questions if (known := journal.get(chosen.name, name, q.id)) is None or known.error}
        for name, (_, questions) in systems.items()
    }
    asked = {q.id: q for _, questions in systems.values() for q in questions}
    told = None if progress is None else (lambda done, total: progress(f"{chosen.name}: embed", done, total))
    bench = _Benches(chosen, parts, None if chosen.closed else told)
    for done, question in enumerate(asked.values()):
        if progress:
            progress(chosen.name, done, len(asked))
        for name, (build, _) in systems.items():
            if question.id in pending[name]:
                journal.put(chosen.name, name, bench.ask(name, build, question))
    if progress and asked:
        progress(chosen.name, len(asked), len(asked))


def ask(system: System, question: Question, verifier: Verifier | None = None) -> Outcome:
    """One question to one system, timed. What it raises is noted, and counts as having handed over nothing.

    What the verifier had read for others before counts as if it had been read now.
    """
    owed = verifier.owed if isinstance(verifier, ReadOnce) else float
    owed()
    start = time.perf_counter()
    try:
        handed, error = system(question.text), ""
    except (Exception, SystemExit) as raised:  # anybody's code: the run must go on, and say so
        handed, error = NOTHING, f"{type(raised).__name__}: {raised}"
    ms = round((time.perf_counter() - start + owed()) * 1000, 3)
    return Outcome(question_id=question.id, handed=handed, ms=ms, error=error)


def made(build: Build, bench: Workbench) -> System:
    """The system; where it can't be made, one that raises what prevented it, for every question."""
    try:
        return build(bench)
    except (Exception, SystemExit) as raised:
        error = EvaluationError(f"it can't be made: {type(raised).__name__}: {raised}")

    def broken(_: str) -> Handed:
        raise error

    return broken


class _Benches:
    """Systems over a set: made once, or for each question anew where each has passages of its own."""

    def __init__(self, chosen: EvaluationSet, parts: Parts, progress: Callable[[int, int], None] | None = None) -> None:
        self._chosen = chosen
        self._parts = parts
        self._progress = progress
        self._passages = {p.id: p for p in chosen.passages}
        self._pool: tuple[str, ...] | None = ()
        self._bench: Workbench | None = None
        self._systems: dict[str, System] = {}
        self._warm: set[str] = set()

    def ask(self, name: str, build: Build, question: Question) -> Outcome:
        """One question to one system; making it isn't timed, nor is the first question that it gets at all."""
        if self._bench is None or self._pool != question.pool:
            self._pool, self._systems = question.pool, {}
            self._bench = Workbench(self._of(question), self._parts, self._progress).prepare()
        if name not in self._systems:
            self._systems[name] = made(build, self._bench)
            if name not in self._warm:
                self._warm.add(name)
                ask(self._systems[name], question)
                if isinstance(self._parts.verifier, ReadOnce):
                    self._parts.verifier.forget()  # or a cold reading is what everybody is charged
        return ask(self._systems[name], question, self._parts.verifier)

    def _of(self, question: Question) -> Sequence[Passage]:
        if question.pool is None:
            return self._chosen.passages
        return [self._passages[i] for i in question.pool]
