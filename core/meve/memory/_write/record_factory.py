"""From what somebody says to a record: its class, its life, its tags, all checked before anything is written."""

import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from meve.errors import ValidationError
from meve.memory._classify.tags import Tagger
from meve.memory.policy import CHAT_SOURCES, Policy, PolicyClass, Source
from meve.memory.records import (
    MemoryRecord,
    UserId,
    checked_choice,
    checked_id,
    checked_metadata,
    checked_moment,
    checked_tags,
    checked_text,
)

NAME_LENGTH = 2_000
_ELSEWHERE = {
    "item": "what lies under a key is put by memory.items.put",
    "message": "a message is kept by memory.messages.add",
}


class Classifier(Protocol):
    """Tells which class a memory is of, where the caller doesn't."""

    def classify(self, text: str, source: Source) -> PolicyClass:
        """Its class."""
        ...


class SourceClassifier:
    """By where a memory is from: documents and summaries are factual, turns and results of calls bound to an intent."""

    def classify(self, text: str, source: Source) -> PolicyClass:  # noqa: ARG002
        """Its class."""
        return "factual" if source in ("doc", "summary") else "intent_bound"


def drafted(
    text: str,
    *,
    user_id: UserId | None,
    source: Source,
    policy: Policy,
    now: datetime,
    policy_class: PolicyClass | None = None,
    id: str | None = None,
    session_id: str | None = None,
    tags: Iterable[str] | None = None,
    ttl: timedelta | None = None,
    expires_at: datetime | None = None,
    metadata: Mapping[str, Any] | None = None,
    classifier: Classifier,
    tagger: Tagger,
) -> MemoryRecord:
    """A record that can be stored.

    Raises:
        ValidationError: a text, id, class, tag, life or metadata that can't be; the message names which.
    """
    text = checked_text(text, "text", policy.limits.text)
    source = checked_choice(source, "source", Source)
    if source in _ELSEWHERE:
        raise ValidationError(f"source is {source!r}: {_ELSEWHERE[source]}")
    chosen: PolicyClass = classifier.classify(text, source) if policy_class is None else policy_class
    chosen = checked_choice(chosen, "policy_class", PolicyClass)
    chat = source in CHAT_SOURCES
    return MemoryRecord(
        id=uuid.uuid4().hex if id is None else checked_id(id),
        user_id=user_id,
        text=text,
        source=source,
        policy_class=chosen,
        created_at=now,
        expires_at=end_of_life(policy, chosen, source, now, ttl, expires_at),
        session_id=None if session_id is None else checked_text(session_id, "session_id", NAME_LENGTH),
        tags=checked_tags(tagger.tag(text) if tags is None else tags),
        metadata=checked_metadata(metadata),
        reflection=policy.reflection.chat_start if chat else policy.reflection.start,
    )


def end_of_life(
    policy: Policy,
    policy_class: PolicyClass,
    source: Source,
    now: datetime,
    ttl: timedelta | None = None,
    expires_at: datetime | None = None,
) -> datetime | None:
    """When a memory that is made now expires; None for never.

    Raises:
        ValidationError: both a length and an end, a length that isn't positive, or an end that has passed.
    """
    if ttl is not None and expires_at is not None:
        raise ValidationError("both ttl and expires_at are given: give one of them")
    if expires_at is not None:
        end = checked_moment(expires_at, "expires_at")
        if end <= now:
            raise ValidationError(f"expires_at {end.isoformat()} has passed: it is {now.isoformat()} now")
        return end
    if ttl is not None:
        if not isinstance(ttl, timedelta) or ttl <= timedelta(0):
            raise ValidationError(f"ttl is {ttl!r}: give a timedelta longer than nothing")
        return _after(now, ttl)
    life = policy.rule(policy_class).ttl
    if source in CHAT_SOURCES and policy.chat_ttl is not None:
        life = policy.chat_ttl if life is None else min(life, policy.chat_ttl)
    return None if life is None else _after(now, life)


def _after(now: datetime, life: timedelta) -> datetime | None:
    try:
        return now + life
    except OverflowError:
        return None
