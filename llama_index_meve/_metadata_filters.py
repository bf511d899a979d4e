"""LlamaIndex's metadata filters as a function of metadata: every operator, nested as deep as one likes."""

from collections.abc import Callable, Mapping
from typing import Any

from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from meve.errors import ConfigurationError

_OPERATORS: dict[FilterOperator, Callable[[Any, Any], bool]] = {
    FilterOperator.EQ: lambda mine, value: mine == value,
    FilterOperator.NE: lambda mine, value: mine != value,
    FilterOperator.GT: lambda mine, value: mine > value,
    FilterOperator.GTE: lambda mine, value: mine >= value,
    FilterOperator.LT: lambda mine, value: mine < value,
    FilterOperator.LTE: lambda mine, value: mine <= value,
    FilterOperator.IN: lambda mine, value: mine in value,
    FilterOperator.NIN: lambda mine, value: mine not in value,
    FilterOperator.CONTAINS: lambda mine, value: value in mine,
    FilterOperator.TEXT_MATCH: lambda mine, value: str(value) in str(mine),
    FilterOperator.TEXT_MATCH_INSENSITIVE: lambda mine, value: str(value).lower() in str(mine).lower(),
    FilterOperator.ALL: lambda mine, value: all(each in mine for each in value),
    FilterOperator.ANY: lambda mine, value: any(each in mine for each in value),
}


def normal(filters: MetadataFilters | None) -> MetadataFilters | None:
    """The same filters, said so that every store understands them alike: a condition everywhere, no empty group.

    Returns:
        None where nothing is asked.

    Raises:
        ConfigurationError: something that is no filter.
    """
    if filters is None:
        return None
    if not isinstance(filters, MetadataFilters):
        raise ConfigurationError(f"filters is {filters!r:.80}: give MetadataFilters")
    parts = [normal(one) if isinstance(one, MetadataFilters) else one for one in filters.filters]
    kept = [one for one in parts if one is not None]
    return MetadataFilters(filters=kept, condition=filters.condition or FilterCondition.AND) if kept else None


def nested(filters: MetadataFilters) -> bool:
    """Whether there are filters within them."""
    return any(isinstance(one, MetadataFilters) for one in filters.filters)


def admits(filters: MetadataFilters) -> Callable[[Mapping[str, Any]], bool]:
    """Whether metadata passes. A missing value passes `!=`, `nin` and `is_empty` alone, as in LlamaIndex's own stores.

    Raises:
        ConfigurationError: something that is no filter; and, when asked, values that can't be compared.
    """
    if not isinstance(filters, MetadataFilters):
        raise ConfigurationError(f"filters is {filters!r:.80}: give MetadataFilters")
    return lambda metadata: _passes(filters, metadata)


def _passes(filters: MetadataFilters, metadata: Mapping[str, Any]) -> bool:
    each = [
        _passes(one, metadata) if isinstance(one, MetadataFilters) else _holds(one, metadata) for one in filters.filters
    ]
    if filters.condition == FilterCondition.OR:
        return any(each) or not each
    if filters.condition == FilterCondition.NOT:
        return not any(each)
    return all(each)


def _holds(one: MetadataFilter, metadata: Mapping[str, Any]) -> bool:
    mine = metadata.get(one.key)
    if one.operator == FilterOperator.IS_EMPTY:
        return mine is None or mine in ("", [])
    if mine is None:
        return one.operator in (FilterOperator.NE, FilterOperator.NIN)
    try:
        return bool(_OPERATORS[one.operator](mine, one.value))
    except (KeyError, TypeError) as cause:
        raise ConfigurationError(
            f"the filter {one.key} {one.operator.value} {one.value!r:.60} can't be asked of {mine!r:.60}: {cause}"
        ) from cause
