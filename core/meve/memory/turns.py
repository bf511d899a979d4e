"""Records the turns of a conversation: stores the facts that they state, once each, and scores what an answer used."""

import hashlib
import json
import logging
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from meve.conversation.turn import Turn, TurnRecord
from meve.errors import (
    ConfigurationError,
    DuplicateIdError,
    MeveError,
    ModelError,
    PolicyError,
    ValidationError,
    show,
    wrap_errors,
)
from meve.memory._classify.standing_wishes import is_standing_wish
from meve.memory._classify.wish_endings import ends_wish
from meve.memory._feedback.reflector import ReflectionResult
from meve.memory._recall.searcher import Recall
from meve.memory._write.extraction import FactDecision, FactExtractor, RuleExtractor, TurnContext
from meve.memory._write.fact_writer import RefusedError, check_class, check_decision
from meve.memory._write.told_turns import read_conversation, read_turns, said_at
from meve.memory.memory import GovernedMemory
from meve.memory.policy import PolicyClass, RecordSource
from meve.memory.records import MemoryRecord, UserId, check_choice, check_scopes, check_text, user_key
from meve.memory.stores._record_transaction import RecordTransaction

logger = logging.getLogger("meve")
_SPEAKERS = ("user", "assistant")
"""Roles whose turns an extractor may see before a turn; what tools returned must not become a user's word."""
_CLASSES: Mapping[str, PolicyClass] = {"user": "factual"}
_BEFORE = 10
"""Turns before a turn that an extractor sees."""
_TYPED_LENGTH = 300
"""Longer turns, and those of several lines, may hold pasted text: a wish in them is no instruction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRules:
    """Rules for the turns to store, and the sources they get. By default the statements of users.

    Turns of assistants and tools are stored only if `sources` names their role:
    `TurnRules(sources={"user": "chat_user", "tool": "api_result"})`.
    """

    sources: Mapping[str, RecordSource] = field(default_factory=lambda: {"user": "chat_user"})
    """For each role, the source of its records."""
    classes: Mapping[str, PolicyClass] = field(default_factory=lambda: _CLASSES)
    """For each role, the policy class of its records; the memory's classifier chooses for other roles. With a
    classifier of your own, that one chooses for users, too, unless you name other classes. Of `factual`, a user's
    standing wish in a short turn becomes an `instruction`."""
    extractor: FactExtractor = field(default_factory=RuleExtractor)
    """Decides what a turn adds to the memory; by default by rules, for English."""
    background: FactExtractor | None = None
    """Adds and corrects later, in a thread of the memory, such as `LlmExtractor`. What `extractor` wrote stays, if this
    one fails. Only `RuleExtractor` reads turns that are private or hold a secret."""
    max_facts: int = 32
    """Maximum number of facts stored for a turn; the first ones are taken."""
    agent_id: str | None = None
    """The agent that the records belong to, as for `GovernedMemory.add`."""
    run_id: str | None = None
    """The run that the records belong to."""

    @property
    def scopes(self) -> dict[str, str]:
        """The agent and the run, where they are given."""
        return check_scopes({"agent_id": self.agent_id, "run_id": self.run_id})

    @property
    def reads_context(self) -> bool:
        """Whether an extractor reads what came before a turn, as all but `RuleExtractor` do."""
        return self.background is not None or not isinstance(self.extractor, RuleExtractor)

    def __post_init__(self) -> None:
        for name in ("sources", "classes"):
            roles = getattr(self, name)
            if not isinstance(roles, Mapping) or not all(isinstance(role, str) for role in roles):
                raise ConfigurationError(f'{name} must map roles, such as "user", got {show(roles, 80)}')
        missing = sorted(set(self.classes) - set(self.sources) - {"user"})
        if missing:
            raise ConfigurationError(
                f"classes names the roles {', '.join(missing)}, which sources lacks: add them there"
            )
        for source in self.sources.values():
            check_choice(source, "a source", RecordSource)
        for policy_class in self.classes.values():
            check_choice(policy_class, "a class", PolicyClass)
        for name, extractor in (("extractor", self.extractor), ("background", self.background or self.extractor)):
            if not isinstance(extractor, FactExtractor):
                raise ConfigurationError(f"{name} must have the method extract(context), got {extractor!r:.80}")
        check_scopes({"agent_id": self.agent_id, "run_id": self.run_id})
        if isinstance(self.max_facts, bool) or not isinstance(self.max_facts, int) or self.max_facts < 1:
            raise ConfigurationError(
                f"max_facts must be a whole number of at least 1, got {self.max_facts!r:.40}: to skip a role, leave it "
                "out of sources"
            )


_OWN_ID = re.compile(r"(?=\D*\d)[\w.:+/=-]{16,}")
"""Ids that only one message has, such as UUIDs and those of a provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTurns:
    """The records that were stored for turns, and the changed scores of memories that were recalled for an answer."""

    added: tuple[MemoryRecord, ...] = ()
    known: tuple[str, ...] = ()
    """Ids of facts that were stored before, even if they were erased since."""
    confirmed: tuple[str, ...] = ()
    """Ids of memories that a turn said again, instead of adding them twice."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """By turn id, why a turn is not stored, or only in part."""
    pending: "tuple[Future[RecordedTurns], ...]" = field(default=(), compare=False)
    """What `TurnRules.background` will have done with each turn; `memory.close()` waits for it."""
    reflected: ReflectionResult | None = None
    """None if nothing was recalled or nothing answered."""


def add_turns(
    memory: GovernedMemory,
    turns: Sequence[TurnRecord],
    *,
    user_id: UserId,
    session_id: str | None = None,
    rules: TurnRules | None = None,
    before: Sequence[TurnRecord] = (),
    reason: str = "said in a conversation",
) -> RecordedTurns:
    """Store the facts of new turns, each once. Turns that were stored before are skipped, even if erased since.

    A turn is known by session and id; one whose id only one message has, such as a UUID, also in other sessions.

    Args:
        memory: the memory.
        turns: in order: `Turn`, {"role": "user", "content": …} or ("user", …). Roles are `user`, `assistant`, `tool`,
            `function`, `system`, `developer` and those of `rules`; `human` and `ai` are user and assistant. What is
            recorded of a turn with a time is told then: its day, its age and its life count from there. A turn without
            an id gets one of role, text and time. Without a session, turns of equal ids and different texts are
            different turns.
        user_id: owner of the records.
        session_id: session of the turns.
        rules: which turns are stored, and as what.
        before: the conversation before these turns, oldest first, which an extractor sees; nothing of it is stored.
        reason: for the audit log.

    Raises:
        ValidationError: an invalid user, session or turn, such as one of an unknown role, or one whose time is in the
            future or has no time zone; nothing is recorded.
        ModelError: the fact extractor or the embedder failed.
        StorageError: the store can't be written.
    """
    rules = TurnRules() if rules is None else rules
    if not isinstance(rules, TurnRules):
        raise ValidationError(f"rules must be TurnRules, got {rules!r:.80}")
    told = read_turns(turns, "turns", rules.sources, memory.clock.now())
    said_before = read_conversation(before, "before")
    added: list[MemoryRecord] = []
    known: list[str] = []
    confirmed: list[str] = []
    skipped: dict[str, str] = {}
    pending: list[Future[RecordedTurns]] = []
    for place, turn in enumerate(told):
        shown = [each for each in (*said_before, *told[:place]) if each.speaker in _SPEAKERS][-_BEFORE:]
        created_at = said_at(turn, memory.clock.now())
        facts, why = _extract_facts(memory, turn, shown, rules, user_id)
        refused = [why] if why else []
        for n, fact in enumerate(facts):
            record_id, *others = (f"{name}-{n}" for name in _name_turn(session_id, turn))
            seen = next((i for i in (record_id, *others) if memory.audit.events(user_id=user_id, record_id=i)), None)
            if seen is not None:
                known.append(seen)
                continue
            try:
                record = memory._facts.write(
                    fact, user_id, record_id=record_id, source=rules.sources[turn.speaker],
                    policy_class=_choose_class(turn, fact, rules, memory, user_id), session_id=session_id,
                    reason=reason, scopes=rules.scopes, created_at=created_at, add=memory.add,
                )  # fmt: skip
            except DuplicateIdError:  # another thread or process stored it just now
                known.append(record_id)
            except (PolicyError, RefusedError) as error:
                refused.append(_log_refusal(error))
            else:
                confirmed.append(record) if isinstance(record, str) else added.append(record)
        if refused:
            skipped[turn.id] = "; ".join(refused)
        if rules.background is not None and turn.speaker in rules.sources and turn.text.strip():
            later = _defer(memory, turn, shown, rules, user_id, session_id, reason)
            pending += [] if later is None else [later]
    return RecordedTurns(
        added=tuple(added), known=tuple(known), confirmed=tuple(confirmed), skipped=skipped, pending=tuple(pending)
    )


def record_turns(
    memory: GovernedMemory,
    turns: Sequence[TurnRecord],
    *,
    user_id: UserId,
    session_id: str | None = None,
    recall: Recall | None = None,
    answer: str = "",
    rules: TurnRules | None = None,
    before: Sequence[TurnRecord] = (),
) -> RecordedTurns:
    """Adjust the scores of recalled memories after an answer, and store the facts of new turns.

    Args:
        memory: the memory.
        turns: as for `add_turns`; the answer may be among them.
        user_id: owner of the records.
        session_id: session of the turns.
        recall: what `search` returned for the question; None for nothing.
        answer: the answer; blank for none.
        rules: which turns are stored, and as what.
        before: the conversation before these turns, oldest first, which an extractor sees; nothing of it is stored.

    Raises:
        ValidationError: an invalid turn, or a recall of another user.
        StorageError: the store can't be written.
    """
    if recall is not None and not isinstance(recall, Recall):
        raise ValidationError(f"recall must be what search returned, got {recall!r:.80}")
    if not isinstance(answer, str):
        raise ValidationError(f"answer must be a string, got {answer!r:.80}")
    if recall is not None and (type(recall.user_id), recall.user_id) != (type(user_id), user_id):
        raise ValidationError(
            f"recall must belong to user_id {user_id!r:.80}, got another user's: search again with this user_id"
        )
    reflected = None
    if recall is not None and recall.records and answer.strip():
        reflected = memory.reflect(recall, answer=answer)
    result = add_turns(memory, turns, user_id=user_id, session_id=session_id, rules=rules, before=before)
    return replace(result, reflected=reflected)


def make_fact_id(session_id: str | None, turn_id: str, n: int) -> str:
    """Return the id of the n-th fact of a turn, from 0; the same on every call."""
    return f"{_hash_turn(session_id, turn_id)}-{n}"


def _hash_turn(session_id: str | None, turn_id: str) -> str:
    return f"turn-{hashlib.sha256(json.dumps([session_id, turn_id]).encode()).hexdigest()[:32]}"


def _name_turn(session_id: str | None, turn: Turn) -> list[str]:
    """Return the name of a turn, and others under which it may have been recorded.

    A message with an id of its own is the same message in every session. Ids that only count, and those that the
    wrappers make of the text where a message has none, don't tell whether the user says it anew.
    """
    if session_id is None:
        return [_hash_turn(None, f"{turn.id}:{turn.text}")]
    in_session = _hash_turn(session_id, turn.id)
    return [_hash_turn(None, turn.id), in_session] if _has_own_id(turn) else [in_session]


def _has_own_id(turn: Turn) -> bool:
    made = (f"{role}:{turn.text}".encode(errors="replace") for role in (turn.speaker, "human", "ai"))
    digests = tuple(hashlib.sha256(each).hexdigest()[:32] for each in made)
    return _OWN_ID.fullmatch(turn.id) is not None and not turn.id.startswith(digests)


def _defer(
    memory: GovernedMemory,
    turn: Turn,
    before: Sequence[Turn],
    rules: TurnRules,
    user_id: UserId,
    session_id: str | None,
    reason: str,
) -> "Future[RecordedTurns] | None":
    """Let the background extractor of the rules read a turn later, once; None if it has or will."""
    facts, queue, user = memory._facts, memory._extractions, user_key(user_id)
    name, *others = (f"{each}-0-model" for each in _name_turn(session_id, turn))
    if any(memory.audit.events(user_id=user_id, record_id=each) for each in (name, *others)):
        return None
    source = rules.sources[turn.speaker]
    not_erased, forgotten = facts.refuse_after_erasure(user), queue.count_forgotten(user)

    def check(transaction: RecordTransaction) -> None:
        not_erased(transaction)
        if queue.count_forgotten(user) != forgotten:
            raise RefusedError("the user or a session was forgotten since the turn")

    def run() -> RecordedTurns:
        done: dict[bool, list[MemoryRecord | str]] = {True: [], False: []}
        skipped: list[str] = []
        try:
            if _is_private(memory, turn, rules):
                raise RefusedError("the turn is private")
            with_model = replace(rules, extractor=rules.background or rules.extractor, background=None)
            decisions, why = _extract_facts(memory, turn, before, with_model, user_id)
            skipped += [why] if why else []
            for n, fact in enumerate(decisions):
                try:
                    written = facts.write(
                        fact, user_id, record_id=f"{name}-{n}", source=source,
                        policy_class=_choose_class(turn, fact, rules, memory, user_id), session_id=session_id,
                        reason=reason, scopes=rules.scopes, created_at=said_at(turn, memory.clock.now()), check=check,
                    )  # fmt: skip
                    done[isinstance(written, str)].append(written)
                except (RefusedError, PolicyError, DuplicateIdError) as error:
                    skipped.append(_log_refusal(error))
            facts.note(user, name, "a model read the turn", check)
        except MeveError as error:
            why = type(error.__cause__ or error).__name__  # the error itself may quote what was said
            logger.warning("reading a turn in the background failed, and the rules' facts stay: %s", why)
            skipped.append(str(error))
        return RecordedTurns(
            added=tuple(r for r in done[False] if not isinstance(r, str)),
            confirmed=tuple(r for r in done[True] if isinstance(r, str)),
            skipped={turn.id: "; ".join(skipped)} if skipped else {},
        )

    return queue.submit(f"{user} {name}", run)


def _choose_class(
    turn: Turn, fact: FactDecision, rules: TurnRules, memory: GovernedMemory, user_id: UserId
) -> PolicyClass | None:
    """Return the class of a fact; None lets the classifier choose."""
    is_default = rules.classes == _CLASSES and memory._runtime.gate.classifier is not None
    chosen, source = None if is_default else rules.classes.get(turn.speaker), rules.sources[turn.speaker]
    if fact.policy_class is not None:
        check_class(fact.policy_class, chosen or memory._runtime.classifier.classify(fact.text, source))
        return fact.policy_class
    is_pasted = len(turn.text) > _TYPED_LENGTH or len(turn.text.splitlines()) > 1
    said, typed = (" ".join(text.casefold().split()) for text in (fact.text, turn.text))
    is_typed = source == "chat_user" and not is_pasted and said in typed  # a model can't word a wish for the user
    if chosen is None and not is_typed and memory._runtime.classifier.classify(fact.text, source) == "instruction":
        return memory.policy.user_class
    if chosen != "factual" or not is_typed:
        return chosen
    wishes = memory._facts.find_wishes(fact.text, user_id, rules.scopes)
    return "instruction" if is_standing_wish(fact.text) or ends_wish(fact.text, wishes) else chosen


def _is_private(memory: GovernedMemory, turn: Turn, rules: TurnRules) -> bool:
    """Return whether no extractor but the one by rules may read a turn."""
    source = rules.sources.get(turn.speaker, "chat_assistant")
    return memory._facts.is_private(turn.text, source, rules.classes.get(turn.speaker, "factual"))


def _log_refusal(error: MeveError) -> str:
    """Log why a decision on a turn is refused, and return it."""
    logger.warning("a fact of a turn is refused: %s", error)
    return str(error)


def _extract_facts(
    memory: GovernedMemory, turn: Turn, before: Sequence[Turn], rules: TurnRules, user_id: UserId
) -> tuple[Sequence[FactDecision], str]:
    """Return the facts to store, and why some facts are left out; empty if none are."""
    check_text(turn.id, "a turn's id")
    if turn.speaker not in rules.sources:
        return [], f"turns of role {turn.speaker!r} aren't remembered"
    text = turn.text.replace("\x00", "").encode(errors="ignore").decode()
    if not text.strip():
        return [], "it states nothing"
    turn, extractor = replace(turn, text=text), rules.extractor
    near: tuple[MemoryRecord, ...] = ()
    if not isinstance(extractor, RuleExtractor) and _is_private(memory, turn, rules):
        extractor = RuleExtractor()
    by_rules = isinstance(extractor, RuleExtractor)
    if not by_rules:
        near = memory._facts.find_near(text, user_id, **rules.scopes)
        before = [each for each in before if not _is_private(memory, each, rules)]
    is_own = by_rules and rules.sources[turn.speaker] == "chat_user"
    wishes = memory._facts.find_wishes(text, user_id, rules.scopes) if is_own else ()
    context = TurnContext(turn=turn, before=tuple(before), near=near, wishes=wishes, now=memory.clock.now())
    with wrap_errors(ModelError, "extracting facts with the extractor of TurnRules"):
        decisions = list(extractor.extract(context))
    checked, refused = (decisions, "") if by_rules else _check_all(decisions, context, rules.sources[turn.speaker])
    every = [each for each in checked if each.action != "nothing"]
    if not every:
        return [], refused or next((each.reason for each in checked), "it states nothing")
    facts = [each for each in every if len(each.text) <= memory.policy.limits.text][: rules.max_facts]
    too_many = "" if len(facts) == len(every) else f"{len(facts)} of {len(every)} facts: too many, or too long"
    return facts, "; ".join(filter(None, (refused, too_many)))


def _check_all(
    decisions: Sequence[object], context: TurnContext, source: RecordSource
) -> tuple[list[FactDecision], str]:
    """Return the decisions that may be carried out, and why others may not."""
    checked, refused = [], []
    for each in decisions:
        try:
            checked.append(check_decision(each, context, source))
        except RefusedError as error:
            refused.append(_log_refusal(error))
    return checked, "; ".join(refused)
