"""Let the verifier read the pairs of several questions at once."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self, TypeAlias

import numpy as np

from meve.pipeline.context import Context
from meve.pipeline.engine import Engine
from meve.ports import Calibration, PairVerifier
from meve.types import FloatArray, Query, TextSpans

TextPairs: TypeAlias = Sequence[tuple[str, str]]

AT_ONCE = 16
"""The most questions that run at the same time."""


@dataclass(slots=True, eq=False)
class _Call:
    """A waiting call of one question's thread."""

    pairs: TextPairs
    scores: FloatArray | None = None
    error: BaseException | None = None
    is_done: bool = False


@dataclass(slots=True, eq=False)
class _Meeting:
    """The running questions, and the calls of those that wait for scores."""

    score: Callable[[TextPairs], FloatArray]
    running: int = 0
    waiting: list[_Call] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def leave(self) -> None:
        with self.changed:
            self.running -= 1
            self.changed.notify_all()

    def wait(self, pairs: TextPairs) -> FloatArray:
        """Return the scores of these pairs, read together with those of all questions that wait, once all do."""
        call = _Call(pairs)
        with self.changed:
            self.waiting.append(call)
            self.changed.notify_all()
            self.changed.wait_for(lambda: call.is_done or (call in self.waiting and len(self.waiting) >= self.running))
            calls, self.waiting = ([], self.waiting) if call.is_done else (self.waiting, [])
            self.running -= len(calls)  # these can't wait again before they have their scores
        if calls:
            self._score(calls)
        if call.scores is None:
            raise call.error or RuntimeError("a call ended without scores")
        return call.scores

    def _score(self, calls: Sequence[_Call]) -> None:
        try:
            scores = self.score([pair for each in calls for pair in each.pairs])
            ends = np.cumsum([len(each.pairs) for each in calls])
            for each, own in zip(calls, np.split(scores, ends[:-1]), strict=True):
                each.scores = own
        except BaseException:
            for each in calls:  # one by one, so that only the questions fail that are invalid
                try:
                    each.scores = self.score(each.pairs)
                except BaseException as error:
                    each.error = error
        with self.changed:
            self.running += len(calls)
            for each in calls:
                each.is_done = True
            self.changed.notify_all()


class SharedBatches:
    """A verifier for the threads of several questions; their calls wait for each other and are read in one call.

    Args:
        verifier: a `PairVerifier`.
        meeting: where the threads wait.
    """

    def __init__(self, verifier: Any, meeting: _Meeting) -> None:  # noqa: ANN401
        self._verifier, self._meeting = verifier, meeting
        self.name: str = verifier.name
        self.calibration: Calibration = verifier.calibration
        self.most_readings: int | None = getattr(verifier, "most_readings", None)

    def raw_scores(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Return uncalibrated scores, shape (n,), in the order given."""
        return self._meeting.wait([(query, text) for text in passages]) if len(passages) else np.zeros(0, np.float32)

    def score(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Return calibrated probabilities in [0, 1], shape (n,), in the order given."""
        return self.calibration.apply(self.raw_scores(query, passages))

    def with_calibration(self, calibration: Calibration) -> Self:
        """Return the same verifier with another calibration."""
        return type(self)(self._verifier.with_calibration(calibration), self._meeting)

    @property
    def scores_sentences(self) -> bool:
        """Whether the verifier can rate sentences."""
        return bool(getattr(self._verifier, "scores_sentences", False))

    def score_sentences(self, query: str, passages: Sequence[str], sentences: Sequence[TextSpans]) -> list[FloatArray]:
        """Return for each passage a probability per sentence."""
        rated: list[FloatArray] = self._verifier.score_sentences(query, passages, sentences)
        return rated

    def count_unread(self, query: str, passages: Sequence[str]) -> list[int]:
        """Return how many readings of each passage the verifier left out; 0 if it isn't known."""
        count = getattr(self._verifier, "count_unread", None)
        return [0] * len(passages) if count is None else list(count(query, passages))


def retrieve_together(
    engine: Engine, questions: Sequence[Query], run: Callable[[Engine, Query], Context]
) -> list[Context]:
    """Return the contexts of several questions, which run at the same time and share the verifier's batches.

    Raises:
        MeveError: the error of the first question that failed; the others have ended.
    """
    contexts: list[Context] = []
    with ThreadPoolExecutor(AT_ONCE, "meve-question") as pool:
        for start in range(0, len(questions), AT_ONCE):
            group = questions[start : start + AT_ONCE]
            meeting = _Meeting(getattr(engine.verifier, "score_pairs", _unused), running=len(group))
            shared = engine
            if isinstance(engine.verifier, PairVerifier):
                shared = replace(engine, verifier=SharedBatches(engine.verifier, meeting))
            jobs = [pool.submit(copy_context().run, _run_one, meeting, partial(run, shared, each)) for each in group]
            wait(jobs)
            contexts += [job.result() for job in jobs]
    return contexts


def _run_one(meeting: _Meeting, run: Callable[[], Context]) -> Context:
    try:
        return run()
    finally:
        meeting.leave()


def _unused(pairs: TextPairs) -> FloatArray:
    raise NotImplementedError(f"{len(pairs)} pairs for a verifier that reads the questions one by one")
