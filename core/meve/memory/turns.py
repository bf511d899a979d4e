"""Records the turns of a conversation: stores the facts that they state, once each, and scores what an answer used."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from meve.conversation import Turn
from meve.errors import ConfigurationError, DuplicateIdError, ModelError, ValidationError, wrap_errors
from meve.memory._classify.fact_extraction import extract_statements
from meve.memory._classify.standing_wishes import is_standing_wish
from meve.memory._feedback.reflector import ReflectionResult
from meve.memory._recall.searcher import Recall
from meve.memory.memory import GovernedMemory
from meve.memory.policy import PolicyClass, RecordSource
from meve.memory.records import MemoryRecord, UserId, check_choice, check_scopes, check_text

_TYPED_LENGTH = 300
"""Longer turns, and those of several lines, may hold pasted text: a wish in them is no instruction."""

FactExtractor: TypeAlias = Callable[[str], Sequence[str]]
"""Returns the facts in a text that are worth remembering, each as a statement that needs no context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRules:
    """Rules for the turns to store, and the sources they get. By default the statements of users.

    Turns of assistants and tools are stored only if `sources` names their role:
    `TurnRules(sources={"user": "chat_user", "tool": "api_result"})`.
    """

    sources: Mapping[str, RecordSource] = field(default_factory=lambda: {"user": "chat_user"})
    """For each role, the source of its records."""
    classes: Mapping[str, PolicyClass] = field(default_factory=lambda: {"user": "factual"})
    """For each role, the policy class of its records; the memory's classifier chooses for other roles. Of `factual`, a
    user's standing wish in a short turn becomes an `instruction`."""
    facts: FactExtractor | None = None
    """Extracts the facts of a turn; None for its statements in English, found by rules."""
    max_facts: int = 32
    """Maximum number of facts stored for a turn; the first ones are taken."""
    agent_id: str | None = None
    """The agent that the records belong to, as for `GovernedMemory.add`."""
    run_id: str | None = None
    """The run that the records belong to."""

    def __post_init__(self) -> None:
        missing = sorted(set(self.classes) - set(self.sources) - {"user"})
        if missing:
            raise ConfigurationError(
                f"classes names the roles {', '.join(missing)}, which sources lacks: add them there"
            )
        for source in self.sources.values():
            check_choice(source, "a source", RecordSource)
        for policy_class in self.classes.values():
            check_choice(policy_class, "a class", PolicyClass)
        check_scopes({"agent_id": self.agent_id, "run_id": self.run_id})
        if self.max_facts < 1:
            raise ConfigurationError(
                f"max_facts must be at least 1, got {self.max_facts}: to skip a role, leave it out of sources"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTurns:
    """The records that were stored for turns, and the changed scores of memories that were recalled for an answer."""

    added: tuple[MemoryRecord, ...] = ()
    known: tuple[str, ...] = ()
    """Ids of facts that were stored before, even if they were erased since."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """By turn id, why a turn is not stored, or only in part."""
    reflected: ReflectionResult | None = None
    """None if nothing was recalled or nothing answered."""


def add_turns(
    memory: GovernedMemory,
    turns: Sequence[Turn],
    *,
    user_id: UserId,
    session_id: str | None = None,
    rules: TurnRules | None = None,
    reason: str = "said in a conversation",
) -> RecordedTurns:
    """Store the facts of new turns. Turns that were stored before are skipped, even if they were erased since.

    Args:
        memory: the memory.
        turns: in order, each with an id. Without a session, turns of equal ids and different texts are different turns.
        user_id: owner of the records.
        session_id: session of the turns.
        rules: which turns are stored, and as what.
        reason: for the audit log.

    Raises:
        ValidationError: an invalid user, session or turn.
        ModelError: the fact extractor or the embedder failed.
        StorageError: the store can't be written.
    """
    rules = rules or TurnRules()
    added: list[MemoryRecord] = []
    known: list[str] = []
    skipped: dict[str, str] = {}
    for turn in turns:
        facts, why = _extract_facts(turn, rules, memory.policy.limits.text)
        if why:
            skipped[turn.id] = why
        for n, fact in enumerate(facts):
            record_id = make_fact_id(session_id, turn.id if session_id is not None else f"{turn.id}:{turn.text}", n)
            if memory.audit.events(user_id=user_id, record_id=record_id):
                known.append(record_id)
                continue
            try:
                record = memory.add(
                    fact, user_id=user_id, source=rules.sources[turn.speaker],
                    policy_class=_choose_class(turn, fact, rules), id=record_id, session_id=session_id,
                    agent_id=rules.agent_id, run_id=rules.run_id, reason=reason,
                )  # fmt: skip
                added.append(record)
            except DuplicateIdError:  # another thread or process stored it just now
                known.append(record_id)
    return RecordedTurns(added=tuple(added), known=tuple(known), skipped=skipped)


def record_turns(
    memory: GovernedMemory,
    turns: Sequence[Turn],
    *,
    user_id: UserId,
    session_id: str | None = None,
    recall: Recall | None = None,
    answer: str = "",
    rules: TurnRules | None = None,
) -> RecordedTurns:
    """Adjust the scores of recalled memories after an answer, and store the facts of new turns.

    Args:
        memory: the memory.
        turns: in order, each with an id; the answer may be among them.
        user_id: owner of the records.
        session_id: session of the turns.
        recall: what `search` returned for the question; None for nothing.
        answer: the answer; blank for none.
        rules: which turns are stored, and as what.

    Raises:
        ValidationError: an invalid turn, or a recall of another user.
        StorageError: the store can't be written.
    """
    if recall is not None and (type(recall.user_id), recall.user_id) != (type(user_id), user_id):
        raise ValidationError(
            f"recall must belong to user_id {user_id!r:.80}, got another user's: search again with this user_id"
        )
    reflected = None
    if recall is not None and recall.records and answer.strip():
        reflected = memory.reflect(recall, answer=answer)
    result = add_turns(memory, turns, user_id=user_id, session_id=session_id, rules=rules)
    return replace(result, reflected=reflected)


def make_fact_id(session_id: str | None, turn_id: str, n: int) -> str:
    """Return the id of the n-th fact of a turn, from 0; the same on every call."""
    key = json.dumps([session_id, turn_id]).encode()
    return f"turn-{hashlib.sha256(key).hexdigest()[:32]}-{n}"


def _choose_class(turn: Turn, fact: str, rules: TurnRules) -> PolicyClass | None:
    """Return the class of a fact; None lets the classifier choose."""
    chosen = rules.classes.get(turn.speaker)
    is_pasted = len(turn.text) > _TYPED_LENGTH or len(turn.text.splitlines()) > 1
    if chosen != "factual" or is_pasted or rules.sources[turn.speaker] != "chat_user":
        return chosen
    return "instruction" if is_standing_wish(fact) else chosen


def _extract_facts(turn: Turn, rules: TurnRules, max_length: int) -> tuple[Sequence[str], str]:
    """Return the facts to store, and why some facts are left out; empty if none are."""
    check_text(turn.id, "a turn's id")
    if turn.speaker not in rules.sources:
        return [], f"turns of role {turn.speaker!r} aren't remembered"
    text = turn.text.replace("\x00", "").encode(errors="ignore").decode()
    if rules.facts is None:
        all_facts = extract_statements(text)
    else:
        with wrap_errors(ModelError, "extracting facts with the function in TurnRules(facts=…)"):
            all_facts = [fact for fact in rules.facts(text) if fact.strip()] if text.strip() else []
    if not all_facts:
        return [], "it states nothing"
    facts = [fact for fact in all_facts if len(fact) <= max_length][: rules.max_facts]
    are_all = len(facts) == len(all_facts)
    return facts, "" if are_all else f"{len(facts)} of {len(all_facts)} facts: too many, or too long"
