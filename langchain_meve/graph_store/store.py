"""A LangGraph store over a governed memory."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

from langgraph.store.base import (
    NOT_PROVIDED,
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    NamespaceMatchType,
    NamespacePath,
    NotProvided,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from langchain_meve.graph_store._namespace_query import NamespaceQueries, PreparedRead
from langchain_meve.graph_store._tenancy import OwnerPlace, Tenancy
from langchain_meve.graph_store._ttl import Ttl, parse_ttl_config
from langchain_meve.graph_store._write_batcher import WriteBatcher
from meve.errors import ConfigurationError
from meve.integrations._option_names import explain_unknown_options
from meve.memory import ErasureReport, GovernedMemory
from meve.memory._wrapper_support import check_memory
from meve.memory.items._writer import ItemChange
from meve.memory.items.item import Namespace
from meve.memory.policy import PolicyClass
from meve.memory.records import UserId, check_choice


class MeVeStore(BaseStore):
    """A LangGraph store whose items are governed memories: each belongs to a user, and no other user can read it.

    `batch` and `abatch` do the work; the other methods build operations for them. The writes of a batch are atomic,
    and its reads see the state before them.

    Where the owner of an item stands is named once, here; a call that doesn't fit is refused. If the run that makes a
    call has a user (`user_id` in the runtime context or in `config["configurable"]`), it reaches only that user's
    items, and shared ones.

    Args:
        memory: the governed memory that stores the items; the caller closes it.
        namespaces: the form of all namespaces, labels between slashes: `{user_id}` for the owner, `*` for any label,
            and at the end for any number of labels, such as `users/{user_id}/*`.
        owner: `namespace` if namespaces name the owner; `key` if the key of an item is the owner, as in
            `namespaces="users", owner="key"`; `run` if the user of the run owns everything.
        user_id: the only owner, instead of both.
        shared: forms of namespaces that all users share, each with the owner of its items, such as
            `{"policies/*": "acme"}`.
        across_owners: for operators: searches and lists whose prefix names no owner cover all owners. Don't give such
            a store to an agent.
        policy_class: the policy class of items; canonical ones live until deletion or the end of their `ttl`.
        ttl: LangGraph's TTLConfig: `default_ttl` (minutes, or a timedelta) and `refresh_on_read`.
        fields: JSON paths that are indexed unless `put` names its own; `$` for the whole value.

    Raises:
        ConfigurationError: an invalid argument.

    >>> from meve.memory import GovernedMemory
    >>> from pathlib import Path; from tempfile import mkdtemp
    >>> memory = GovernedMemory.open(Path(mkdtemp()) / "memory.db")
    >>> store = MeVeStore(memory, namespaces="memories/{user_id}/*")
    >>> store.put(("memories", "alice"), "drink", {"text": "Alice drinks green tea."})
    >>> [item.key for item in store.search(("memories", "alice"), query="What does she drink?")]
    ['drink']
    >>> store.search(("memories", "bob"), query="What does she drink?")
    []
    >>> memory.close()
    """

    supports_ttl = True

    @explain_unknown_options
    def __init__(
        self,
        memory: GovernedMemory,
        namespaces: str | None = None,
        *,
        owner: OwnerPlace = "namespace",
        user_id: UserId | None = None,
        shared: Mapping[str, UserId] | None = None,
        across_owners: bool = False,
        policy_class: PolicyClass = "canonical",
        ttl: Mapping[str, Any] | None = None,
        fields: Sequence[str] = ("$",),
    ) -> None:
        if isinstance(fields, str) or not all(isinstance(path, str) for path in fields):
            raise ConfigurationError(f"fields must be a list of JSON paths, got {fields!r:.80}")
        self.memory = check_memory(memory)
        self.ttl_config = config = parse_ttl_config(ttl)
        self._default_ttl: Ttl = config.get("default_ttl")
        self._refresh = config["refresh_on_read"]
        self._queries = NamespaceQueries(
            items=memory.items,
            tenancy=Tenancy(user_id, namespaces, owner, shared, across_owners=across_owners),
            policy_class=check_choice(policy_class, "policy_class", PolicyClass),
            fields=tuple(fields),
        )
        self._batcher: WriteBatcher[list[ItemChange]] = WriteBatcher(memory.run_async, self._write_batch)

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        """Run operations and return their results, in order.

        Raises:
            ValidationError: an invalid operation; none is run.
            HoldError: a write to an item on hold; nothing is written.
            ModelError, StorageError: as for `GovernedMemory`.
        """
        operations = list(ops)
        drafts = self.memory.items.prepare(self._changes(operations))
        results = _run(self._reads(operations))
        if drafts:
            self.memory.items.write(drafts)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Any]:
        """Run `batch` in the memory's thread; concurrent writes share a transaction. Errors are those of `batch`."""
        operations = list(ops)
        changes, reads = self._changes(operations), self._reads(operations)  # here, since they depend on the run
        results: list[Any] = [None] * len(operations)
        if any(reads):
            results = await self.memory.run_async(self._checked_read, changes, reads)
        if changes:
            await self._batcher.submit(changes)
        return results

    def get(self, namespace: Namespace, key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        """Return the item under a key, or None; reading restarts its `ttl`.

        Args:
            namespace: strings and ints.
            key: the item's key.
            refresh_ttl: whether to restart the `ttl`; None for the store's setting.
        """
        op = GetOp(_path(namespace), str(key), self._refreshes(refresh_ttl))
        results: list[Item | None] = self.batch([op])
        return results[0]

    async def aget(self, namespace: Namespace, key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        """Run `get` asynchronously."""
        op = GetOp(_path(namespace), str(key), self._refreshes(refresh_ttl))
        results: list[Item | None] = await self.abatch([op])
        return results[0]

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
        """Return one user's items under a prefix, by similarity to `query`, or newest first without one.

        Args:
            namespace_prefix: the first labels of the namespace, which must name the owner, unless the store knows it.
            query: the text to search for.
            filter: maps names of the value to a value or to `$eq $ne $gt $gte $lt $lte $in $nin`.
            limit: the most items to return.
            offset: the number of items to skip.
            refresh_ttl: as for `get`, for the items that are returned.
        """
        op = SearchOp(_path(namespace_prefix), filter, limit, offset, query, self._refreshes(refresh_ttl))
        results: list[list[SearchItem]] = self.batch([op])
        return results[0]

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
        """Run `search` asynchronously."""
        op = SearchOp(_path(namespace_prefix), filter, limit, offset, query, self._refreshes(refresh_ttl))
        results: list[list[SearchItem]] = await self.abatch([op])
        return results[0]

    def put(
        self,
        namespace: Namespace,
        key: str,
        value: Mapping[str, Any] | None,
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: Ttl | NotProvided = NOT_PROVIDED,
    ) -> None:
        """Store a value under a key, replacing the old one.

        Args:
            namespace: strings and ints, which must name the owner, unless the store knows it.
            key: any text.
            value: a mapping that JSON can hold; None erases the item, as `delete` does.
            index: JSON paths to index; False for none; None for the store's `fields`.
            ttl: minutes, a timedelta, or the datetime of expiry; None for the TTL of the policy class.
        """
        self.batch([self._put(namespace, key, value, index, ttl)])

    async def aput(
        self,
        namespace: Namespace,
        key: str,
        value: Mapping[str, Any] | None,
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: Ttl | NotProvided = NOT_PROVIDED,
    ) -> None:
        """Run `put` asynchronously."""
        await self.abatch([self._put(namespace, key, value, index, ttl)])

    def delete(self, namespace: Namespace, key: str) -> None:
        """Erase the item under a key for good."""
        self.batch([PutOp(_path(namespace), str(key), None)])

    async def adelete(self, namespace: Namespace, key: str) -> None:
        """Run `delete` asynchronously."""
        await self.abatch([PutOp(_path(namespace), str(key), None)])

    def list_namespaces(
        self,
        *,
        prefix: NamespacePath | None = None,
        suffix: NamespacePath | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """Return one user's namespaces that hold items, sorted.

        Args:
            prefix: their first labels, `*` for any, which must name the owner, unless the store knows it.
            suffix: their last labels.
            max_depth: the number of labels to keep; namespaces that are equal then are listed once.
            limit: the most namespaces to return.
            offset: the number of namespaces to skip.
        """
        op = ListNamespacesOp(_conditions(prefix, suffix), max_depth, limit, offset)
        results: list[list[tuple[str, ...]]] = self.batch([op])
        return results[0]

    async def alist_namespaces(
        self,
        *,
        prefix: NamespacePath | None = None,
        suffix: NamespacePath | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """Run `list_namespaces` asynchronously."""
        op = ListNamespacesOp(_conditions(prefix, suffix), max_depth, limit, offset)
        results: list[list[tuple[str, ...]]] = await self.abatch([op])
        return results[0]

    def delete_namespace(self, namespace: Namespace, *, dry_run: bool = False) -> ErasureReport:
        """Erase all items under a namespace for good, except items on hold, which the result names.

        Args:
            namespace: their first labels, which must name the owner, unless the store knows it.
            dry_run: return what would be erased and erase nothing.

        Raises:
            ValidationError: the namespace is invalid or names no user.
        """
        user = self._queries.tenancy.owner_of_prefix(namespace)
        return self.memory.items.delete_namespace(namespace, user_id=user, dry_run=dry_run)

    async def adelete_namespace(self, namespace: Namespace, *, dry_run: bool = False) -> ErasureReport:
        """Run `delete_namespace` off the event loop."""
        return await self.memory.run_async(self.delete_namespace, namespace, dry_run=dry_run)

    def _changes(self, ops: Sequence[Op]) -> list[ItemChange]:
        return [self._queries.prepare_write(op) for op in ops if isinstance(op, PutOp)]

    def _reads(self, ops: Sequence[Op]) -> list[PreparedRead | None]:
        return [None if isinstance(op, PutOp) else self._queries.prepare_read(op) for op in ops]

    def _checked_read(self, changes: Sequence[ItemChange], reads: Sequence[PreparedRead | None]) -> list[Result]:
        self.memory.items.prepare(changes)
        return _run(reads)

    def _write_batch(self, jobs: Sequence[Sequence[ItemChange]]) -> list[Exception | None]:
        """Write all jobs in one transaction, or each in its own if that fails."""
        try:
            self.memory.items.write(self.memory.items.prepare([change for job in jobs for change in job]))
        except Exception as failure:
            if len(jobs) == 1:
                return [failure]
            return [each for job in jobs for each in self._write_batch([job])]
        return [None] * len(jobs)

    def _put(
        self,
        namespace: Namespace,
        key: str,
        value: Mapping[str, Any] | None,
        index: Literal[False] | list[str] | None,
        ttl: Ttl | NotProvided,
    ) -> PutOp:
        expiry = self._default_ttl if isinstance(ttl, NotProvided) else ttl
        return PutOp(_path(namespace), str(key), value, index, cast("Any", expiry))

    def _refreshes(self, refresh_ttl: bool | None) -> bool:
        return self._refresh if refresh_ttl is None else refresh_ttl


def _run(reads: Sequence[PreparedRead | None]) -> list[Result]:
    return [None if read is None else read() for read in reads]


def _path(namespace: Namespace) -> tuple[str, ...]:
    return cast("tuple[str, ...]", namespace)  # LangGraph's operations are typed without ints


def _conditions(prefix: NamespacePath | None, suffix: NamespacePath | None) -> tuple[MatchCondition, ...]:
    paths: dict[NamespaceMatchType, NamespacePath | None] = {"prefix": prefix, "suffix": suffix}
    return tuple(MatchCondition(kind, path) for kind, path in paths.items() if path)
