"""The questions of the routing experiment, with all evidence turns, and the tier of each question type."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, TypeAlias

from meve.errors import EvaluationError
from meve.evaluation.datasets._row_reader import Row, read_rows
from meve.evaluation.experiments.memory.talks import Talk, Turns, parse_moment, read_locomo, read_told
from meve.routing import Tier

Half: TypeAlias = Literal["tuning", "table"]
HALVES: tuple[Half, ...] = ("table", "tuning")
TIER_OF: Mapping[str, Tier] = {
    "single_hop": Tier.TARGETED,
    "multi_hop": Tier.DEEP,
    "temporal": Tier.DEEP,
    "open_domain": Tier.DEEP,
    "single-session-user": Tier.TARGETED,
    "single-session-assistant": Tier.TARGETED,
    "single-session-preference": Tier.PROFILE,
    "knowledge-update": Tier.DEEP,
    "multi-session": Tier.DEEP,
    "temporal-reasoning": Tier.DEEP,
    **dict.fromkeys(("hotpotqa", "2wikimqa", "musique"), Tier.DEEP),
    **dict.fromkeys(("triviaqa", "multifieldqa_en", "narrativeqa", "qasper"), Tier.TARGETED),
}
"""The tier of each question type of LoCoMo and LongMemEval, and of each task of LongBench.

Profile for what the user prefers; targeted for one fact of one session or document; deep for several facts, changes of
a fact, times, and conclusions.
"""
_FALSE_PREMISE = "ATTRIBUTION_ERROR"
"""The audit's mark of LoCoMo questions about something that the other speaker did."""
_ADVERSARIAL = 5
"""LoCoMo's category of questions without an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingCase:
    """A question about one user's conversations."""

    id: str
    user: str
    """The user in whose memory the answer is looked for."""
    unit: str
    """The history that the question is about. Confidence intervals resample histories instead of questions."""
    half: Half
    type: str
    text: str
    answers: tuple[str, ...]
    """Empty if the question has no answer, or the audit found it wrong."""
    evidence: frozenset[str]
    """The ids of all turns that the answer needs; empty if there is no answer."""
    one_suffices: bool = False
    """True if one of the evidence turns is enough, because each holds the answer."""
    at: datetime
    """When the question is asked."""

    @property
    def tier(self) -> Tier | None:
        """The tier of the question's type; None for questions without an answer."""
        return TIER_OF[self.type] if self.evidence else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingSet:
    """Conversations with questions."""

    name: str
    turns: Turns
    cases: tuple[RoutingCase, ...]


def read_locomo_cases(data: Path) -> RoutingSet:
    """Return LoCoMo: categories 1 to 4 with their evidence, and category 5 without.

    Evidence that the audit corrected is replaced. Questions with a false premise are left out.

    Raises:
        DatasetError: the set is absent, truncated or of another format.
    """
    talk = read_locomo(data)
    known = {user: {turn.id for turn in own} for user, own in talk.turns.items()}
    cases = []
    for row in read_rows(data / "locomo" / "questions.jsonl"):
        audit = row.values.get("audit") or {}
        if audit.get("error_type") == _FALSE_PREMISE or row.values.get("evidence_unresolved"):
            continue
        user = row.text("conversation_id")
        is_answerable = row.number("category", 1) != _ADVERSARIAL
        evidence = frozenset(audit.get("correct_evidence") or row.texts("evidence")) if is_answerable else frozenset()
        if is_answerable and not (evidence and evidence <= known[user]):
            continue
        cases.append(
            RoutingCase(
                id=row.text("id"), user=user, unit=user, half=_half(talk, user), type=row.text("category_name"),
                text=row.text("question"), evidence=evidence, at=talk.turns[user][-1].at + timedelta(days=1),
                answers=(str(row.values["answer"]),) if is_answerable and not audit else (),
            )
        )  # fmt: skip
    return _set("locomo", talk, cases)


def read_longmemeval_cases(data: Path) -> RoutingSet:
    """Return LongMemEval: every question's evidence turns, dealt to four users among turns of other sessions.

    Questions without an answer are asked of the user to whom their history would be dealt.

    Raises:
        DatasetError: the set is absent, truncated or of another format.
    """
    talk = read_told(data)
    pending: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for question in talk.questions:
        pending.setdefault(question.text, []).append((question.user, question.evidence))
    users = list(talk.turns)
    cases = []
    for number, row in enumerate(read_rows(data / "longmemeval" / "questions.jsonl")):
        is_told, is_answerable = bool(row.texts("evidence_turn_ids")), row.values.get("abstention") is not True
        if not is_told and is_answerable:
            continue
        user, evidence = pending[row.text("question")].pop(0) if is_told else (users[number % len(users)], frozenset())
        cases.append(_longmemeval_case(row, user, _half(talk, user), evidence if is_answerable else frozenset()))
    return _set("longmemeval", talk, cases)


def _longmemeval_case(row: Row, user: str, half: Half, evidence: frozenset[str]) -> RoutingCase:
    return RoutingCase(
        id=row.text("id"), user=user, unit=row.text("user_id"), half=half, type=row.text("question_type"),
        text=row.text("question"), evidence=evidence, at=parse_moment(row.text("question_date")),
        answers=(str(row.values["answer"]),) if evidence else (),
    )  # fmt: skip


def _half(talk: Talk, user: str) -> Half:
    """Return the half of a user: users at even places tuned the memory's weights, too."""
    return "table" if list(talk.turns).index(user) % 2 else "tuning"


def _set(name: str, talk: Talk, cases: Sequence[RoutingCase]) -> RoutingSet:
    if not any(case.evidence for case in cases):
        raise EvaluationError(f"{name} has no question with known evidence")
    return RoutingSet(name=name, turns=talk.turns, cases=tuple(cases))
