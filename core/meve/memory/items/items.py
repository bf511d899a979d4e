"""Items: values under keys in namespaces, governed as all of a user's memory is.

An item is a record of its owner's. Isolation, expiry on every read, erasure, holds, export and the log are those of
the memory; a search ranks by the memory's own likeness. Upkeep neither merges items nor archives them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, TypeAlias, get_args

from meve.errors import ValidationError
from meve.memory._feedback.reflector import Reflector
from meve.memory._recall.searcher import Searcher
from meve.memory._recall.user_index import Positions, Scope, Shelf, among
from meve.memory._runtime import Kit
from meve.memory._write.writer import Erased, Writer
from meve.memory.items._writer import Change, Drafts, ItemWriter, extended, to_refresh
from meve.memory.items.item import Drop, Item, Namespace, Put, checked_namespace, item_id, item_of
from meve.memory.policy import PolicyClass
from meve.memory.records import MemoryRecord, UserId, user_key
from meve.pipeline.pipeline import check_query
from meve.types import FloatArray

Where: TypeAlias = Callable[[Mapping[str, Any]], bool]
"""Whether a value is wanted. It is shown what is stored: it must not change it."""

_EVERY_CLASS = frozenset(get_args(PolicyClass))
_MOST = 2**31
"""More items than any user has."""
_WIDER = 4
"""How many times more are ranked where a filter left too few."""


@dataclass(frozen=True, slots=True)
class Items:
    """The items of a memory's users. Safe to share between threads.

    Args are parts of a `GovernedMemory`, whose `items` this is.
    """

    _kit: Kit
    _searcher: Searcher
    _reflector: Reflector

    def put(
        self,
        namespace: Namespace,
        key: str,
        value: Mapping[str, Any],
        *,
        user_id: UserId,
        text: str | None = None,
        ttl: timedelta | None = None,
        expires_at: datetime | None = None,
        policy_class: PolicyClass = "canonical",
        reason: str = "on request",
    ) -> None:
        """Lay a value under a key, in place of what lay there; when the key was put first is kept.

        Args:
            namespace: strings and ints.
            key: any text.
            value: JSON-plain.
            user_id: whose it is.
            text: what it is searched by; all that the value says if None, and nothing if empty.
            ttl: how long it lives; by its class if neither this nor `expires_at` is given.
            expires_at: when its life ends, instead.
            policy_class: how it is governed.
            reason: for the audit log; holds no content.

        Raises:
            ValidationError: an argument that can't be; nothing is stored.
            HoldError: what lies there is on hold.
            ModelError: the embedder failed; nothing is stored.
            StorageError: the file can't be written.
        """
        put = Put(
            namespace=namespace, key=key, value=value, text=text, ttl=ttl, expires_at=expires_at,
            policy_class=policy_class,
        )  # fmt: skip
        self.write([(user_id, put)], reason=reason)

    def delete(self, namespace: Namespace, key: str, *, user_id: UserId, reason: str = "on request") -> bool:
        """Erase what lies under a key, for good; whether there was anything.

        Raises:
            HoldError: it is on hold.
        """
        return bool(self.write([(user_id, Drop(namespace=namespace, key=key))], reason=reason))

    def write(self, changes: Sequence[Change], *, reason: str = "on request") -> int:
        """Put and delete many at once, of any users: all or nothing. How many keys were emptied.

        Raises:
            ValidationError, HoldError, ModelError, StorageError: as for `put`.
        """
        return self.store(self.check(changes), reason=reason)

    def check(self, changes: Sequence[Change]) -> Drafts:
        """What changes would be, for `store`; nothing is changed yet.

        Raises:
            ValidationError: an argument that can't be.
        """
        return self._writer.drafted(changes)

    def store(self, drafts: Drafts, *, reason: str = "on request") -> int:
        """Make changes that were checked; how many keys were emptied.

        Raises:
            HoldError, ModelError, StorageError: as for `put`.
        """
        done = self._writer.write(drafts, reason)
        self._let_go(done.erased)
        if done.erased or done.replaced:
            self._kit.store.scrub()  # or what lay there stays in the write-ahead log
        return sum(map(len, done.erased.values()))

    def get(self, namespace: Namespace, key: str, *, user_id: UserId, refresh: bool = False) -> Item | None:
        """What lies under a key; None for nothing, or what is expired.

        Args:
            namespace: as it was put.
            key: as it was put.
            user_id: whose.
            refresh: whether it lives on from now, if it was given a `ttl`.

        Raises:
            ValidationError: a user, namespace or key that can't be.
        """
        user, now = user_key(user_id), self._kit.clock.now()
        found = self._kit.store.find(user, item_id(namespace, key))
        if found is None or found.record.source != "item" or found.record.expired(now):
            return None
        return self._page(user, [(found.record, None)], refresh)[0]

    def search(
        self,
        prefix: Namespace = (),
        *,
        user_id: UserId,
        query: str | None = None,
        where: Where | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh: bool = False,
    ) -> list[Item]:
        """A user's items under a prefix: likest first if there is a question, those put last first if not.

        What isn't searchable comes after what is. The log tells which items answered a question.

        Args:
            prefix: how the namespace begins; all of the user's if empty.
            user_id: whose.
            query: a question; None or blank for none.
            where: which values are wanted.
            limit: how many at most, 0 or more.
            offset: how many of the first are left out, 0 or more.
            refresh: as for `get`, of those that are returned.

        Raises:
            ValidationError: an argument that can't be.
            QueryError: a question that is no text, or longer than the embedder's window.
        """
        user, begin = user_key(user_id), checked_namespace(prefix)
        limit, offset = _whole(limit, "limit"), _whole(offset, "offset")
        asked = _asked(query)
        vector = None if asked is None else self._kit.asked(asked)
        shelf = self._searcher.shelves.of(user)
        with shelf.lock:
            if asked is None or vector is None:
                found = _newest(shelf, begin, self._kit.clock.now())
            else:
                found = self._likest(shelf, begin, asked, vector, offset + limit)
            wanted = (each for each in found if where is None or where(each[0].metadata["value"]))
            page = list(islice(wanted, offset, offset + limit))
        if asked is not None:
            self._note(user, asked, page)
        return self._page(user, page, refresh)

    def namespaces(self, *, user_id: UserId) -> list[Namespace]:
        """The namespaces that hold an item of the user's that isn't expired, in no order.

        Raises:
            ValidationError: a user that can't be.
        """
        shelf = self._searcher.shelves.of(user_key(user_id))
        with shelf.lock:
            return shelf.namespaces(self._kit.clock.now())

    def delete_namespace(
        self, prefix: Namespace, *, user_id: UserId, dry_run: bool = False, reason: str = "on request"
    ) -> Erased:
        """Erase all items of a user whose namespace begins so, for good, but for those on hold, which are named.

        Args:
            prefix: how the namespace begins; all of the user's if empty.
            user_id: whose.
            dry_run: say which, and do nothing.
            reason: for the audit log.

        Raises:
            ValidationError: a user or a namespace that can't be.
        """
        user = user_key(user_id)
        done = self._writer.erase_under(user, checked_namespace(prefix), reason, dry_run=dry_run)
        if not dry_run:
            self._let_go({user: set(done.erased)})
        return done

    @property
    def _writer(self) -> ItemWriter:
        return ItemWriter(self._kit, Writer(self._kit))

    def _likest(
        self, shelf: Shelf, prefix: Namespace, query: str, vector: FloatArray, most: int
    ) -> Iterator[tuple[MemoryRecord, float | None]]:
        now = self._kit.clock.now()
        positions = shelf.items(prefix, now)
        mask = shelf.admitted(Scope(now=now, classes=_EVERY_CLASS))
        silent = positions[~mask[positions]]
        mask &= among(len(mask), positions)
        many, seen = int(mask.sum()), 0
        while seen < many:
            most = max(most, 1)
            hits = shelf.alike(query, vector, most, mask, self._kit.policy.relevance)
            yield from ((hit.stored.record, hit.relevance) for hit in hits[seen:])
            seen, most = len(hits), most * _WIDER
        yield from _records(shelf, shelf.newest(silent))

    def _page(self, user: str, page: Sequence[tuple[MemoryRecord, float | None]], refresh: bool) -> list[Item]:
        now = self._kit.clock.now()
        moving = to_refresh((record for record, _ in page), now) if refresh else []
        if moving:
            self._writer.refresh(user, moving)
        ends = {record.id: extended(record, now) for record, _ in page if record.id in moving}
        return [item_of(replace(r, expires_at=ends[r.id]) if r.id in ends else r, score) for r, score in page]

    def _note(self, user: str, query: str, page: Sequence[tuple[MemoryRecord, float | None]]) -> None:
        """In the log, and in the records: found now."""
        if not page:
            return
        kit, now = self._kit, self._kit.clock.now()
        asked = kit.chain.hash_content(query)
        with kit.store.writing(durable=False) as transaction:
            transaction.touch(user, [record.id for record, _ in page], now)
            transaction.log(
                *(
                    kit.event(user, record, "retrieve", "item search", now, score=round(score or 0.0, 4), query=asked)
                    for record, score in page
                )
            )

    def _let_go(self, erased: Mapping[str, set[str]]) -> None:
        """Nothing in memory holds what is gone: not what waits to be reflected on, nor a shelf, nor a recall."""
        for user, ids in erased.items():
            self._reflector.forget(user, ids)
            self._searcher.cache.forget(user)
            self._searcher.shelves.freshen(user)


def _whole(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValidationError(f"{name} is {value!r:.40}: give a whole number, 0 or more")
    return min(value, _MOST)


def _asked(query: object) -> str | None:
    if query is None or (isinstance(query, str) and not query.strip()):
        return None
    check_query(query)
    return str(query)


def _newest(shelf: Shelf, prefix: Namespace, now: datetime) -> Iterator[tuple[MemoryRecord, float | None]]:
    return _records(shelf, shelf.newest(shelf.items(prefix, now)))


def _records(shelf: Shelf, positions: Positions) -> Iterator[tuple[MemoryRecord, float | None]]:
    found = (shelf.at(position) for position in positions.tolist())
    return ((stored.record, None) for stored in found if stored is not None)
