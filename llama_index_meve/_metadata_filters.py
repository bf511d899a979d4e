"""LlamaIndex metadata filters, nested to any depth, as a predicate on metadata."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from meve.errors import ConfigurationError

_OPERATORS: dict[FilterOperator, Callable[[Any, Any], bool]] = {
    FilterOperator.EQ: lambda actual, value: actual == value,
    FilterOperator.NE: lambda actual, value: actual != value,
    FilterOperator.GT: lambda actual, value: actual > value,
    FilterOperator.GTE: lambda actual, value: actual >= value,
    FilterOperator.LT: lambda actual, value: actual < value,
    FilterOperator.LTE: lambda actual, value: actual <= value,
    FilterOperator.IN: lambda actual, value: actual in value,
    FilterOperator.NIN: lambda actual, value: actual not in value,
    FilterOperator.CONTAINS: lambda actual, value: value in actual,
    FilterOperator.TEXT_MATCH: lambda actual, value: str(value) in str(actual),
    FilterOperator.TEXT_MATCH_INSENSITIVE: lambda actual, value: str(value).lower() in str(actual).lower(),
    FilterOperator.ALL: lambda actual, value: all(each in actual for each in value),
    FilterOperator.ANY: lambda actual, value: any(each in actual for each in value),
}

_ON_SERVERS = {
    FilterOperator.EQ: "$eq", FilterOperator.IN: "$in", FilterOperator.GT: "$gt", FilterOperator.GTE: "$gte",
    FilterOperator.LT: "$lt", FilterOperator.LTE: "$lte",
}  # fmt: skip
"""MeVe's operators that mean the same."""


def normalize_filters(filters: MetadataFilters | None) -> MetadataFilters | None:
    """Set every missing condition and drop empty groups, so that all stores read the filters alike.

    Returns:
        None if there is nothing to filter by.

    Raises:
        ConfigurationError: the value isn't MetadataFilters.
    """
    if filters is None:
        return None
    if not isinstance(filters, MetadataFilters):
        raise ConfigurationError(f"filters must be MetadataFilters, got {filters!r:.80}")
    parts = [normalize_filters(each) if isinstance(each, MetadataFilters) else each for each in filters.filters]
    kept = [each for each in parts if each is not None]
    return MetadataFilters(filters=kept, condition=filters.condition or FilterCondition.AND) if kept else None


def has_nested_filters(filters: MetadataFilters) -> bool:
    return any(isinstance(each, MetadataFilters) for each in filters.filters)


class NamedPredicate:
    """The predicate of filters, with the names of metadata that they read, so that MeVe can tell an unknown one."""

    def __init__(self, filters: MetadataFilters) -> None:
        self._filters = filters
        self.metadata_names = sorted(_iter_names(filters))
        self._test = filter_predicate(filters)

    def __call__(self, metadata: Mapping[str, Any]) -> bool:
        return self._test(metadata)

    def as_mapping(self) -> dict[str, dict[str, Any]]:
        """Return the filters as a mapping, for a server, which can't call a function.

        In a mapping, a list in the metadata matches by any of its values.

        Raises:
            ConfigurationError: a condition that no mapping expresses.
        """
        wanted: dict[str, dict[str, Any]] = {}
        for each in _list_joined(self._filters):
            operator, is_list = _ON_SERVERS.get(each.operator), isinstance(each.value, list)
            if operator is None or operator in wanted.setdefault(each.key, {}) or is_list != (operator == "$in"):
                raise _not_on_servers(each)
            wanted[each.key][operator] = each.value
        return wanted


def _list_joined(filters: MetadataFilters) -> Iterator[MetadataFilter]:
    """Yield the conditions of filters that must all hold."""
    is_alone = len(filters.filters) == 1 and filters.condition == FilterCondition.OR
    if filters.condition != FilterCondition.AND and not is_alone:
        raise _not_on_servers(filters)
    for each in filters.filters:
        if isinstance(each, MetadataFilters):
            yield from _list_joined(each)
        else:
            yield each


def _not_on_servers(part: MetadataFilter | MetadataFilters) -> ConfigurationError:
    return ConfigurationError(
        "filters over a server must all hold (condition AND), with ==, in, >, >=, < and <=, each once for a key, got "
        f"{part!r:.120}"
    )


def _iter_names(filters: MetadataFilters) -> Iterator[str]:
    for each in filters.filters:
        if isinstance(each, MetadataFilters):
            yield from _iter_names(each)
        elif each.operator != FilterOperator.IS_EMPTY:
            yield each.key


def filter_predicate(filters: MetadataFilters) -> Callable[[Mapping[str, Any]], bool]:
    """Return a predicate that tests metadata by the filters.

    A missing value passes only `!=`, `nin` and `is_empty`, as in LlamaIndex's own stores.

    Raises:
        ConfigurationError: from the predicate: the values can't be compared.
    """

    def predicate(metadata: Mapping[str, Any]) -> bool:
        results = [
            filter_predicate(each)(metadata) if isinstance(each, MetadataFilters) else _meets(each, metadata)
            for each in filters.filters
        ]
        if filters.condition == FilterCondition.OR:
            return any(results) or not results
        if filters.condition == FilterCondition.NOT:
            return not any(results)
        return all(results)

    return predicate


def _meets(condition: MetadataFilter, metadata: Mapping[str, Any]) -> bool:
    actual = metadata.get(condition.key)
    if condition.operator == FilterOperator.IS_EMPTY:
        return actual is None or actual in ("", [])
    if actual is None:
        return condition.operator in (FilterOperator.NE, FilterOperator.NIN)
    try:
        return bool(_OPERATORS[condition.operator](actual, condition.value))
    except (KeyError, TypeError) as cause:
        raise ConfigurationError(
            f"the filter {condition.key} {condition.operator.value} {condition.value!r:.60} can't be applied to the "
            f"value {actual!r:.60}: {cause}"
        ) from cause
