"""Deduplication: whether two similar memories are duplicates or contradict each other, and which of them stays."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from meve.memory._contradiction.statements import Statement
from meve.memory._contradiction.updates import UNREAD, RuleUpdateJudge, UpdateRelation
from meve.memory._passages import PASSAGE
from meve.memory._recall.compared_texts import ComparedTexts
from meve.memory._recall.memory_passage import MemoryPassage
from meve.memory._recall.scoring import PolicyScorer
from meve.memory._recall.user_index import UserIndex
from meve.memory.policy import Policy
from meve.memory.records import MemoryRecord, validity
from meve.pipeline.phases.prioritize import Relation
from meve.types import Passage


def precedence(record: MemoryRecord, score: float, row: int) -> tuple[bool, datetime, float, int]:
    """Return a sort key; of two records the one with the larger key wins: held, newer, better, or written later."""
    return bool(record.hold), validity(record)[0], score, row


def _yields(record: MemoryRecord, policy: Policy) -> bool:
    """Return whether a record yields because an answer contradicted it; only if the policy says so."""
    return policy.reflection.contradicted_yields and bool(record.flagged)


def is_settled(one: MemoryRecord, other: MemoryRecord) -> bool:
    """Return whether a record was restored, and the other isn't what the user said later, so that both hold."""
    return _is_protected(one, other) or _is_protected(other, one)


def _is_protected(record: MemoryRecord, other: MemoryRecord) -> bool:
    restored = record.restored_at
    if restored is None:
        return False
    return other.source != "chat_user" or validity(other)[0] <= restored


def have_same_readers(one: MemoryRecord, other: MemoryRecord, policy: Policy) -> bool:
    """Return whether searches find both records under the same filters and permissions.

    If not, hiding one because of the other would lose it to some searches.
    """
    is_private, other_is_private = (policy.rule(record.policy_class).on_request for record in (one, other))
    return one.metadata == other.metadata and is_private == other_is_private


def may_replace(older: MemoryRecord, newer: MemoryRecord, policy: Policy) -> bool:
    """Return whether a newer record may replace an older one, if it says otherwise.

    What a user said is replaced only by what the user says, other records also by those of their own source.
    """
    return have_same_readers(older, newer, policy) and newer.source in ("chat_user", older.source)


def expiry_or_max(record: MemoryRecord) -> datetime:
    """Return when a record expires; the last moment there is, if it doesn't."""
    return record.expires_at or datetime.max.replace(tzinfo=UTC)


def is_removable(record: MemoryRecord, policy: Policy) -> bool:
    """Return whether maintenance may remove a record that hasn't expired."""
    return not record.hold and not record.pinned and policy.rule(record.policy_class).prune


def may_close(record: MemoryRecord, by: MemoryRecord, policy: Policy) -> bool:
    """Return whether a record may be closed for another one that prevails.

    Held records are never closed; unprunable ones and standing wishes only for their own kind, and what would live
    longer than the other one isn't, since nothing would be left of either.
    """
    if expiry_or_max(by) < expiry_or_max(record):
        return False
    if record.hold or _yields(by, policy) or (record.is_standing and not by.is_standing):
        return False
    return is_removable(record, policy) or not is_removable(by, policy)


@dataclass(frozen=True, slots=True)
class DuplicateJudge:
    """Relates two memories of a recall, so that duplicates and contradicted ones are left out."""

    scorer: PolicyScorer
    indexes: Sequence[UserIndex]
    """The user's own index, then the shared one."""
    judge: RuleUpdateJudge
    ranks: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """By its id, the precedence of each memory that was compared before, without its score."""

    def __call__(self, one: Passage, other: Passage) -> Relation:
        """Return the relation of `one` to `other`. Unprunable records yield only to each other.

        A long record has no relation to one of another text.
        """
        if not (isinstance(one, MemoryPassage) and isinstance(other, MemoryPassage)):
            return "same"
        if is_settled(one.record, other.record):
            return ""
        if one.text != other.text and max(len(one.text), len(other.text)) > PASSAGE:
            return ""  # it makes several statements, and parsing it takes milliseconds
        is_older = (validity(one.record)[0], one.row) <= (validity(other.record)[0], other.row)
        older, newer = (one, other) if is_older else (other, one)
        relation = self._compare(older, newer)
        if relation == "same":
            return "same"
        if relation == "different" or not may_replace(older.record, newer.record, self.scorer.policy):
            return ""
        return self.foresee(one, other)

    def foresee(self, one: Passage, other: Passage) -> Relation:
        """Return the relation of `one` to `other` if they are in conflict; empty if the policy shows both."""
        if not (isinstance(one, MemoryPassage) and isinstance(other, MemoryPassage)):
            return ""
        if self.scorer.policy.ranking.conflicts:
            return ""
        known = self.ranks
        mine, theirs = known.get(one.id) or self._rank(one), known.get(other.id) or self._rank(other)
        if mine == theirs:  # rare, and scores take time
            mine, theirs = (
                precedence(each.record, self.scorer.reflection(each.record), each.row) for each in (one, other)
            )
        return "prevails" if mine > theirs else "yields"

    def _compare(self, older: MemoryPassage, newer: MemoryPassage) -> UpdateRelation:
        """Return the relation of the newer memory to the older one; its index keeps that of two active records."""
        compared = self._compared(older)
        is_kept = self._compared(newer) is compared and not (older.record.archived or newer.record.archived)
        pair = older.row, older.record.version, newer.row, newer.record.version
        known = compared.relation(pair) if is_kept else None
        if known is None:
            verdict = self.judge.compare_in_search(self._statement(older), self._statement(newer))
            known = verdict.relation
            if is_kept and verdict is not UNREAD:
                compared.keep_relation(pair, known)
        return known

    def _compared(self, passage: MemoryPassage) -> ComparedTexts:
        return self.indexes[passage.record.user_id is None].compared

    def _statement(self, passage: MemoryPassage) -> Statement:
        return self._compared(passage).statement(passage.text, passage.outline)

    def _rank(self, passage: MemoryPassage) -> tuple[Any, ...]:
        record, policy = passage.record, self.scorer.policy
        protected, held = not policy.rule(record.policy_class).prune, bool(record.hold)
        known = self.ranks[passage.id] = protected, held, not _yields(record, policy), validity(record)[0]
        return known
