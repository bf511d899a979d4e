"""New records from what a caller adds: class, expiry and tags are chosen, every value is checked."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol, TypedDict, Unpack

from meve.errors import PolicyError, ValidationError
from meve.memory._classify.standing_wishes import is_standing_wish
from meve.memory._classify.tags import Tagger
from meve.memory._expiry import expiry_of, has_passed
from meve.memory._timestamps import check_past
from meve.memory.policy import CHAT_SOURCES, Policy, PolicyClass, RecordSource
from meve.memory.records import (
    NAME_LENGTH,
    SCOPES,
    MemoryRecord,
    UserId,
    check_choice,
    check_flag,
    check_id,
    check_metadata,
    check_scopes,
    check_tags,
    check_text,
    kind_of,
)
from meve.pipeline.config import check_option_names

_OTHER_METHODS = {"item": "memory.items.put", "message": "memory.messages.add"}
"""The methods that write records of other kinds."""


class RecordOptions(TypedDict, total=False):
    """The options of `GovernedMemory.add`."""

    source: RecordSource
    """The origin of the text; `chat_user` by default, `doc` for a shared record."""
    policy_class: PolicyClass | None
    """The class that governs it; None lets the classifier choose. `canonical` by default for a shared record."""
    id: str | None
    """Unique among the user's records; None for a new one."""
    session_id: str | None
    """The conversation that it is from."""
    agent_id: str | None
    """The agent that it belongs to, kept in metadata; `search` filters by it."""
    run_id: str | None
    """The run that it belongs to, kept in metadata; `search` filters by it."""
    tags: Iterable[str] | None
    """Topics; None lets the tagger choose."""
    ttl: timedelta | None
    """Its lifetime; None for the policy's, which is unlimited for facts that a user states."""
    expires_at: datetime | None
    """When it expires, instead of `ttl`."""
    created_at: datetime | None
    """When it was told, if that was earlier than now: its day, its age and its life count from then."""
    valid_from: datetime | None
    """The moment from which it holds; None for the moment when it was told."""
    metadata: Mapping[str, Any] | None
    """JSON-plain values of your own."""
    pinned: bool
    """Whether it stands in every prompt; only for what the user said himself. False by default."""


class Classifier(Protocol):
    """Chooses the class of a record that is added without one."""

    def classify(self, text: str, source: RecordSource) -> PolicyClass:
        """Return the class."""
        ...


@dataclass(frozen=True, slots=True)
class SourceClassifier:
    """Chooses `factual` for documents and summaries, `intent_bound` for assistants' turns and results of calls.

    A user's standing wish to the assistant, such as `Always answer in German.`, becomes an `instruction`.
    """

    user_class: PolicyClass = "factual"
    """The class of what a user says otherwise."""

    def classify(self, text: str, source: RecordSource) -> PolicyClass:
        """Return the class."""
        if source == "chat_user" and is_standing_wish(text):
            return "instruction"
        return _class_of_source(source, self.user_class)


def _class_of_source(source: RecordSource, user_class: PolicyClass) -> PolicyClass:
    if source == "chat_user":
        return user_class
    return "factual" if source in ("doc", "summary") else "intent_bound"


def make_record(
    text: str,
    *,
    user_id: UserId | None,
    policy: Policy,
    now: datetime,
    classifier: Classifier,
    tagger: Tagger,
    may_instruct: bool = True,
    **options: Unpack[RecordOptions],
) -> MemoryRecord:
    """Return a checked record with its class, expiry and tags.

    The classifier can make an instruction only of what the user said (`source`), and only if `may_instruct` is true.
    """
    check_option_names(options, RecordOptions.__annotations__, "add")
    text = check_text(text, "text", policy.limits.text)
    source: RecordSource = check_choice(options.get("source", "chat_user"), "source", RecordSource)
    if source in _OTHER_METHODS:
        raise ValidationError(f"source {source!r} can't be added here: call {_OTHER_METHODS[source]}")
    policy_class = options.get("policy_class")
    chosen: PolicyClass = classifier.classify(text, source) if policy_class is None else policy_class
    chosen = check_choice(chosen, "policy_class", PolicyClass)
    if policy_class is None and chosen == "instruction" and not (source == "chat_user" and may_instruct):
        chosen = _class_of_source(source, policy.user_class)
    record_id, session_id = options.get("id"), options.get("session_id")
    tags, metadata = options.get("tags"), options.get("metadata")
    created_at, valid_from = options.get("created_at"), options.get("valid_from")
    told = now if created_at is None else check_past(created_at, "created_at", now)
    expires_at = expiry_of(policy, chosen, source, told, options.get("ttl"), options.get("expires_at"))
    if has_passed(expires_at, now):
        raise PolicyError(f"told at {told.isoformat()}, it would have expired at {expires_at}, before now")
    return MemoryRecord(
        id=uuid.uuid4().hex if record_id is None else check_id(record_id),
        kind=kind_of(source),
        user_id=user_id,
        text=text,
        source=source,
        policy_class=chosen,
        created_at=told,
        expires_at=expires_at,
        valid_from=told if valid_from is None else check_past(valid_from, "valid_from", now),
        session_id=None if session_id is None else check_text(session_id, "session_id", NAME_LENGTH),
        tags=check_tags(tagger.tag(text) if tags is None else tags),
        metadata=_with_scopes({} if metadata is None else check_metadata(metadata), check_scopes(options)),
        pinned=check_flag(options.get("pinned", False), "pinned"),
        reflection=policy.reflection.chat_start if source in CHAT_SOURCES else policy.reflection.start,
    )


def _with_scopes(metadata: dict[str, Any], scopes: Mapping[str, str]) -> dict[str, Any]:
    for name in scopes.keys() & metadata.keys():
        raise ValidationError(f"give {name} once, got it as {name} and in metadata")
    return {**metadata, **scopes}


def keep_scopes(former: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return new metadata with the agent and the run of the former, unless it names others; None removes one.

    >>> keep_scopes({"agent_id": "cook", "run_id": "r1", "floor": 1}, {"floor": 2, "run_id": None})
    {'agent_id': 'cook', 'floor': 2}
    """
    kept = {name: former[name] for name in SCOPES if name in former}
    return {name: each for name, each in {**kept, **metadata}.items() if name not in SCOPES or each is not None}


def inherit_metadata(former: Mapping[str, Any], options: RecordOptions) -> dict[str, Any]:
    """Return the metadata of a record that is written in place of one with the former, without given scopes."""
    given = options.get("metadata")
    own = {} if given is None else check_metadata(given)
    metadata = former if given is None else keep_scopes(former, own)
    replaced = {name for name in check_scopes(options) if name not in own}
    return {name: each for name, each in metadata.items() if name not in replaced}
