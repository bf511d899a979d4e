"""Translate LangGraph operations on namespaces into reads and writes of `memory.items`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    NamespaceMatchType,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    get_text_at_path,
)

from langchain_meve.graph_store._filter_conditions import compile_filter
from langchain_meve.graph_store._tenancy import NamespaceError, Tenancy
from langchain_meve.graph_store._ttl import ttl_options
from meve.errors import ValidationError
from meve.memory.items._writer import ItemChange
from meve.memory.items.item import Drop, Namespace, Put, value_text
from meve.memory.items.item import Item as MemoryItem
from meve.memory.items.items import Items, ValuePredicate
from meve.memory.policy import PolicyClass
from meve.memory.records import check_choice, check_count

_EVERY = 2**31
"""A number above that of any user's items."""
PreparedRead: TypeAlias = Callable[[], Result]
"""A validated read that runs when it is called."""


@dataclass(frozen=True, slots=True)
class NamespaceQueries:
    """Validates operations and translates them, before any is run."""

    items: Items
    tenancy: Tenancy
    policy_class: PolicyClass
    fields: Sequence[str]
    """JSON paths that are indexed unless an operation names its own; `$` for the whole value."""

    def prepare_read(self, op: Op) -> PreparedRead:
        """Validate a `GetOp`, `SearchOp` or `ListNamespacesOp` and return it as a function to run.

        Raises:
            ValidationError: an invalid or unknown operation.
        """
        if isinstance(op, GetOp):
            user = self.tenancy.owner_of(op.namespace, op.key)
            return lambda: _to_item(self.items.get(op.namespace, op.key, user_id=user, refresh=op.refresh_ttl))
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._list_namespaces(op)
        raise ValidationError(f"op must be a GetOp, SearchOp, ListNamespacesOp or PutOp, got {op!r:.120}")

    def prepare_write(self, op: PutOp) -> ItemChange:
        """Validate a `PutOp` and return the user and the change of the item.

        Raises:
            ValidationError: an invalid namespace, index or TTL.
        """
        user = self.tenancy.owner_of(op.namespace, op.key)
        if op.value is None:
            return user, Drop(namespace=op.namespace, key=op.key)
        return user, Put(
            namespace=op.namespace,
            key=op.key,
            value=op.value,
            text=self._texts(op),
            policy_class=self.policy_class,
            **ttl_options(op.ttl),
        )

    def _texts(self, op: PutOp) -> list[str] | None:
        """Return the texts that a value is searched by, each by itself; None for the whole value."""
        if op.index is False:
            return []
        paths = self.fields if op.index is None else op.index
        if not isinstance(paths, list | tuple) or not all(isinstance(path, str) for path in paths):
            raise ValidationError(f"index must be False or a list of JSON paths, got {op.index!r:.80}")
        if set(paths) == {"$"} or not isinstance(op.value, Mapping):
            return None
        value = op.value
        return [
            text for path in paths for text in ([value_text(value)] if path == "$" else get_text_at_path(value, path))
        ]

    def _search(self, op: SearchOp) -> PreparedRead:
        predicate = compile_filter(op.filter)
        if self.tenancy.spans_owners(op.namespace_prefix):
            return lambda: _to_search_items(self._search_all(op, predicate))
        user = self.tenancy.owner_of_prefix(op.namespace_prefix)

        def search() -> Result:
            items = self.items.search(
                op.namespace_prefix, user_id=user, query=op.query, where=predicate, limit=op.limit, offset=op.offset,
                refresh=op.refresh_ttl,
            )  # fmt: skip
            return _to_search_items(items)

        return search

    def _search_all(self, op: SearchOp, predicate: ValuePredicate | None) -> list[MemoryItem]:
        """Return a page of the items of all owners; reading refreshes none."""
        count = check_count(op.offset, "offset") + check_count(op.limit, "limit")
        found = [
            item
            for owner in self.items.owners()
            for item in self.items.search(
                op.namespace_prefix, user_id=owner, query=op.query, where=predicate, limit=_EVERY
            )
            if self.tenancy.belongs_to(owner, item.namespace, item.key)
        ]
        found.sort(key=lambda item: (-(item.score if item.score is not None else -1.0), -item.updated_at.timestamp()))
        return found[op.offset : count]

    def _list_namespaces(self, op: ListNamespacesOp) -> PreparedRead:
        conditions = tuple(op.match_conditions or ())
        prefixes = [tuple(c.path) for c in conditions if c.match_type == "prefix"]
        prefix = _longest_prefix(prefixes)
        owner = None if self.tenancy.spans_owners(prefix) else self.tenancy.owner_of_prefix(prefix)
        check_count(op.limit, "limit")
        check_count(op.offset, "offset")
        if op.max_depth is not None:
            check_count(op.max_depth, "max_depth")
        for condition in conditions:
            check_choice(condition.match_type, "match_type", NamespaceMatchType)

        def list_namespaces() -> Result:
            if owner is not None:
                namespaces = set(self.items.namespaces(user_id=owner))
            else:
                of_all = [(user, each) for user in self.items.owners() for each in self.items.namespaces(user_id=user)]
                namespaces = {each for user, each in of_all if self.tenancy.belongs_to(user, each, user)}
            matching = {each[: op.max_depth] for each in namespaces if all(_path_matches(c, each) for c in conditions)}
            ordered = sorted(matching, key=lambda each: [(type(label).__name__, label) for label in each])
            return cast("Result", ordered[op.offset : op.offset + op.limit])

        return list_namespaces


def _path_matches(condition: MatchCondition, namespace: Namespace) -> bool:
    """Return whether a namespace begins or ends with the condition's path; `*` stands for any one label."""
    path = tuple(condition.path)
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(expected in ("*", label) for expected, label in zip(path, part, strict=True))


def _longest_prefix(prefixes: Sequence[Namespace]) -> Namespace:
    """Return the longest of the prefixes, each cut at its first wildcard."""
    longest = max((_before_wildcard(prefix) for prefix in prefixes), key=len, default=())
    if any(prefix != longest[: len(prefix)] for prefix in map(_before_wildcard, prefixes)):
        raise NamespaceError(
            f"each prefix must begin with the shorter ones, got {prefixes!r:.160}: no namespace matches all of them"
        )
    return longest


def _before_wildcard(prefix: Namespace) -> Namespace:
    return prefix[: prefix.index("*")] if "*" in prefix else prefix


def _to_search_items(items: Sequence[MemoryItem]) -> Result:
    return [SearchItem(**_item_fields(item), score=item.score) for item in items]


def _to_item(item: MemoryItem | None) -> Item | None:
    return None if item is None else Item(**_item_fields(item))


def _item_fields(item: MemoryItem) -> dict[str, Any]:
    return {name: getattr(item, name) for name in ("value", "key", "namespace", "created_at", "updated_at")}
