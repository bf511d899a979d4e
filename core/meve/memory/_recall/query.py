"""A question to a memory, checked: whose, of which records, and what its reader has before him already."""

from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from hashlib import blake2b
from threading import Lock
from typing import Any

from meve.components._sentence_splitter import split_sentences
from meve.components.lexical.analyzers import words
from meve.errors import ValidationError
from meve.memory._recall.user_index import Scope
from meve.memory.policy import Policy, PolicyClass, Source
from meve.memory.records import UserId, ago, checked_choice, checked_tags, checked_text, user_key
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.pipeline import check_query
from meve.types import Passage

CANDIDATES = 50
"""Memories that are ranked, the likest."""


class Seen:
    """What texts say, sentence by sentence, as hashes: one that comes again isn't read again, and no text is kept.

    Safe to share between threads.

    Args:
        most: texts that are known, those that came last.
    """

    def __init__(self, most: int = 16_384) -> None:
        self._most = most
        self._known: OrderedDict[bytes, frozenset[int]] = OrderedDict()
        self._guard = Lock()

    def said(self, text: str, name: bytes) -> frozenset[int]:
        """The hashes of a text's sentences.

        Args:
            text: what is said.
            name: its digest.
        """
        with self._guard:
            found = self._known.get(name)
        if found is None:
            found = _said(text)
            with self._guard:
                self._known[name] = found
                while len(self._known) > self._most:
                    self._known.popitem(last=False)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What stands before the reader, and need not be said again."""

    given: frozenset[str] = frozenset()
    """Ids, and texts."""
    said: frozenset[int] = frozenset()
    """The sentences of the texts, as hashes."""
    name: bytes = b""
    """A digest of ids and texts, in any order."""

    @classmethod
    def of(cls, given: Collection[str], seen: Seen | None = None) -> "Shown":
        """Of ids and texts, in any order.

        Raises:
            ValidationError: something else.
        """
        if (
            isinstance(given, str)
            or not isinstance(given, Iterable)
            or not all(isinstance(each, str) for each in given)
        ):
            raise ValidationError(f"without is {given!r:.60}: give a list of ids or texts")
        names = {blake2b(each.encode(errors="surrogatepass"), digest_size=16).digest(): each for each in given}
        seen = seen or Seen()
        return cls(
            given=frozenset(given),
            said=frozenset().union(*(seen.said(each, name) for name, each in names.items())),
            name=blake2b(b"".join(sorted(names))).digest() if names else b"",
        )

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
        shown = self.shown.name  # and not the texts: a recall that is kept would keep them
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
    seen: Seen | None = None,
) -> Asked:
    """What `GovernedMemory.search` was asked, checked against the policy.

    Raises:
        QueryError: a blank question.
        ValidationError: a user, class, source, tag, session, length or text that can't be, or neither yes nor no.
        ConfigurationError: a limit that can't be.
    """
    check_query(query)
    RetrieverConfig(limit=limit, max_tokens=max_tokens)  # refuses what can't be here, and not when it is searched
    for name, value in (("include_private", include_private), ("verify", verify)):
        if not isinstance(value, bool):
            raise ValidationError(f"{name} is {value!r:.40}: give True or False")
    if window is not None and (isinstance(window, bool) or not isinstance(window, int) or window < 0):
        raise ValidationError(f"window is {window!r}: give a number of turns, or None for all")
    scope = Scope(
        now=now,
        classes=_classes(policy, classes, include_private),
        sources=None if sources is None else frozenset(_choices(sources, "sources", Source)),
        tags=None if tags is None else checked_tags(tags),
        session_id=None if session_id is None else checked_text(session_id, "session_id"),
        since=None if within is None else ago(now, within, "within"),
    )
    return Asked(
        text=query,
        user=user_key(user_id),
        user_id=user_id,
        scope=scope,
        limit=limit,
        max_tokens=max_tokens,
        verify=verify,
        shown=Shown.of(without, seen),
        window=window,
    )


def _classes(policy: Policy, classes: Collection[PolicyClass] | None, private: bool) -> frozenset[PolicyClass]:
    every = frozenset(policy.classes) if classes is None else frozenset(_choices(classes, "classes", PolicyClass))
    return every if private else frozenset(name for name in every if not policy.rule(name).on_request)


def _choices(values: Collection[Any], name: str, kind: Any) -> list[Any]:  # noqa: ANN401
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValidationError(f"{name} are {values!r}: give a list")
    return [checked_choice(value, name, kind) for value in values]


def _said(text: str) -> frozenset[int]:
    spoken = (tuple(words(sentence)) for line in text.splitlines() for sentence in split_sentences(line))
    return frozenset(hash(each) for each in spoken if each)


def _plain(value: object) -> object:
    return tuple(sorted(map(str, value))) if isinstance(value, set | frozenset | list | tuple) else value
