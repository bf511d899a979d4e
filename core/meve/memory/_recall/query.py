"""A query to a memory: the checked options of `GovernedMemory.search`, and the content that the reader has seen."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from hashlib import blake2b
from operator import attrgetter
from typing import Any, TypedDict, Unpack

from cachetools import LRUCache, cachedmethod

from meve._fork_safety import ForkSafeLock
from meve.components._sentence_splitter import split_sentences
from meve.components.lexical.analyzers import words
from meve.errors import ValidationError, show
from meve.filters import Filter, Where, call_filter, check_where
from meve.memory._recall.time_expressions import TimeWindow, find_time
from meve.memory._recall.user_index import Predicate, Scope
from meve.memory._timestamps import ago, check_moment, check_past, check_time_zone
from meve.memory.policy import Policy, PolicyClass, RecordSource
from meve.memory.records import (
    UserId,
    check_choice,
    check_count,
    check_scopes,
    check_tags,
    check_text,
    user_key,
)
from meve.pipeline.config import RetrieverConfig, check_option_names
from meve.pipeline.query_check import check_query
from meve.types import Passage

CANDIDATES = 50
"""The number of memories that are ranked."""
SENTENCE_CACHE = 16_384
"""The number of texts whose sentences are cached."""


class SearchOptions(TypedDict, total=False):
    """The options of `GovernedMemory.search`. None sets no condition."""

    tags: Collection[str] | None
    """Any of these; None sets no condition. Since a tag may be wrong, other memories are returned if they outrank every
    tagged one, but with `require_tags`."""
    require_tags: bool
    """Whether only memories with one of `tags` may be returned; False by default."""
    classes: Collection[PolicyClass] | None
    """Any of these policy classes."""
    sources: Collection[RecordSource] | None
    """Any of these sources."""
    session_id: str | None
    """Only memories of this conversation."""
    agent_id: str | None
    """Only memories that were added with this agent's id."""
    run_id: str | None
    """Only memories that were added with this run's id."""
    where: Where | None
    """Metadata that a memory must have, as for a `Retriever`: `{"project": "oak"}`, `{"project": ["oak", "elm"]}`, or
    a function of the metadata."""
    since: datetime | None
    """Only memories told at this moment or later; it needs a time zone. Without `since` and `until`, a time in the
    question, such as `last week`, only ranks memories added then higher."""
    until: datetime | None
    """Only memories added before this moment; it needs a time zone."""
    within: timedelta | None
    """Only memories told at most this long ago; not with `since`."""
    include_superseded: bool
    """Whether memories that another one replaced may be returned, archived or not; False by default."""
    as_of: datetime | None
    """Only memories that held at this moment, replaced or archived since or not."""
    include_private: bool
    """Whether private memories may be returned; False by default."""
    verify: bool
    """Whether a verifier must let a memory through; False by default."""
    without: Collection[str]
    """Content that the reader has seen: ids of memories, or texts. A memory is left out, and the trace says so, if the
    texts contain all its sentences."""
    window: int | None
    """The number of turns to return before and after a turn that names something; None returns all turns."""
    limit: int | None
    """The maximum number of memories, 10 by default; None for as many as fit."""
    max_tokens: int
    """The token budget of the text, 512 by default."""
    time_zone: str | None
    """The IANA name of the user's time zone, such as `Europe/Prague`. Days of the text, and times in the question such
    as `yesterday`, are of this zone; None for UTC."""


class SentenceHashes:
    """A cache of the hashes of texts' sentences, by digest, so that it holds no text. Safe to share between threads."""

    def __init__(self) -> None:
        self._hashes: LRUCache[bytes, frozenset[int]] = LRUCache(SENTENCE_CACHE)
        self._lock = ForkSafeLock(self._reset)

    @cachedmethod(attrgetter("_hashes"), key=lambda _, text: _digest(text), lock=attrgetter("_lock"))
    def find(self, text: str) -> frozenset[int]:
        """Return the hashes of a text's sentences."""
        return _sentence_hashes(text)

    def _reset(self) -> None:
        self._hashes = LRUCache(SENTENCE_CACHE)

    def clear(self) -> None:
        """Drop all hashes."""
        with self._lock:
            self._hashes.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenContent:
    """Content that the reader has seen, and that memories need not repeat."""

    given: frozenset[str] = frozenset()
    """Ids, and texts."""
    sentences: frozenset[int] = frozenset()
    """Hashes of the texts' sentences."""
    digest: bytes = b""
    """A digest of ids and texts, in any order."""

    @classmethod
    def of(cls, given: Collection[str], cache: SentenceHashes) -> "SeenContent":
        """Return the content of these ids and texts, in any order."""
        if (
            isinstance(given, str)
            or not isinstance(given, Iterable)
            or not all(isinstance(each, str) for each in given)
        ):
            raise ValidationError(f"without must be a list of ids or texts, got {show(given, 60)}")
        digests = sorted({_digest(each) for each in given})
        return cls(
            given=frozenset(given),
            sentences=frozenset().union(*map(cache.find, given)),
            digest=blake2b(b"".join(digests)).digest() if digests else b"",
        )

    def contains(self, passage: Passage) -> bool:
        """Return whether a memory's id was given, or the texts contain all of its sentences.

        >>> seen = SeenContent.of(["Hello. I eat no meat!"], SentenceHashes())
        >>> seen.contains(Passage(id="diet", text="I eat no meat."))
        True
        """
        if not self.given:
            return False
        return passage.id in self.given or (bool(own := _sentence_hashes(passage.text)) and own <= self.sentences)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryQuery:
    """A checked query to one user's memory."""

    text: str
    user: str
    """The user's key."""
    user_id: UserId
    scope: Scope
    limit: int | None
    max_tokens: int
    verify: bool
    seen: SeenContent = field(default=SeenContent())
    window: int | None = None
    """The number of turns to return around one that names something; None for all turns."""
    time: TimeWindow | None = None
    """The time that the question names."""
    zone: tzinfo = UTC
    """The time zone of the days in the text."""
    standing_classes: frozenset[PolicyClass] = frozenset()
    """The classes of memories that may stand in the prompt."""
    scopes: tuple[tuple[str, str], ...] = ()
    """The agent and the run that were given, by name."""
    candidates: int = CANDIDATES

    @property
    def standing(self) -> Scope:
        """The filter of memories that stand in the prompt: those of other agents and runs don't."""

        def is_of_same_scopes(metadata: Mapping[str, Any]) -> bool:
            return all(metadata.get(name, value) == value for name, value in self.scopes)

        return Scope(now=self.scope.now, classes=self.standing_classes, where=is_of_same_scopes)

    @property
    def cache_key(self) -> tuple[Any, ...]:
        """The key of the recall cache, the user first. Uses the date because scores decay daily."""
        scope = tuple(_hashable(getattr(self.scope, f.name)) for f in fields(self.scope) if f.name != "now")
        names = ("user", "text", "limit", "max_tokens", "verify", "window", "time", "zone", "candidates")
        seen = self.seen.digest  # and not the texts: a cached recall would keep them
        standing = (self.standing_classes, self.scopes)
        return (*(getattr(self, name) for name in names), seen, scope, standing, self.scope.now.toordinal())


def make_query(
    query: str,
    user_id: UserId,
    *,
    policy: Policy,
    now: datetime,
    cache: SentenceHashes | None = None,
    **options: Unpack[SearchOptions],
) -> MemoryQuery:
    """Check a query and its options against a policy. Raise what `GovernedMemory.search` raises."""
    check_option_names(options, SearchOptions.__annotations__, "search")
    check_query(query)
    limits = _check_limits(options.get("limit", 10), options.get("max_tokens", 512))
    for name in ("include_private", "include_superseded", "require_tags", "verify"):
        if not isinstance(options.get(name, False), bool):
            raise ValidationError(f"{name} must be True or False, got {show(options.get(name), 40)}")
    window = options.get("window")
    sources, tags, require_tags = options.get("sources"), options.get("tags"), options.get("require_tags", False)
    if require_tags and tags is None:
        raise ValidationError("require_tags needs tags, got none: give tags, or leave require_tags out")
    session_id, as_of = options.get("session_id"), options.get("as_of")
    since, until = _period(options, now)
    zone = check_time_zone(options.get("time_zone"))
    scope = Scope(
        now=now,
        classes=_classes(policy, options.get("classes"), options.get("include_private", False)),
        sources=None if sources is None else frozenset(_choices(sources, "sources", RecordSource)),
        tags=None if tags is None else check_tags(tags),
        require_tags=require_tags,
        session_id=None if session_id is None else check_text(session_id, "session_id"),
        since=since,
        until=until,
        where=_metadata_filter(options),
        include_superseded=options.get("include_superseded", False),
        as_of=None if as_of is None else check_past(as_of, "as_of", now),
    )
    return MemoryQuery(
        text=query,
        user=user_key(user_id),
        user_id=user_id,
        scope=scope,
        limit=limits.limit,
        max_tokens=limits.max_tokens,
        verify=options.get("verify", False),
        seen=SeenContent.of(options.get("without", ()), cache or SentenceHashes()),
        window=None if window is None else check_count(window, "window"),
        time=find_time(query, now.astimezone(zone)),
        zone=zone,
        standing_classes=_classes(policy, None, options.get("include_private", False)),
        scopes=tuple(check_scopes(options).items()),
    )


def _check_limits(limit: int | None, max_tokens: int) -> RetrieverConfig:
    is_usual = type(limit) in (int, type(None)) and type(max_tokens) is int  # others may not even be hashable
    return (_make_limits if is_usual else _make_limits.__wrapped__)(limit, max_tokens)


@lru_cache(maxsize=64)  # its checks take a hundredth of a search
def _make_limits(limit: int | None, max_tokens: int) -> RetrieverConfig:
    return RetrieverConfig(limit=limit, max_tokens=max_tokens)


def _period(options: SearchOptions, now: datetime) -> tuple[datetime | None, datetime | None]:
    """Return the first moment at which a memory may have been added, and the first one after the last."""
    since, until, within = options.get("since"), options.get("until"), options.get("within")
    if since is not None and within is not None:
        raise ValidationError("give only one of since and within, got both")
    begin = None if since is None else check_moment(since, "since")
    end = None if until is None else check_moment(until, "until")
    if begin is not None and end is not None and begin >= end:
        raise ValidationError(f"since must be before until, got {begin.isoformat()} and {end.isoformat()}")
    return (begin if within is None else ago(now, within, "within")), end


def _metadata_filter(options: SearchOptions) -> Filter | Predicate | None:
    """Return the condition on metadata of `where`, `agent_id` and `run_id` together; None for none."""
    where, scopes = options.get("where"), check_scopes(options)
    check_where(where)
    if callable(where):
        own, ids = where, Filter(scopes)
        return (lambda metadata: ids.matches(metadata) and call_filter(own, metadata)) if scopes else own
    for name in scopes.keys() & (where or {}).keys():
        raise ValidationError(f"give {name} once, got it as {name} and in where")
    return Filter({**(where or {}), **scopes}) if where or scopes else None


def _classes(policy: Policy, classes: Collection[PolicyClass] | None, private: bool) -> frozenset[PolicyClass]:
    every = frozenset(policy.classes) if classes is None else frozenset(_choices(classes, "classes", PolicyClass))
    return every if private else frozenset(name for name in every if not policy.rule(name).on_request)


def _choices(values: Collection[Any], name: str, kind: Any) -> list[Any]:  # noqa: ANN401
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValidationError(f"{name} must be a list, got {show(values, 80)}")
    return [check_choice(value, name, kind) for value in values]


def _sentence_hashes(text: str) -> frozenset[int]:
    spoken = (tuple(words(sentence)) for line in text.splitlines() for sentence in split_sentences(line))
    return frozenset(hash(each) for each in spoken if each)


def _digest(text: str) -> bytes:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()


def _hashable(value: object) -> object:
    if isinstance(value, Filter):
        return value.key
    return tuple(sorted(map(str, value))) if isinstance(value, set | frozenset | list | tuple) else value
