"""What two memories that are near each other are: the same twice, or in conflict; and which of them stays."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from meve.memory._contradiction.rules import Contradiction, RuleContradiction
from meve.memory._contradiction.statements import Statement
from meve.memory._recall.scoring import MemoryPassage, PolicyScorer
from meve.memory._recall.user_index import Shelf
from meve.memory.records import MemoryRecord
from meve.pipeline.phases.prioritize import Relation
from meve.types import Passage


def precedence(record: MemoryRecord, score: float) -> tuple[bool, bool, datetime, float, str]:
    """The larger wins: what is on hold, then what no answer contradicted, then the newer one, then the better one."""
    return (bool(record.hold), not record.flagged, record.created_at, score, record.id)


@dataclass(frozen=True, slots=True)
class Relating:
    """Tells it of two memories of a recall."""

    scorer: PolicyScorer
    shelves: Sequence[Shelf]
    """The user's own first, then the shared one."""
    contradiction: Contradiction

    def __call__(self, one: Passage, other: Passage) -> Relation:
        """What `one` is to `other`. What a policy protects yields to its like alone."""
        if not (isinstance(one, MemoryPassage) and isinstance(other, MemoryPassage)):
            return "same"
        mine, theirs = self._statement(one), self._statement(other)
        if mine.values == theirs.values:
            return "same"
        if self.scorer.policy.ranking.conflicts or not self._contradict(one, other, mine, theirs):
            return ""  # other values, of what may be other subjects
        return "prevails" if self._precedence(one.record) > self._precedence(other.record) else "yields"

    def _contradict(self, one: Passage, other: Passage, mine: Statement, theirs: Statement) -> bool:
        if isinstance(self.contradiction, RuleContradiction):
            return bool(self.contradiction.compare_statements(mine, theirs))
        return bool(self.contradiction.find_difference(one.text, other.text))

    def _statement(self, passage: MemoryPassage) -> Statement:
        return self.shelves[passage.record.user_id is None].statement(passage.text)

    def _precedence(self, record: MemoryRecord) -> tuple[bool, tuple[bool, bool, datetime, float, str]]:
        protected = not self.scorer.policy.rule(record.policy_class).prune
        return protected, precedence(record, self.scorer.reflection(record))
