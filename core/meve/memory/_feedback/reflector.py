"""Adjusts reflection scores after an answer and flags contradicted memories, in one transaction."""

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from meve._fork_safety import ForkSafeLock
from meve._repeating import repeat_rolled_back
from meve._telemetry import count
from meve.conversation.outcomes import OutcomeStatistics
from meve.errors import ValidationError
from meve.memory._audit.chain import Action
from meve.memory._feedback.usage_judge import UsageOutcome, UsageVerdict, adjust_score
from meve.memory._recall.scoring import decay_reflection
from meve.memory._recall.searcher import Load, Recall
from meve.memory._runtime import MemoryRuntime
from meve.memory._write.eraser import check_not_held, unknown
from meve.memory.records import SHARED, MemoryRecord, SharedScore, check_id, user_key
from meve.types import FloatArray

_OUTCOMES: Mapping[UsageOutcome, float] = {"used": 1.0, "unused": 0.0, "contradicted": 0.0}
"""The outcome that each verdict counts as; `unmentioned` counts as none."""
_MAX_DEFERRED = 1_024
"""Maximum number of deferred reflections. The next one runs immediately, together with all deferred ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionResult:
    """The use of recalled memories by an answer, and their changed scores."""

    recall: str
    """Id of the recall."""
    verdicts: Mapping[str, UsageVerdict]
    """By record id."""
    scores: Mapping[str, tuple[float, float]]
    """By record id: the score before and after."""
    deferred: bool = False
    """Whether the reflection was deferred under load; nothing is judged until it runs."""


class Reflector:
    """Adjusts scores, later if too many searches are running.

    Args:
        runtime: components of the memory.
        load: counts the running searches.
    """

    def __init__(self, runtime: MemoryRuntime, load: Load) -> None:
        self._runtime = runtime
        self._load = load
        self._lock = ForkSafeLock()
        self._deferred: deque[tuple[Recall, str]] = deque()

    def reflect(self, recall: Recall, answer: str) -> ReflectionResult:
        """Judge the recalled memories by the answer and adjust their scores.

        Records that were erased, held or changed since the recall keep their scores. The score of a shared record
        changes only for this user.
        """
        if not isinstance(recall, Recall):
            raise ValidationError(f"recall must be what search() returned, got {recall!r:.60}")
        if not isinstance(answer, str):
            raise ValidationError(f"answer must be text, got {answer!r:.60}")
        if self._load.heavy and self._defer(recall, answer):
            count("meve.shed", {"meve.shed.kind": "reflection"})
            return ReflectionResult(recall=recall.id, verdicts={}, scores={}, deferred=True)
        self.run_deferred()
        return self._reflect_now(recall, answer)

    @repeat_rolled_back
    def record_outcome(self, user: str, record_id: str, outcome: float, reason: str) -> OutcomeStatistics:
        """Add an outcome to a record, or to this user's score of a shared one.

        Raises what `GovernedMemory.record_outcome` raises.
        """
        runtime, now = self._runtime, self._runtime.clock.now()
        record_id = check_id(record_id)
        with runtime.store.writing() as transaction:
            stored = transaction.find(user, record_id)
            key = user if stored is not None else SHARED
            stored = stored or transaction.find(SHARED, record_id)
            if stored is None or stored.record.expired(now):
                raise unknown(record_id)
            record = stored.record
            check_not_held(record)
            shared = transaction.shared_scores(user).get(record_id) if key == SHARED else None
            outcomes = (shared or record).outcomes.add(outcome)
            if key == SHARED:
                score = shared or SharedScore(reflection=record.reflection)
                transaction.put_shared_score(user, record_id, replace(score, outcomes=outcomes))
            else:
                changed = replace(record, outcomes=outcomes, version=record.version + 1)
                transaction.replace(user, replace(stored, record=changed))
            detail = {"outcome": round(float(outcome), 4), "outcomes": outcomes.count}
            transaction.log(runtime.event(user, record, "update", reason, now, **detail))
        return outcomes

    def run_deferred(self) -> None:
        """Run the deferred reflections, which are lost if the process ends before."""
        while (next_one := self._pop_deferred()) is not None:
            try:
                self._reflect_now(*next_one)
            except BaseException:
                with self._lock:
                    self._deferred.appendleft(next_one)
                raise

    def forget(self, user: str, erased: Collection[str] | None = None) -> None:
        """Drop deferred reflections of a user, of all users for the shared key.

        Args:
            user: the user's key.
            erased: drop only those that contain one of these records; None for all.
        """
        with self._lock:
            self._deferred = deque(each for each in self._deferred if not _concerns(each[0], user, erased))

    def _defer(self, recall: Recall, answer: str) -> bool:
        with self._lock:
            if len(self._deferred) >= _MAX_DEFERRED:
                return False
            self._deferred.append((recall, answer))
            return True

    def _pop_deferred(self) -> tuple[Recall, str] | None:
        with self._lock:
            return self._deferred.popleft() if self._deferred else None

    def _reflect_now(self, recall: Recall, answer: str) -> ReflectionResult:
        if not recall.records:
            return ReflectionResult(recall=recall.id, verdicts={}, scores={})
        records, user = recall.records, user_key(recall.user_id)
        vectors = np.array([self._find_vector(user, record) for record in records])
        judged = self._runtime.usage.judge(recall.query, answer, [r.text for r in records], vectors)
        verdicts = dict(zip((r.id for r in records), judged, strict=True))
        return ReflectionResult(
            recall=recall.id, verdicts=verdicts, scores=self._adjust(user, records, verdicts, recall.id)
        )

    def _find_vector(self, user: str, record: MemoryRecord) -> FloatArray:
        """Return the stored vector of a record, or embed it again if the record was erased or changed since."""
        stored = self._runtime.store.find(SHARED if record.user_id is None else user, record.id)
        unchanged = stored is not None and stored.record.text == record.text
        is_comparable = stored is not None and stored.model == self._runtime.embedder.model
        return (
            stored.vector if stored is not None and unchanged and is_comparable else self._runtime.stored(record).vector
        )

    @repeat_rolled_back
    def _adjust(
        self, user: str, records: tuple[MemoryRecord, ...], verdicts: Mapping[str, UsageVerdict], recall: str
    ) -> dict[str, tuple[float, float]]:
        runtime, now = self._runtime, self._runtime.clock.now()
        scores: dict[str, tuple[float, float]] = {}
        with runtime.store.writing() as transaction:
            for old in records:
                verdict = verdicts[old.id]
                key = SHARED if old.user_id is None else user
                stored = transaction.find(key, old.id)
                if stored is None or (record := stored.record).expired(now) or record.text != old.text:
                    continue
                if record.hold or record.archived:
                    continue
                shared = transaction.shared_scores(user).get(old.id) if key == SHARED else None
                before = decay_reflection(record, runtime.policy, now, shared)
                after = adjust_score(before, verdict.outcome, runtime.policy.reflection)
                scores[old.id] = (before, after)
                used = verdict.outcome == "used"
                uses = (shared.uses if shared else 0 if key == SHARED else record.uses) + used
                outcomes = (shared or record).outcomes
                if verdict.outcome in _OUTCOMES:
                    outcomes = outcomes.add(_OUTCOMES[verdict.outcome])
                used_at = now if used else shared.used_at if shared else record.used_at
                if key == SHARED:
                    new_score = SharedScore(
                        reflection=after, touched_at=now, used_at=used_at, uses=uses, outcomes=outcomes
                    )
                    transaction.put_shared_score(user, old.id, new_score)
                else:
                    is_flagged = verdict.outcome == "contradicted" and not record.is_closed  # it says why it is closed
                    changed = replace(
                        record,
                        reflection=after,
                        touched_at=now,
                        used_at=used_at,
                        uses=uses,
                        outcomes=outcomes,
                        flagged="contradicted by an answer" if is_flagged else record.flagged,
                        version=record.version + 1,
                    )
                    transaction.replace(user, replace(stored, record=changed))
                detail = {"outcome": verdict.outcome, "before": round(before, 4), "after": round(after, 4)}
                action: Action = "use" if used else "update"
                reason = f"{verdict.outcome}: {verdict.reason}; recall {recall}"
                transaction.log(runtime.event(user, record, action, reason, now, **detail))
        return scores


def _concerns(recall: Recall, user: str, erased: Collection[str] | None) -> bool:
    owned = user in (SHARED, user_key(recall.user_id))
    return owned and (erased is None or any(record.id in erased for record in recall.records))
