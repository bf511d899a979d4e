"""One interface to the sync and the async methods of a LangGraph store."""

from asyncio import Runner
from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.store.base import BaseStore, Op


class StoreClient:
    """Calls the sync or the async methods of a store.

    Args:
        store: the store under test.
        runner: runs its async methods; None for the sync ones.
        root: the first labels of every namespace.
    """

    def __init__(self, store: BaseStore, runner: Runner | None, root: tuple[Any, ...] = ()) -> None:
        self.store: Any = store
        self.runner = runner
        self._root = root

    def ns(self, *labels: Any) -> tuple[Any, ...]:
        """Return a namespace or prefix under the root."""
        return (*self._root, *labels)

    def put(self, namespace: tuple[Any, ...], key: str, value: Mapping[str, Any], *more: Any, **options: Any) -> None:
        self._call("put", namespace, key, value, *more, **options)

    def get(self, namespace: tuple[Any, ...], key: str, **options: Any) -> Any:
        return self._call("get", namespace, key, **options)

    def value(self, namespace: tuple[Any, ...], key: str) -> Any:
        """Return the value under a key, or None."""
        item = self.get(namespace, key)
        return None if item is None else item.value

    def search(self, prefix: tuple[Any, ...], **options: Any) -> list[Any]:
        return list(self._call("search", prefix, **options))

    def keys(self, prefix: tuple[Any, ...], **options: Any) -> list[str]:
        """Return the keys of a search's results, in order."""
        return [item.key for item in self.search(prefix, **options)]

    def delete(self, namespace: tuple[Any, ...], key: str) -> None:
        self._call("delete", namespace, key)

    def namespaces(self, *prefix: Any, **options: Any) -> list[tuple[Any, ...]]:
        """Return the namespaces under a prefix."""
        namespaces = self._call("list_namespaces", prefix=self.ns(*prefix) or None, **options)
        return [tuple(namespace) for namespace in namespaces]

    def batch(self, ops: Sequence[Op]) -> list[Any]:
        return list(self._call("batch", ops))

    def _call(self, name: str, *args: Any, **options: Any) -> Any:
        if self.runner is None:
            return getattr(self.store, name)(*args, **options)
        method = getattr(self.store, "alist_namespaces" if name == "list_namespaces" else f"a{name}")
        return self.runner.run(method(*args, **options))
