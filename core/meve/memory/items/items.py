"""Items: values under keys in namespaces, governed like all other records of a user.

Isolation, expiry, erasure, holds, export and the audit log are those of the memory. A search ranks as the memory does,
with a smaller weight of words (`item_words` in `relevance`). Maintenance merges no items. It prunes those of a class
that the policy lets be pruned; `canonical`, the default, isn't.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, TypeAlias, get_args

from meve._repeating import repeat_rolled_back
from meve._telemetry import reported
from meve.errors import ValidationError, show
from meve.memory._async_runner import as_async
from meve.memory._recall.namespace_index import Positions
from meve.memory._recall.searcher import Searcher
from meve.memory._recall.user_index import Scope, UserIndex, among
from meve.memory._reports import describe_list
from meve.memory._runtime import MemoryRuntime
from meve.memory._write.eraser import ErasureReport
from meve.memory.items._writer import Drafts, ItemChange, ItemWriter, extended, to_refresh
from meve.memory.items.item import Drop, Item, Namespace, Put, check_namespace, item_id, item_of
from meve.memory.policy import PolicyClass
from meve.memory.records import MemoryRecord, UserId, check_count, check_flag, user_key, user_of
from meve.memory.stores.protocol import RecordQuery
from meve.pipeline.query_check import check_query
from meve.types import FloatArray

ValuePredicate: TypeAlias = Callable[[Mapping[str, Any]], bool]
"""Returns whether a search may return an item with this value. It must not change the value."""

_EVERY_CLASS = frozenset(get_args(PolicyClass))
_MAX_COUNT = 2**31
"""A number above that of any user's items; larger limits mean no limit."""
_RANK_GROWTH = 4
"""The factor by which more items are ranked when a filter leaves too few."""


@dataclass(frozen=True, slots=True)
class Items:
    """Puts, gets, searches and deletes the items of a memory's users. Safe to share between threads.

    A `GovernedMemory` makes it: `memory.items`.
    """

    _runtime: MemoryRuntime
    _searcher: Searcher
    _writer: ItemWriter

    def put(
        self,
        namespace: Namespace,
        key: str,
        value: Mapping[str, Any],
        *,
        user_id: UserId,
        text: str | Sequence[str] | None = None,
        ttl: timedelta | None = None,
        expires_at: datetime | None = None,
        policy_class: PolicyClass = "canonical",
        reason: str = "on request",
    ) -> None:
        """Put a value under a key, in place of its old value; the key keeps its creation time.

        Args:
            namespace: strings and ints.
            key: any string.
            value: JSON-plain.
            user_id: the owner.
            text: the text by which it is searched: None for all texts of the value, empty for none. Of several texts,
                each is embedded by itself, and the best counts.
            ttl: its lifetime; None for the lifetime until `expires_at`, or that of its class.
            expires_at: when it expires, instead of `ttl`.
            policy_class: the class that governs it.
            reason: for the audit log; must hold no content.

        Raises:
            ValidationError: an argument is invalid; nothing is stored.
            HoldError: the item is on hold.
            ModelError: the embedder failed; nothing is stored.
            StorageError: the store can't be written.
        """
        put = Put(
            namespace=namespace, key=key, value=value, text=text, ttl=ttl, expires_at=expires_at,
            policy_class=policy_class,
        )  # fmt: skip
        self.write(self.prepare([(user_id, put)]), reason=reason)

    def delete(self, namespace: Namespace, key: str, *, user_id: UserId, reason: str = "on request") -> bool:
        """Erase the item under a key for good. Return whether there was one.

        Raises:
            HoldError: the item is on hold.
        """
        return bool(self.write(self.prepare([(user_id, Drop(namespace=namespace, key=key))]), reason=reason))

    def prepare(self, changes: Sequence[ItemChange]) -> Drafts:
        """Check changes of any users' items, and return them for `write`; of changes of one key the last counts.

        Raises:
            ValidationError: a user, namespace, key, value or expiry is invalid.
        """
        return self._writer.draft(changes)

    def write(self, drafts: Drafts, *, reason: str = "on request") -> int:
        """Write prepared changes, all or none. Return the number of deleted keys.

        Raises:
            ValidationError: `drafts` isn't the result of `prepare`.
            DuplicateIdError: a record that is no item has the id of one.
            HoldError, ModelError, StorageError: as for `put`.
        """
        if not isinstance(drafts, dict) or not all(isinstance(r, MemoryRecord | None) for r in drafts.values()):
            raise ValidationError(f"drafts must come from prepare(), got {show(drafts, 80)}: write(prepare(changes))")
        return self._writer.write(drafts, reason)

    def get(self, namespace: Namespace, key: str, *, user_id: UserId, refresh: bool = False) -> Item | None:
        """Return the item under a key; None if there is none, or it has expired.

        Args:
            namespace: as it was put.
            key: as it was put.
            user_id: the owner.
            refresh: whether to restart its `ttl`, if it has one.

        Raises:
            ValidationError: a user, namespace or key is invalid.
        """
        user = user_key(user_id)
        check_flag(refresh, "refresh")
        stored = self._runtime.store.find(user, item_id(namespace, key))
        if stored is None or stored.record.kind != "item":
            return None
        return next(iter(self._page(user, [(stored.record, None)], refresh)), None)

    @reported("search_memory", describe_list)
    def search(
        self,
        prefix: Namespace = (),
        *,
        user_id: UserId,
        query: str | None = None,
        where: ValuePredicate | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh: bool = False,
    ) -> list[Item]:
        """Return a user's items under a prefix: by relevance if there is a query, otherwise the last put first.

        Items that aren't searchable come last. The audit log notes which items answered a query.

        Args:
            prefix: the first labels of the namespace; empty for all namespaces.
            user_id: the owner.
            query: the query; None or blank for none.
            where: returns whether an item with this value may be returned; None for all items.
            limit: the maximum number of items, 0 or more.
            offset: the number of items to skip, 0 or more.
            refresh: as for `get`, of the returned items.

        Raises:
            ValidationError: an argument is invalid.
            QueryError: the query is no string, or longer than the embedder's window.
        """
        user, begin = user_key(user_id), check_namespace(prefix)
        if where is not None and not callable(where):
            raise ValidationError(f"where must be a function of an item's value, got {show(where, 80)}")
        check_flag(refresh, "refresh")
        limit, offset = (min(check_count(n, name), _MAX_COUNT) for n, name in ((limit, "limit"), (offset, "offset")))
        question = _question(query)
        index = self._searcher.indexes.of(user)
        model = index.model
        vector = None if question is None else self._runtime.embed_query(question, model)
        with index.lock:
            if question is None:
                items = _records(index, index.newest(index.items(begin, self._runtime.clock.now())))
            else:
                items = self._ranked(index, begin, question, vector if index.model == model else None, offset + limit)
            wanted = (each for each in items if where is None or where(each[0].metadata["value"]))
            page = list(islice(wanted, offset, offset + limit))
        if question is not None:
            self._log(user, question, page)
        return self._page(user, page, refresh)

    def namespaces(self, *, user_id: UserId) -> list[Namespace]:
        """Return the namespaces in which the user has an item that hasn't expired, in no order.

        Raises:
            ValidationError: the user is invalid.
        """
        index = self._searcher.indexes.of(user_key(user_id))
        with index.lock:
            return index.namespaces(self._runtime.clock.now())

    def owners(self) -> list[UserId]:
        """Return all users who have an item, for an operator; those of expired items too, until maintenance."""
        store = self._runtime.store
        keys = [key for key in store.users() if store.count(RecordQuery(user=key, kind="item"))]
        return [user for key in keys if (user := user_of(key)) is not None]

    def delete_namespace(
        self, prefix: Namespace, *, user_id: UserId, dry_run: bool = False, reason: str = "on request"
    ) -> ErasureReport:
        """Erase a user's items under a prefix for good. Items on hold stay, and are listed.

        Args:
            prefix: the first labels of the namespace; empty for all namespaces.
            user_id: the owner.
            dry_run: only list the items.
            reason: for the audit log; must hold no content.

        Raises:
            ValidationError: the user or the namespace is invalid.
        """
        user, begin = user_key(user_id), check_namespace(prefix)
        return self._writer.erase_under(user, begin, reason, dry_run=check_flag(dry_run, "dry_run"))

    aput, adelete, awrite = as_async(put), as_async(delete), as_async(write)
    adelete_namespace = as_async(delete_namespace)
    aget, asearch = as_async(get), as_async(search)
    anamespaces = as_async(namespaces, is_read=True)

    def _ranked(
        self, index: UserIndex, prefix: Namespace, query: str, vector: FloatArray | None, count: int
    ) -> Iterator[tuple[MemoryRecord, float | None]]:
        now = self._runtime.clock.now()
        positions = index.items(prefix, now)
        mask = index.admitted(Scope(now=now, classes=_EVERY_CLASS))
        unsearchable = positions[~mask[positions]]
        mask &= among(len(mask), positions)
        total, ranked = int(mask.sum()), 0
        relevance = self._runtime.policy.relevance
        rule = relevance.model_copy(update={"words": relevance.item_words})
        while ranked < total:
            count = max(count, 1)
            hits = index.find_relevant(query, vector, count, mask, rule)
            yield from ((hit.passage.record, hit.relevance) for hit in hits[ranked:])
            ranked, count = len(hits), count * _RANK_GROWTH
        yield from _records(index, index.newest(unsearchable))

    def _page(self, user: str, page: Sequence[tuple[MemoryRecord, float | None]], refresh: bool) -> list[Item]:
        """Return the items that haven't expired when all waits are over."""
        now = self._runtime.clock.now()
        page = [(record, score) for record, score in page if not record.expired(now)]
        moving = to_refresh((record for record, _ in page), now) if refresh else []
        if moving:
            self._writer.refresh(user, moving)
        ends = {record.id: extended(record, now) for record, _ in page if record.id in moving}
        records = [(replace(r, expires_at=ends[r.id]) if r.id in ends else r, score) for r, score in page]
        now = self._runtime.clock.now()
        return [item_of(record, score) for record, score in records if not record.expired(now)]

    @repeat_rolled_back
    def _log(self, user: str, query: str, page: Sequence[tuple[MemoryRecord, float | None]]) -> None:
        if not page:
            return
        runtime, now = self._runtime, self._runtime.clock.now()
        query_hash = runtime.content_hash("query", query, user)
        events = [
            runtime.event(user, record, "retrieve", "item search", now, score=round(score or 0.0, 4), **query_hash)
            for record, score in page
        ]
        with runtime.store.writing(durable=False) as transaction:
            transaction.touch(user, [record.id for record, _ in page], now)
            transaction.log(*events)


def _question(query: object) -> str | None:
    if query is None or (isinstance(query, str) and not query.strip()):
        return None
    check_query(query)
    return str(query)


def _records(index: UserIndex, positions: Positions) -> Iterator[tuple[MemoryRecord, float | None]]:
    stored = (index.at(position) for position in positions.tolist())
    return ((each.record, None) for each in stored if each is not None)
