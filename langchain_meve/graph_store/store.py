"""The governed memory in place of a LangGraph store."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

from langgraph.store.base import (
    NOT_PROVIDED,
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    NamespacePath,
    NotProvided,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from langchain_meve.graph_store._namespace_query import Operations
from langchain_meve.graph_store._tenancy import SHAPES, Owners, Shape
from langchain_meve.graph_store._ttl import Ttl, configured
from langchain_meve.graph_store._write_batcher import Mailboxes
from meve.errors import ConfigurationError, ValidationError
from meve.memory import Erased, GovernedMemory
from meve.memory.items.item import Namespace
from meve.memory.policy import PolicyClass
from meve.memory.records import UserId, checked_choice


class MeVeStore(BaseStore):
    """A LangGraph store whose items are a governed memory's: each has an owner, and nobody reads another's.

    `batch` and `abatch` do everything, and hold every rule; the other methods only word operations for them. What a
    batch writes is written as a whole or not at all; its readings see what was there before it.

    Args:
        memory: keeps the items. It stays the caller's to close.
        owner: whose all of them are; None to tell by the namespace.
        namespaces: how namespaces begin, with `{user_id}` for the owner and `*` for any label: a shape, or several.
        policy_class: how items are governed; canonical ones live until they are deleted or their `ttl` is over.
        ttl: LangGraph's TTLConfig: `default_ttl` (minutes, or a timedelta) and `refresh_on_read`.
        fields: json paths of what is searched, where `put` doesn't say; `$` for all that a value says.

    Raises:
        ConfigurationError: an argument that can't be.

    >>> from meve.memory import GovernedMemory
    >>> from pathlib import Path; from tempfile import mkdtemp
    >>> store = MeVeStore(GovernedMemory.open(Path(mkdtemp()) / "memory.db"))
    >>> store.put(("memories", "alice"), "drink", {"text": "Alice drinks green tea."})
    >>> [item.key for item in store.search(("memories", "alice"), query="What does she drink?")]
    ['drink']
    >>> store.search(("memories", "bob"), query="What does she drink?")
    []
    """

    supports_ttl = True

    def __init__(
        self,
        memory: GovernedMemory,
        *,
        owner: UserId | None = None,
        namespaces: Shape | Sequence[Shape] = SHAPES,
        policy_class: PolicyClass = "canonical",
        ttl: Mapping[str, Any] | None = None,
        fields: Sequence[str] = ("$",),
    ) -> None:
        if not isinstance(memory, GovernedMemory):
            raise ConfigurationError(f"memory is {memory!r:.80}: give a GovernedMemory")
        if isinstance(fields, str) or not all(isinstance(path, str) for path in fields):
            raise ConfigurationError(f"fields is {fields!r:.80}: give a list of json paths")
        self.memory = memory
        self.ttl_config = config = configured(ttl)
        self._default_ttl: Ttl = config.get("default_ttl")
        self._refresh = config["refresh_on_read"]
        self._operations = Operations(
            items=memory.items,
            owners=Owners(owner, namespaces),
            policy_class=checked_choice(policy_class, "policy_class", PolicyClass),
            fields=tuple(fields),
        )
        self._mailboxes: Mailboxes[list[PutOp]] = Mailboxes(self._write_together)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """The results of operations, in their order.

        Raises:
            ValidationError: one that can't be; nothing is done.
            HoldError: one would change what is on hold; nothing is written.
            ModelError, StorageError: as for `GovernedMemory`.
        """
        given = list(ops)
        puts = [op for op in given if isinstance(op, PutOp)]
        drafts = self.memory.items.check([self._operations.change(op) for op in puts])
        results = self._read(given)
        if puts:
            self.memory.items.store(drafts)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`, in threads; what tasks of one loop write meanwhile is written together.

        Raises:
            As `batch`.
        """
        given = list(ops)
        puts = [op for op in given if isinstance(op, PutOp)]
        if len(puts) < len(given):
            results = await asyncio.to_thread(self._checked_read, given)
        else:
            results = [None] * len(given)
        if puts:
            await self._mailboxes.here().send(puts)
        return results

    def get(self, namespace: Namespace, key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        """What lies under a key; None for nothing. It lives on from now if it was given a `ttl`.

        Args:
            namespace: strings and ints.
            key: as it was put.
            refresh_ttl: whether it lives on; as the store is set if None.
        """
        return cast("Item | None", self.batch([self._get(namespace, key, refresh_ttl)])[0])

    async def aget(self, namespace: Namespace, key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        """As `get`."""
        return cast("Item | None", (await self.abatch([self._get(namespace, key, refresh_ttl)]))[0])

    def search(
        self,
        namespace_prefix: Namespace,
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """One owner's items under a prefix: likest first, or without a question those put last first.

        Args:
            namespace_prefix: how the namespace begins; it must name the owner, or the store be opened for one.
            query: a question.
            filter: by names of the value: what it must be, or `$eq $ne $gt $gte $lt $lte $in $nin`.
            limit: how many at most.
            offset: how many of the first are left out.
            refresh_ttl: as for `get`, of those that are returned.
        """
        op = self._search(namespace_prefix, query, filter, limit, offset, refresh_ttl)
        return cast("list[SearchItem]", self.batch([op])[0])

    async def asearch(
        self,
        namespace_prefix: Namespace,
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """As `search`."""
        op = self._search(namespace_prefix, query, filter, limit, offset, refresh_ttl)
        return cast("list[SearchItem]", (await self.abatch([op]))[0])

    def put(
        self,
        namespace: Namespace,
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: Ttl | NotProvided = NOT_PROVIDED,
    ) -> None:
        """Lay a value under a key, in place of what lay there.

        Args:
            namespace: strings and ints; it must name the owner, or the store be opened for one.
            key: any text.
            value: JSON-plain.
            index: json paths of what it is searched by; False for nothing; as the store is set if None.
            ttl: minutes, a timedelta, or a datetime at which it ends; None for as long as its class lives.
        """
        self.batch([self._put(namespace, key, value, index, ttl)])

    async def aput(
        self,
        namespace: Namespace,
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: Ttl | NotProvided = NOT_PROVIDED,
    ) -> None:
        """As `put`."""
        await self.abatch([self._put(namespace, key, value, index, ttl)])

    def delete(self, namespace: Namespace, key: str) -> None:
        """Erase what lies under a key, for good."""
        self.batch([PutOp(cast("tuple[str, ...]", namespace), str(key), None)])

    async def adelete(self, namespace: Namespace, key: str) -> None:
        """As `delete`."""
        await self.abatch([PutOp(cast("tuple[str, ...]", namespace), str(key), None)])

    def list_namespaces(
        self,
        *,
        prefix: NamespacePath | None = None,
        suffix: NamespacePath | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """One owner's namespaces that hold something, sorted.

        Args:
            prefix: how they begin, `*` for any label; it must name the owner, or the store be opened for one.
            suffix: how they end.
            max_depth: how many labels are told; what differs after is told once.
            limit: how many at most.
            offset: how many of the first are left out.
        """
        op = _listing(prefix, suffix, max_depth, limit, offset)
        return cast("list[tuple[str, ...]]", self.batch([op])[0])

    async def alist_namespaces(
        self,
        *,
        prefix: NamespacePath | None = None,
        suffix: NamespacePath | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """As `list_namespaces`."""
        op = _listing(prefix, suffix, max_depth, limit, offset)
        return cast("list[tuple[str, ...]]", (await self.abatch([op]))[0])

    def delete_namespace(self, namespace: Namespace, *, dry_run: bool = False) -> Erased:
        """Erase all items whose namespace begins so, for good, but for those on hold, which are named.

        Args:
            namespace: how they begin; it must name the owner, or the store be opened for one.
            dry_run: say which, and do nothing.

        Raises:
            ValidationError: a namespace that can't be, or that names no owner.
        """
        user = self._operations.owners.of_prefix(namespace)
        return self.memory.items.delete_namespace(namespace, user_id=user, dry_run=dry_run)

    async def adelete_namespace(self, namespace: Namespace, *, dry_run: bool = False) -> Erased:
        """As `delete_namespace`."""
        return await asyncio.to_thread(self.delete_namespace, namespace, dry_run=dry_run)

    def _read(self, ops: Sequence[Op]) -> list[Result]:
        readings = [None if isinstance(op, PutOp) else self._operations.read(op) for op in ops]
        return [None if reading is None else reading() for reading in readings]

    def _checked_read(self, ops: Sequence[Op]) -> list[Result]:
        self.memory.items.check([self._operations.change(op) for op in ops if isinstance(op, PutOp)])
        return self._read(ops)

    def _write_together(self, jobs: Sequence[Sequence[PutOp]]) -> list[Exception | None]:
        """All jobs in one transaction; if that can't be, each in its own."""
        if len(jobs) > 1:
            try:
                self.batch([op for job in jobs for op in job])
            except Exception:  # one's fault is not the others'
                return [failure for job in jobs for failure in self._write_together([job])]
            return [None] * len(jobs)
        try:
            self.batch(jobs[0] if jobs else ())
        except Exception as failure:
            return [failure]
        return [None] * len(jobs)

    def _get(self, namespace: Namespace, key: str, refresh: bool | None) -> GetOp:
        return GetOp(cast("tuple[str, ...]", namespace), str(key), self._refreshing(refresh))

    def _search(
        self,
        prefix: Namespace,
        query: str | None,
        filter: dict[str, Any] | None,
        limit: int,
        offset: int,
        refresh: bool | None,
    ) -> SearchOp:
        prefix = cast("tuple[str, ...]", prefix)
        return SearchOp(prefix, filter, limit, offset, query, self._refreshing(refresh))

    def _put(
        self,
        namespace: Namespace,
        key: str,
        value: Mapping[str, Any] | None,
        index: Literal[False] | list[str] | None,
        ttl: Ttl | NotProvided,
    ) -> PutOp:
        if value is None:
            raise ValidationError(f"the value of {key!r:.80} is None: give a mapping, or delete the key")
        life = self._default_ttl if isinstance(ttl, NotProvided) else ttl
        return PutOp(
            cast("tuple[str, ...]", namespace), str(key), cast("dict[str, Any]", value), index, cast("Any", life)
        )

    def _refreshing(self, asked: bool | None) -> bool:
        return self._refresh if asked is None else asked


def _listing(
    prefix: NamespacePath | None, suffix: NamespacePath | None, max_depth: int | None, limit: int, offset: int
) -> ListNamespacesOp:
    given = (("prefix", prefix), ("suffix", suffix))
    conditions = tuple(MatchCondition(cast("Any", kind), path) for kind, path in given if path)
    return ListNamespacesOp(conditions, max_depth, limit, offset)
