"""LangGraph's operations as what a memory's items are asked. Every rule holds here, whichever way one comes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    get_text_at_path,
)

from langchain_meve.graph_store._filter_conditions import matches, where
from langchain_meve.graph_store._tenancy import NamespaceError, Owners
from langchain_meve.graph_store._ttl import life
from meve.errors import ValidationError
from meve.memory.items._writer import Change
from meve.memory.items.item import Drop, Namespace, Put
from meve.memory.items.item import Item as Kept
from meve.memory.items.items import Items
from meve.memory.policy import PolicyClass

Read: TypeAlias = Callable[[], Result]
"""A reading, checked, and not yet done."""


@dataclass(frozen=True, slots=True)
class Operations:
    """Reads operations, and refuses what can't be before anything is done."""

    items: Items
    owners: Owners
    policy_class: PolicyClass
    fields: Sequence[str]
    """Json paths of what is searched where an operation doesn't say; `$` for all that a value says."""

    def read(self, op: Op) -> Read:
        """What a reading operation asks.

        Raises:
            ValidationError: something that can't be asked.
        """
        if isinstance(op, GetOp):
            user = self.owners.of(op.namespace)
            return lambda: _item(self.items.get(op.namespace, op.key, user_id=user, refresh=op.refresh_ttl))
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        raise ValidationError(f"{op!r:.120} is no operation that is known: give GetOp, SearchOp, PutOp, …")

    def change(self, op: PutOp) -> Change:
        """What a writing operation makes of a key.

        Raises:
            ValidationError: something that can't be put.
        """
        user = self.owners.of(op.namespace)
        if op.value is None:
            return user, Drop(namespace=op.namespace, key=op.key)
        return user, Put(
            namespace=op.namespace,
            key=op.key,
            value=op.value,
            text=self._text(op),
            policy_class=self.policy_class,
            **life(op.ttl),
        )

    def _text(self, op: PutOp) -> str | None:
        """What a value is searched by; None for all that it says."""
        if op.index is False:
            return ""
        paths = self.fields if op.index is None else op.index
        if not isinstance(paths, list | tuple) or not all(isinstance(path, str) for path in paths):
            raise ValidationError(f"index is {op.index!r:.80}: give False, or a list of json paths")
        if "$" in paths or not isinstance(op.value, Mapping):
            return None
        return "\n".join(text for path in paths for text in get_text_at_path(op.value, path))

    def _search(self, op: SearchOp) -> Read:
        user, wanted = self.owners.of_prefix(op.namespace_prefix), where(op.filter)

        def search() -> Result:
            found = self.items.search(
                op.namespace_prefix, user_id=user, query=op.query, where=wanted, limit=op.limit, offset=op.offset,
                refresh=op.refresh_ttl,
            )  # fmt: skip
            return [SearchItem(**_values(item), score=item.score) for item in found]

        return search

    def _namespaces(self, op: ListNamespacesOp) -> Read:
        conditions = tuple(op.match_conditions or ())
        user = self.owners.of_prefix(_beginning([tuple(c.path) for c in conditions if c.match_type == "prefix"]))
        for name, value in (("max_depth", op.max_depth), ("limit", op.limit), ("offset", op.offset)):
            absent = value is None and name == "max_depth"
            if not absent and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise ValidationError(f"{name} is {value!r:.40}: give a whole number, 0 or more")
        for condition in conditions:
            matches(condition, ())  # refuses a kind that isn't known

        def namespaces() -> Result:
            held = self.items.namespaces(user_id=user)
            fitting = {name[: op.max_depth] for name in held if all(matches(c, name) for c in conditions)}
            listed = sorted(fitting, key=lambda name: [(type(label).__name__, label) for label in name])
            return cast("Result", listed[op.offset : op.offset + op.limit])

        return namespaces


def _beginning(prefixes: Sequence[Namespace]) -> Namespace:
    """What namespaces that fit all of these begin with, up to the first label that is open."""
    longest = max((_settled(prefix) for prefix in prefixes), key=len, default=())
    if any(prefix != longest[: len(prefix)] for prefix in map(_settled, prefixes)):
        raise NamespaceError(f"prefixes {prefixes!r:.160} contradict each other: nothing begins with both")
    return longest


def _settled(prefix: Namespace) -> Namespace:
    return prefix[: prefix.index("*")] if "*" in prefix else prefix


def _item(kept: Kept | None) -> Item | None:
    return None if kept is None else Item(**_values(kept))


def _values(kept: Kept) -> dict[str, Any]:
    return {name: getattr(kept, name) for name in ("value", "key", "namespace", "created_at", "updated_at")}
