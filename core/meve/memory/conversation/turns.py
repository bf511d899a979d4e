"""What a conversation leaves behind: which of its turns are remembered and as what, each once; and what answers used.

For whoever keeps a conversation: `conversed` after each answer, with what `search` returned for it.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from meve.errors import ConfigurationError, DuplicateIdError, ModelError, ValidationError, foreign
from meve.memory._classify.fact_extraction import statements
from meve.memory._feedback.reflector import Reflected
from meve.memory._recall.searcher import Recall
from meve.memory.memory import GovernedMemory
from meve.memory.policy import PolicyClass, Source
from meve.memory.records import MemoryRecord, UserId, checked_choice, checked_text

Facts: TypeAlias = Callable[[str], Sequence[str]]
"""Of what somebody says, what is worth remembering: statements that each stand for themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A turn of a conversation."""

    id: str
    """Unique in its session, and the same whenever the turn is seen. Without a session, turns of one id that say
    something else are others: many a program begins to count anew with each conversation."""
    role: str
    """`user`, `assistant`, `tool`, or what else there is."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRules:
    """Which turns are remembered, and as what. By default what users state, for as long as turns live.

    What an assistant or a tool says is remembered only if its role is named here:
    `TurnRules(sources={"user": "chat_user", "tool": "api_result"})`.
    """

    sources: Mapping[str, Source] = field(default_factory=lambda: {"user": "chat_user"})
    """By role: where its turns are from."""
    classes: Mapping[str, PolicyClass] = field(default_factory=lambda: {"user": "factual"})
    """By role: the class of its turns; the memory's classifier tells that of roles without."""
    facts: Facts | None = None
    """Takes what is worth remembering out of a turn; `meve.memory._classify.fact_extraction.statements` if None."""
    most: int = 32
    """Facts that are remembered of one turn, the first ones."""

    def __post_init__(self) -> None:
        """Check it."""
        odd = sorted(set(self.classes) - set(self.sources) - {"user"})
        if odd:
            raise ConfigurationError(f"a class is given for {', '.join(odd)}, and no source: name both, or neither")
        for sources in self.sources.values():
            checked_choice(sources, "a source", Source)
        for classes in self.classes.values():
            checked_choice(classes, "a class", PolicyClass)
        if self.most < 1:
            raise ConfigurationError(f"most is {self.most}: remember 1 fact of a turn at least, or leave out its role")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversed:
    """What became of new turns, and of what was recalled for them."""

    added: tuple[MemoryRecord, ...] = ()
    known: tuple[str, ...] = ()
    """Ids of facts that were written before, whatever became of them since."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """By the turn's id: why nothing of it is remembered, or not all."""
    reflected: Reflected | None = None
    """None where nothing was recalled, or nothing was answered."""


def remember(
    memory: GovernedMemory,
    turns: Sequence[Said],
    *,
    user_id: UserId,
    session_id: str | None = None,
    rules: TurnRules | None = None,
    reason: str = "said in a conversation",
) -> Conversed:
    """Write what is new in some turns. One that was seen before is not written again, not even after it was erased.

    Args:
        memory: where.
        turns: in their order; old ones among them do no harm.
        user_id: whose conversation.
        session_id: which of theirs.
        rules: what is remembered.
        reason: for the audit log.

    Raises:
        ValidationError: a user, session or turn that can't be.
        ModelError: a function for facts, or the embedder, failed.
        StorageError: the file can't be written.
    """
    rules = rules or TurnRules()
    added: list[MemoryRecord] = []
    known: list[str] = []
    skipped: dict[str, str] = {}
    for turn in turns:
        facts, why = _worth(turn, rules, memory.policy.limits.text)
        if why:
            skipped[turn.id] = why
        for n, fact in enumerate(facts):
            record_id = fact_id(session_id, turn.id if session_id is not None else f"{turn.id}:{turn.text}", n)
            if memory.audit.events(user_id=user_id, record_id=record_id):
                known.append(record_id)
                continue
            try:
                made = memory.add(
                    fact, user_id=user_id, source=rules.sources[turn.role], policy_class=rules.classes.get(turn.role),
                    id=record_id, session_id=session_id, reason=reason,
                )  # fmt: skip
                added.append(made)
            except DuplicateIdError:  # somebody else wrote it just now
                known.append(record_id)
    return Conversed(added=tuple(added), known=tuple(known), skipped=skipped)


def conversed(
    memory: GovernedMemory,
    turns: Sequence[Said],
    *,
    user_id: UserId,
    session_id: str | None = None,
    recall: Recall | None = None,
    answer: str = "",
    rules: TurnRules | None = None,
) -> Conversed:
    """After an answer: move the scores of what was recalled for it by what it used, and write what is new.

    Args:
        memory: where.
        turns: in their order, the answer among them or not.
        user_id: whose conversation.
        session_id: which of theirs.
        recall: what `search` returned for it; None for nothing.
        answer: what was answered; blank for nothing.
        rules: what is remembered.

    Raises:
        ValidationError: a turn that can't be, or a recall of another user's.
        StorageError: the file can't be written.
    """
    if recall is not None and (type(recall.user_id), recall.user_id) != (type(user_id), user_id):
        raise ValidationError("the recall is another user's: reflect on it with the user that it was made for")
    reflected = None
    if recall is not None and recall.records and answer.strip():
        reflected = memory.reflect(recall, answer=answer)
    done = remember(memory, turns, user_id=user_id, session_id=session_id, rules=rules)
    return Conversed(added=done.added, known=done.known, skipped=done.skipped, reflected=reflected)


def fact_id(session_id: str | None, turn_id: str, n: int) -> str:
    """The id of the n-th fact of a turn of a session, from 0: the same whenever the turn is seen."""
    named = json.dumps([session_id, turn_id]).encode()
    return f"turn-{hashlib.sha256(named).hexdigest()[:32]}-{n}"


def _worth(turn: Said, rules: TurnRules, longest: int) -> tuple[Sequence[str], str]:
    """What is remembered of a turn, and why that isn't all."""
    checked_text(turn.id, "a turn's id")
    if turn.role not in rules.sources:
        return [], f"turns of role {turn.role!r} aren't remembered"
    text = turn.text.replace("\x00", "").encode(errors="ignore").decode()
    if rules.facts is None:
        found = statements(text)
    else:
        with foreign(ModelError, "taking the facts out of a turn with the function of TurnRules(facts=…)"):
            found = [fact for fact in rules.facts(text) if fact.strip()] if text.strip() else []
    facts = [fact for fact in found if len(fact) <= longest][: rules.most]
    if not found:
        return [], "it states nothing"
    return facts, "" if len(facts) == len(found) else f"{len(facts)} of {len(found)} facts: too many, or too long"
