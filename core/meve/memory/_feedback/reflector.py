"""Scores after an answer: moved, contradictions flagged, all in one transaction."""

import threading
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from meve.errors import ValidationError
from meve.memory._audit.chain import Action
from meve.memory._feedback.usage_judge import Judged, moved
from meve.memory._recall.scoring import decayed
from meve.memory._recall.searcher import Load, Recall
from meve.memory._runtime import Kit
from meve.memory.records import SHARED, MemoryRecord, Opinion, user_key
from meve.types import FloatArray

WAITING = 1_024
"""Reflections that may wait at once; one more is done at once, and all that wait with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reflected:
    """What an answer made of the memories that were recalled for it."""

    recall: str
    """The recall's id."""
    judged: Mapping[str, Judged]
    """By the memory's id."""
    scores: Mapping[str, tuple[float, float]]
    """By the memory's id: before, after."""
    deferred: bool = False
    """Whether it waits, since too many are recalling; until then nothing is judged."""


class Reflector:
    """Moves scores; where too many are recalling, later.

    Args:
        kit: the memory's parts.
        load: how many are recalling.
    """

    def __init__(self, kit: Kit, load: Load) -> None:
        self.kit = kit
        self._load = load
        self._guard = threading.Lock()
        self._waiting: deque[tuple[Recall, str]] = deque()

    def reflect(self, recall: Recall, answer: str) -> Reflected:
        """Judge what was recalled by the answer, and move its scores.

        What is gone, on hold or another text by now is judged and left. A shared record's score moves for this user
        alone.

        Raises:
            ValidationError: no recall of a memory's, or an answer that is no text.
        """
        self._check(recall, answer)
        if self._load.heavy and self._put_off(recall, answer):
            return Reflected(recall=recall.id, judged={}, scores={}, deferred=True)
        self.catch_up()
        return self._reflected(recall, answer)

    def catch_up(self) -> None:
        """Do what was put off; a process that ends without has not moved those scores."""
        while (each := self._next()) is not None:
            try:
                self._reflected(*each)
            except BaseException:
                with self._guard:
                    self._waiting.appendleft(each)
                raise

    def forget(self, user: str, erased: Collection[str] | None = None) -> None:
        """Let go of what was put off for a user, or of what holds erased records; of anybody's, for the shared key."""
        with self._guard:
            self._waiting = deque(each for each in self._waiting if not _holds(each[0], user, erased))

    def _put_off(self, recall: Recall, answer: str) -> bool:
        with self._guard:
            if len(self._waiting) >= WAITING:
                return False
            self._waiting.append((recall, answer))
            return True

    def _next(self) -> tuple[Recall, str] | None:
        with self._guard:
            return self._waiting.popleft() if self._waiting else None

    def _check(self, recall: Recall, answer: str) -> None:
        if not isinstance(recall, Recall):
            raise ValidationError(f"{recall!r:.60} is no recall: give what search() returned")
        if not isinstance(answer, str):
            raise ValidationError(f"the answer is {answer!r:.60}: give text")

    def _reflected(self, recall: Recall, answer: str) -> Reflected:
        if not recall.records:
            return Reflected(recall=recall.id, judged={}, scores={})
        records = recall.records
        vectors = np.array([self._vector(user_key(recall.user_id), record) for record in records])
        verdicts = self.kit.usage.judge(recall.query, answer, [r.text for r in records], vectors)
        judged = dict(zip((r.id for r in records), verdicts, strict=True))
        scores = self._moved(user_key(recall.user_id), records, judged, recall.id)
        return Reflected(recall=recall.id, judged=judged, scores=scores)

    def _vector(self, user: str, record: MemoryRecord) -> FloatArray:
        """As it is stored; made anew if the record is gone by now, or says something else."""
        found = self.kit.store.find(SHARED if record.user_id is None else user, record.id)
        same = found is not None and found.record.text == record.text
        return found.vector if found is not None and same else self.kit.stored(record).vector

    def _moved(
        self, user: str, records: tuple[MemoryRecord, ...], judged: Mapping[str, Judged], recall: str
    ) -> dict[str, tuple[float, float]]:
        kit, now = self.kit, self.kit.clock.now()
        scores: dict[str, tuple[float, float]] = {}
        with kit.store.writing() as transaction:
            for old in records:
                verdict = judged[old.id]
                key = SHARED if old.user_id is None else user
                found = transaction.find(key, old.id)
                if found is None or (record := found.record).expired(now) or record.text != old.text:
                    continue
                if record.hold or record.archived:
                    continue
                opinion = transaction.opinion(user, old.id) if key == SHARED else None
                before = decayed(record, kit.policy, now, opinion)
                after = moved(before, verdict.outcome, kit.policy.reflection)
                scores[old.id] = (before, after)
                used = verdict.outcome == "used"
                uses = (opinion.uses if opinion else 0 if key == SHARED else record.uses) + used
                used_at = now if used else opinion.used_at if opinion else record.used_at
                if key == SHARED:
                    rated = Opinion(reflection=after, touched_at=now, used_at=used_at, uses=uses)
                    transaction.put_opinion(user, old.id, rated)
                else:
                    flagged = "contradicted by an answer" if verdict.outcome == "contradicted" else record.flagged
                    made = replace(
                        record,
                        reflection=after,
                        touched_at=now,
                        used_at=used_at,
                        uses=uses,
                        flagged=flagged,
                        version=record.version + 1,
                    )
                    transaction.replace(user, replace(found, record=made))
                detail = {"outcome": verdict.outcome, "before": round(before, 4), "after": round(after, 4)}
                action: Action = "use" if used else "update"
                because = f"{verdict.outcome}: {verdict.because}; recall {recall}"
                transaction.log(kit.event(user, record, action, because, now, **detail))
        return scores


def _holds(recall: Recall, user: str, erased: Collection[str] | None) -> bool:
    owned = user in (SHARED, user_key(recall.user_id))
    return owned and (erased is None or any(record.id in erased for record in recall.records))
