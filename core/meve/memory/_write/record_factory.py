"""New records from what a caller adds: class, expiry and tags are chosen, every value is checked."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol, TypedDict, Unpack

from meve.errors import ValidationError
from meve.memory._classify.tags import Tagger
from meve.memory._expiry import expiry_of
from meve.memory._timestamps import check_past
from meve.memory.policy import CHAT_SOURCES, Policy, PolicyClass, RecordSource
from meve.memory.records import (
    MemoryRecord,
    UserId,
    check_choice,
    check_id,
    check_keywords,
    check_metadata,
    check_tags,
    check_text,
    kind_of,
)

NAME_LENGTH = 2_000
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
    tags: Iterable[str] | None
    """Topics; None lets the tagger choose."""
    ttl: timedelta | None
    """Its lifetime; None for the policy's, which is unlimited for facts that a user states."""
    expires_at: datetime | None
    """When it expires, instead of `ttl`."""
    valid_from: datetime | None
    """From when on it holds; None for now."""
    metadata: Mapping[str, Any] | None
    """JSON-plain values of your own."""


class Classifier(Protocol):
    """Chooses the class of a record that is added without one."""

    def classify(self, text: str, source: RecordSource) -> PolicyClass:
        """Return the class."""
        ...


@dataclass(frozen=True, slots=True)
class SourceClassifier:
    """Chooses `factual` for documents and summaries, `intent_bound` for assistants' turns and results of calls."""

    user_class: PolicyClass = "factual"
    """The class of what a user says."""

    def classify(self, text: str, source: RecordSource) -> PolicyClass:  # noqa: ARG002
        """Return the class."""
        if source == "chat_user":
            return self.user_class
        return "factual" if source in ("doc", "summary") else "intent_bound"


def make_record(
    text: str,
    *,
    user_id: UserId | None,
    policy: Policy,
    now: datetime,
    classifier: Classifier,
    tagger: Tagger,
    **options: Unpack[RecordOptions],
) -> MemoryRecord:
    """Return a checked record with its class, expiry and tags."""
    check_keywords(options, RecordOptions, "add")
    text = check_text(text, "text", policy.limits.text)
    source: RecordSource = check_choice(options.get("source", "chat_user"), "source", RecordSource)
    if source in _OTHER_METHODS:
        raise ValidationError(f"source {source!r} can't be added here: call {_OTHER_METHODS[source]}")
    policy_class = options.get("policy_class")
    chosen: PolicyClass = classifier.classify(text, source) if policy_class is None else policy_class
    chosen = check_choice(chosen, "policy_class", PolicyClass)
    record_id, session_id = options.get("id"), options.get("session_id")
    tags, metadata = options.get("tags"), options.get("metadata")
    valid_from = options.get("valid_from")
    return MemoryRecord(
        id=uuid.uuid4().hex if record_id is None else check_id(record_id),
        kind=kind_of(source),
        user_id=user_id,
        text=text,
        source=source,
        policy_class=chosen,
        created_at=now,
        expires_at=expiry_of(policy, chosen, source, now, options.get("ttl"), options.get("expires_at")),
        valid_from=now if valid_from is None else check_past(valid_from, "valid_from", now),
        session_id=None if session_id is None else check_text(session_id, "session_id", NAME_LENGTH),
        tags=check_tags(tagger.tag(text) if tags is None else tags),
        metadata={} if metadata is None else check_metadata(metadata),
        reflection=policy.reflection.chat_start if source in CHAT_SOURCES else policy.reflection.start,
    )
