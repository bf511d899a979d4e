"""A store as the rules call it: the same words for its sync methods and its async ones."""

from asyncio import Runner
from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.store.base import BaseStore, Op


class StoreClient:
    """One side of a store.

    Args:
        store: what is under test.
        runner: runs its async methods; None for the sync ones.
        root: what every namespace begins with.
    """

    def __init__(self, store: BaseStore, runner: Runner | None, root: tuple[Any, ...] = ()) -> None:
        self.store: Any = store
        self.runner = runner
        self._root = root

    def at(self, *labels: Any) -> tuple[Any, ...]:
        """A namespace, or a prefix of one."""
        return (*self._root, *labels)

    def put(self, namespace: tuple[Any, ...], key: str, value: Mapping[str, Any], *more: Any, **options: Any) -> None:
        """As `BaseStore.put`."""
        self._done("put", namespace, key, value, *more, **options)

    def get(self, namespace: tuple[Any, ...], key: str, **options: Any) -> Any:
        """As `BaseStore.get`."""
        return self._done("get", namespace, key, **options)

    def value(self, namespace: tuple[Any, ...], key: str) -> Any:
        """What lies under a key; None for nothing."""
        found = self.get(namespace, key)
        return None if found is None else found.value

    def search(self, prefix: tuple[Any, ...], **options: Any) -> list[Any]:
        """As `BaseStore.search`."""
        return list(self._done("search", prefix, **options))

    def keys(self, prefix: tuple[Any, ...], **options: Any) -> list[str]:
        """The keys that a search finds, in its order."""
        return [item.key for item in self.search(prefix, **options)]

    def delete(self, namespace: tuple[Any, ...], key: str) -> None:
        """As `BaseStore.delete`."""
        self._done("delete", namespace, key)

    def namespaces(self, *prefix: Any, **options: Any) -> list[tuple[Any, ...]]:
        """As `BaseStore.list_namespaces`, under a prefix."""
        found = self._done("list_namespaces", prefix=self.at(*prefix) or None, **options)
        return [tuple(namespace) for namespace in found]

    def batch(self, ops: Sequence[Op]) -> list[Any]:
        """As `BaseStore.batch`."""
        return list(self._done("batch", ops))

    def _done(self, name: str, *args: Any, **options: Any) -> Any:
        if self.runner is None:
            return getattr(self.store, name)(*args, **options)
        method = getattr(self.store, "alist_namespaces" if name == "list_namespaces" else f"a{name}")
        return self.runner.run(method(*args, **options))
