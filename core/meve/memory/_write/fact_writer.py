"""Writes the decisions of extractors: checks each one, adds a fact once, and closes what it replaces."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeAlias

from meve._repeating import repeat_rolled_back
from meve.components.lexical.analyzers import words
from meve.errors import PolicyError, QueryError, ValidationError
from meve.memory._audit.chain import EventDraft
from meve.memory._classify.wish_endings import may_end_wish
from meve.memory._contradiction.claims import have_equal_words
from meve.memory._contradiction.statements import parse_statement, parse_values
from meve.memory._contradiction.wishes import wish_otherwise
from meve.memory._expiry import expiry_of
from meve.memory._maintenance.deduplication import expiry_or_max, may_close, may_replace
from meve.memory._recall.query import make_query
from meve.memory._recall.searcher import Searcher
from meve.memory._runtime import MemoryRuntime
from meve.memory._write.extraction import FactDecision, TurnContext
from meve.memory._write.provenance import find_origins
from meve.memory._write.relative_days import resolve_days
from meve.memory._write.writer import RecordWriter
from meve.memory.policy import PolicyClass, RecordSource
from meve.memory.records import SCOPES, MemoryRecord, UserId, user_key, validity
from meve.memory.stores._record_transaction import RecordTransaction
from meve.memory.stores.protocol import EventQuery
from meve.pipeline._retrieval_report import UNLIMITED

NEAR = 8
"""Memories that an extractor sees, and that a new fact is compared with."""
CLASSES: tuple[PolicyClass, ...] = ("factual", "intent_bound", "ephemeral", "private")
"""Classes that an extractor may choose; the others need the user's or the operator's word."""

Scopes: TypeAlias = Mapping[str, Any]
"""The agent and the run, where they are known."""
_ERASING = frozenset({"text", "metadata"})
"""The fields whose former values an update erases."""


class RefusedError(ValidationError):
    """A decision that isn't carried out."""


@dataclass(frozen=True, slots=True)
class FactWriter:
    """Writes facts of turns. Each change and its entries in the audit log are one transaction."""

    runtime: MemoryRuntime
    writer: RecordWriter
    searcher: Searcher

    def find_near(self, text: str, user_id: UserId, **search: Any) -> tuple[MemoryRecord, ...]:  # noqa: ANN401
        """Return the user's facts that are nearest to a text, without logging it. `search` filters them."""
        runtime = self.runtime
        options = {**search, "limit": NEAR, "max_tokens": UNLIMITED}
        try:
            query = make_query(text, user_id, policy=runtime.policy, now=runtime.clock.now(), **options)
            records = self.searcher.look(query).records
        except QueryError:  # longer than the embedder's window
            return ()
        return tuple(record for record in records if record.user_id is not None and record.kind == "fact")

    def find_wishes(self, text: str, user_id: UserId, scopes: Scopes) -> tuple[str, ...]:
        """Return the user's standing wishes that a text may take back, the oldest first, without logging it."""
        if not may_end_wish(text):
            return ()
        return tuple(record.text for record in self._find_instructions(user_id, scopes))

    def _find_instructions(self, user_id: UserId, scopes: Scopes) -> list[MemoryRecord]:
        query = make_query("?", user_id, policy=self.runtime.policy, now=self.runtime.clock.now(), **scopes)
        return [each for each in self.searcher.find_standing(query) if each.policy_class == "instruction"]

    def write(
        self,
        decision: FactDecision,
        user_id: UserId,
        *,
        record_id: str,
        source: RecordSource,
        policy_class: PolicyClass | None,
        session_id: str | None,
        reason: str,
        scopes: Scopes,
        created_at: datetime | None = None,
        add: Callable[..., MemoryRecord] | None = None,
        check: Callable[[RecordTransaction], None] | None = None,
    ) -> MemoryRecord | str:
        """Write a checked decision, and return the new record, or the id of a memory that says the same.

        Args:
            decision: an `add`, `update` or `supersede`.
            user_id: the owner.
            record_id: the id of a new record.
            source: the role's source.
            policy_class: its class; None lets the classifier choose.
            session_id: the conversation.
            reason: for the audit log.
            scopes: the agent and the run of the record, where they are known.
            created_at: when it was told; None for now.
            add: `GovernedMemory.add`, which writes an `add` without a check.
            check: called in the transaction; may raise to write nothing.

        Raises:
            RefusedError: the memory to replace can't be replaced.
            DuplicateIdError, PolicyError, ModelError, StorageError: as for `GovernedMemory.add`.
        """
        user = user_key(user_id)
        known = None
        if decision.action == "add":
            known = self._find_same(decision.text, user_id, source, policy_class, scopes, created_at)
        if known is not None and self._confirm(user, known, record_id, created_at, check):
            return known.id
        options: dict[str, Any] = {
            "id": record_id, "source": source, "session_id": session_id, "policy_class": policy_class,
            "created_at": created_at, **scopes,
        }  # fmt: skip
        if add is not None and check is None and decision.action == "add":
            return add(decision.text, user_id=user_id, reason=reason, **options)
        old = None if decision.action == "add" or decision.id is None else self.runtime.store.find(user, decision.id)
        if old is not None and old.record.tags:
            options["tags"] = [*old.record.tags, *self.runtime.tagger.tag(decision.text)]
        if old is not None and decision.action == "update":
            since = validity(old.record)[0]
            options["valid_from"] = since if created_at is None else min(since, created_at)
            options["derived_from"] = [decision.id]

        def finish(transaction: RecordTransaction, record: MemoryRecord) -> None:
            if check is not None:
                check(transaction)
            if decision.action in ("update", "supersede"):
                self._close(transaction, user, decision, record)

        return self.writer.add(user, user_id, decision.text, reason, also=finish, **options)

    def is_private(self, text: str, source: RecordSource, policy_class: PolicyClass) -> bool:
        """Return whether a text is kept from models: its class is private, or the gate makes it so or refuses it."""
        try:
            policy_class, _ = self.runtime.gate.admit(text, source, policy_class)
        except PolicyError:
            return True
        return self.runtime.policy.rule(policy_class).on_request

    def refuse_after_erasure(self, user: str) -> Callable[[RecordTransaction], None]:
        """Return a check that raises RefusedError if a text of the user was erased or expired since this call."""
        seen = self.runtime.store.head().seq
        query = EventQuery(user=user, actions=("delete", "expire", "prune", "update"))

        def check(transaction: RecordTransaction) -> None:
            later = [e for e in transaction.entries(self.runtime.chain, query) if e.seq > seen]
            if any(e.action != "update" or _ERASING & set(json.loads(e.detail).get("changed", ())) for e in later):
                raise RefusedError("records of the user were erased since the turn")

        return check

    @repeat_rolled_back
    def note(self, user: str, name: str, reason: str, check: Callable[[RecordTransaction], None]) -> None:
        """Add an entry without a record to the audit log, under an id of a turn."""
        with self.runtime.store.writing(durable=False) as transaction:
            check(transaction)
            now = self.runtime.clock.now()
            transaction.log(EventDraft(at=now, user=user, record=name, action="use", reason=reason))

    def _find_same(
        self,
        text: str,
        user_id: UserId,
        source: RecordSource,
        policy_class: PolicyClass | None,
        scopes: Scopes,
        created_at: datetime | None,
    ) -> MemoryRecord | None:
        """Return a memory of this source and scope with equal words and values, unless a newer one contradicts it.

        One that holds only since later than the telling isn't the same: the text says that it held before, too.

        A wish that was only quoted before doesn't keep one that the user states from becoming an instruction.
        """
        said = parse_statement(text).claim
        near = self.find_near(text, user_id, include_private=True, **scopes)
        if any(not _is_of(scopes, record.metadata) for record in near):  # of equal memories, a search shows only one
            near = self.find_near(text, user_id, include_private=True, where=partial(_is_of, scopes))
        if created_at is not None:
            near = tuple(record for record in near if validity(record)[0] <= created_at)
        for record in near:
            if policy_class is not None and (record.policy_class == "instruction") != (policy_class == "instruction"):
                continue
            if record.source != source or record.flagged:
                continue
            if have_equal_words(parse_statement(record.text).claim, said):
                later = (each for each in near if validity(each)[0] > validity(record)[0])
                differs = self.runtime.contradiction.find_difference
                is_over = self._is_ended(record, user_id, scopes) or any(differs(each.text, text) for each in later)
                return None if is_over else record
        return None

    def _is_ended(self, record: MemoryRecord, user_id: UserId, scopes: Scopes) -> bool:
        """Return whether a standing wish has a later one that ends it, which maintenance hasn't compared yet."""
        if record.policy_class != "instruction":
            return False
        wish, since = parse_statement(record.text), validity(record)[0]
        later = [each for each in self._find_instructions(user_id, scopes) if validity(each)[0] > since]
        return any(wish_otherwise(wish, parse_statement(each.text)) for each in later)

    @repeat_rolled_back
    def _confirm(
        self,
        user: str,
        known: MemoryRecord,
        said: str,
        created_at: datetime | None,
        check: Callable[[RecordTransaction], None] | None,
    ) -> bool:
        """Let a memory that was said again live as long as a new one. Return whether it still says the same."""
        runtime, now = self.runtime, self.runtime.clock.now()
        with runtime.store.writing() as transaction:
            if check is not None:
                check(transaction)
            stored = transaction.find(user, known.id)
            if stored is None or stored.record.text != known.text or stored.record.is_closed:
                return False
            record = stored.record
            if record.expired(now) or record.archived or find_origins(transaction, user, record):
                return False
            again = expiry_of(runtime.policy, record.policy_class, record.source, created_at or now)
            if not record.hold and _later(again, record.expires_at) != record.expires_at:
                record = replace(record, expires_at=again, version=record.version + 1)
                transaction.replace(user, replace(stored, record=record))
            transaction.log(runtime.event(user, record, "update", "said again", now, evidence={"by": said}))
            draft = EventDraft(at=now, user=user, record=said, action="use", reason=f"{record.id} says the same")
            transaction.log(draft._replace(detail={"evidence": {"by": record.id}}))
        return True

    def _close(self, transaction: RecordTransaction, user: str, decision: FactDecision, by: MemoryRecord) -> None:
        """Close the memory that a decision replaces, unless it lives longer or was told later: then both stay."""
        runtime, now = self.runtime, self.runtime.clock.now()
        stored = None if decision.id is None else transaction.find(user, decision.id)
        if stored is None or stored.record.expired(now) or stored.record.is_closed or stored.record.kind != "fact":
            raise RefusedError("the memory to replace is gone, or is no fact that holds")
        lasting, policy = replace(by, expires_at=None), runtime.policy
        if not (may_replace(stored.record, by, policy) and may_close(stored.record, lasting, policy)):
            raise RefusedError(
                "the memory to replace is on hold, pinned, of a class that is never replaced or of a source that "
                "weighs more, or has other metadata or privacy"
            )
        if expiry_or_max(by) < expiry_or_max(stored.record) or by.created_at < validity(stored.record)[0]:
            return
        why = f"{'said with more' if decision.action == 'update' else 'contradicted'} by {by.id}"
        closed = replace(
            stored.record, valid_to=by.created_at, superseded_by=by.id, flagged=why, version=stored.record.version + 1
        )
        transaction.replace(user, replace(stored, record=closed))
        reason = f"{by.id} {'says the same and more' if decision.action == 'update' else 'replaces it'}"
        event = runtime.event(
            user, closed, "merge" if decision.action == "update" else "supersede", reason, now,
            rule="extraction", evidence={"by": by.id}, inverse="restore",
        )  # fmt: skip
        transaction.log(event)


def check_decision(decision: object, context: TurnContext, source: RecordSource) -> FactDecision:
    """Return a decision that may be carried out.

    Raises:
        RefusedError: it is of another form, names a memory that the extractor wasn't shown or a class that it may not
            choose, or tells a number, a day, a name or a denial that neither the turn, nor what came before, nor the
            memory to replace holds. The message holds no text of a memory or a turn.
    """
    if not isinstance(decision, FactDecision) or decision.action not in ("add", "update", "supersede", "nothing"):
        given = "another action" if isinstance(decision, FactDecision) else f"a {type(decision).__name__}"
        raise RefusedError(
            f"a decision must be a FactDecision with the action add, update, supersede or nothing, got {given}"
        )
    if decision.action == "nothing":
        return decision
    if not isinstance(decision.text, str) or not decision.text.strip():
        raise RefusedError(f"{decision.action} needs a text")
    target = next((record for record in context.near if record.id == decision.id), None)
    if decision.action != "add" and target is None:
        raise RefusedError(f"{decision.action} names a memory that isn't near the turn")
    if decision.policy_class is not None and decision.policy_class not in CLASSES:
        raise RefusedError(f"policy_class must be one of {', '.join(CLASSES)}")
    sources = [context.turn.text, *(turn.text for turn in context.before)]
    sources += [target.text] if target is not None and target.source == source else []
    invented = _find_invented(decision.text, [*sources, *(resolve_days(each, context.spoken) for each in sources)])
    if invented:
        raise RefusedError(f"the text tells a {invented} that neither the turn nor what came before holds")
    return decision


def check_class(chosen: PolicyClass, role: PolicyClass) -> None:
    """Check that an extractor chose the class of a turn's role, a shorter one, or `private`.

    Raises:
        RefusedError: it didn't.
    """
    lasting: tuple[PolicyClass, ...] = ("ephemeral", "intent_bound", "factual")
    if chosen not in ("private", *lasting[: lasting.index(role) + 1 if role in lasting else 0]):
        raise RefusedError(f"policy_class {chosen!r} must not live longer, or be shown more, than the turn's {role!r}")


def _find_invented(text: str, sources: Sequence[str]) -> str:
    """Return what kind of value of a text none of the sources holds; empty for none."""
    told, known = parse_values(text), [parse_values(each) for each in sources]
    spoken = {word for each in sources for word in words(each)}
    if told.numbers - {n for each in known for n in each.numbers} - spoken:
        return "number"
    if told.days - {day for each in known for day in each.days} - spoken:
        return "day"
    if any(not set(words(name)) <= spoken for name in told.names if name not in _USER):
        return "name"
    return "denial" if told.negated and not any(each.negated for each in known) else ""


_USER = frozenset({"user", "user's"})


def _is_of(scopes: Scopes, metadata: Mapping[str, Any]) -> bool:
    """Return whether metadata are of this agent and this run, or of none if they aren't known."""
    return all(metadata.get(name) == scopes.get(name) for name in SCOPES)


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return None if one is None or other is None else max(one, other, key=lambda moment: moment.astimezone(UTC))
