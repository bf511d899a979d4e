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
        self.metadata_names = sorted(_iter_names(filters))
        self._test = filter_predicate(filters)

    def __call__(self, metadata: Mapping[str, Any]) -> bool:
        return self._test(metadata)


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
