"""A question to a memory, checked: whose, of which records, and what its reader has before him already."""

from collections.abc import Collection
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any

from meve.errors import ValidationError
from meve.memory.policy import Policy, PolicyClass, Source
from meve.memory.records import UserId, checked_choice, checked_tags, user_key
from meve.memory.shelf import Scope
from meve.parts.lexical.analyzers import words
from meve.parts.sentences import sentences
from meve.types import Passage

CANDIDATES = 50
"""Memories that are ranked, the likest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What stands before the reader, and need not be said again."""

    given: frozenset[str] = frozenset()
    """Ids, and texts."""
    said: frozenset[tuple[str, ...]] = frozenset()
    """The sentences of the texts, as words."""

    @classmethod
    def of(cls, given: Collection[str]) -> "Shown":
        """Of ids and texts, in any order.

        Raises:
            ValidationError: something else.
        """
        if isinstance(given, str) or not all(isinstance(each, str) for each in given):
            raise ValidationError(f"without is {given!r:.60}: give a list of ids or texts")
        return cls(given=frozenset(given), said=frozenset(s for each in given for s in _said(each)))

    def holds(self, passage: Passage) -> bool:
        """Whether a memory's id is among them, or all of its sentences are.

        >>> Shown.of(["Hello. I eat no meat!"]).holds(Passage(id="diet", text="I eat no meat."))
        True
        """
        if not self.given:
            return False
        return passage.id in self.given or (bool(own := _said(passage.text)) and own <= self.said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question to one user's memory."""

    text: str
    user: str
    """The user's key."""
    user_id: UserId
    scope: Scope
    limit: int | None
    max_tokens: int
    verify: bool
    shown: Shown = field(default=Shown())
    window: int | None = None
    """How many turns around one that names something are recalled of conversations; None for all turns."""
    candidates: int = CANDIDATES

    @property
    def key(self) -> tuple[Any, ...]:
        """What two questions must share to have one answer; of the moment the day, since scores fade by days."""
        scope = tuple(_plain(getattr(self.scope, f.name)) for f in fields(self.scope) if f.name != "now")
        day = self.scope.now.toordinal()
        shown = self.shown.given
        return (
            self.user,
            self.text,
            scope,
            self.limit,
            self.max_tokens,
            self.verify,
            shown,
            self.window,
            self.candidates,
            day,
        )


def asked(
    policy: Policy,
    now: datetime,
    query: str,
    user_id: UserId,
    *,
    tags: Collection[str] | None = None,
    classes: Collection[PolicyClass] | None = None,
    sources: Collection[Source] | None = None,
    session_id: str | None = None,
    within: timedelta | None = None,
    include_private: bool = False,
    verify: bool = False,
    without: Collection[str] = (),
    window: int | None = None,
    limit: int | None = None,
    max_tokens: int = 1_000_000,
) -> Asked:
    """What `GovernedMemory.search` was asked, checked against the policy.

    Raises:
        ValidationError: a user, class, source, tag or text that can't be.
    """
    if window is not None and (isinstance(window, bool) or not isinstance(window, int) or window < 0):
        raise ValidationError(f"window is {window!r}: give a number of turns, or None for all")
    scope = Scope(
        now=now,
        classes=_classes(policy, classes, include_private),
        sources=None if sources is None else frozenset(_choices(sources, "sources", Source)),
        tags=None if tags is None else checked_tags(tags),
        session_id=session_id,
        since=None if within is None else now - within,
    )
    return Asked(
        text=query,
        user=user_key(user_id),
        user_id=user_id,
        scope=scope,
        limit=limit,
        max_tokens=max_tokens,
        verify=verify,
        shown=Shown.of(without),
        window=window,
    )


def _classes(policy: Policy, classes: Collection[PolicyClass] | None, private: bool) -> frozenset[PolicyClass]:
    every = frozenset(policy.classes) if classes is None else frozenset(_choices(classes, "classes", PolicyClass))
    return every if private else frozenset(name for name in every if not policy.rule(name).on_request)


def _choices(values: Collection[Any], name: str, kind: Any) -> list[Any]:  # noqa: ANN401
    if isinstance(values, str):
        raise ValidationError(f"{name} are {values!r}: give a list")
    return [checked_choice(value, name, kind) for value in values]


def _said(text: str) -> set[tuple[str, ...]]:
    return {said for sentence in sentences(text) if (said := tuple(words(sentence)))}


def _plain(value: object) -> object:
    return tuple(sorted(map(str, value))) if isinstance(value, set | frozenset | list | tuple) else value
