"""Every operator of LlamaIndex's metadata filters, nested, on metadata that may lack the key."""

import pytest
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from llama_index_meve import MeVeRetriever
from llama_index_meve._metadata_filters import NamedPredicate, filter_predicate
from meve import Passage, Retriever
from meve.errors import ConfigurationError
from meve.filters import Filter
from tests.fake_components import make_components

ROWS = [
    {"lang": "en", "year": 2001, "tags": ["air"]},
    {"lang": "EN-gb", "year": 1999, "tags": []},
    {"year": 2010, "tags": ["animal", "air"]},
    {},
]
CASES = [
    ("lang", FilterOperator.EQ, "en"), ("lang", FilterOperator.NE, "en"), ("year", FilterOperator.GT, 2001),
    ("year", FilterOperator.GTE, 2001), ("year", FilterOperator.LT, 2001), ("year", FilterOperator.LTE, 2001),
    ("lang", FilterOperator.IN, ["en", "de"]), ("lang", FilterOperator.NIN, ["en"]),
    ("tags", FilterOperator.CONTAINS, "air"), ("tags", FilterOperator.ALL, ["air", "animal"]),
    ("tags", FilterOperator.ANY, ["animal", "x"]), ("lang", FilterOperator.TEXT_MATCH, "n"),
    ("lang", FilterOperator.TEXT_MATCH_INSENSITIVE, "en"), ("tags", FilterOperator.IS_EMPTY, None),
]  # fmt: skip


@pytest.mark.parametrize(("key", "operator", "value"), CASES)
def test_each_operator_agrees_with_llamaindex(key, operator, value):
    filters = MetadataFilters(filters=[MetadataFilter(key=key, operator=operator, value=value)])
    stock = build_metadata_filter_fn(lambda n: ROWS[int(n)], filters)
    ours = filter_predicate(filters)
    results = [ours(row) for row in ROWS]
    assert results == [bool(stock(str(n))) for n in range(len(ROWS))]
    assert True in results
    assert False in results


def test_nested_conditions():
    """LlamaIndex's own filter function rejects them."""
    english = MetadataFilter(key="lang", value="en")
    old = MetadataFilter(key="year", operator=FilterOperator.LT, value=2000)
    either = MetadataFilters(filters=[english, old], condition=FilterCondition.OR)
    neither = MetadataFilters(filters=[either], condition=FilterCondition.NOT)
    assert [filter_predicate(either)(row) for row in ROWS] == [True, True, False, False]
    assert [filter_predicate(neither)(row) for row in ROWS] == [False, False, True, True]
    dated = MetadataFilter(key="year", operator=FilterOperator.GT, value=0)
    both = MetadataFilters(filters=[neither, dated], condition=FilterCondition.AND)
    assert [filter_predicate(both)(row) for row in ROWS] == [False, False, True, False]
    assert all(filter_predicate(MetadataFilters(filters=[]))(row) for row in ROWS)


def test_filter_that_cannot_be_applied_is_named():
    wrong = filter_predicate(MetadataFilters(filters=[MetadataFilter(key="lang", operator=FilterOperator.GT, value=3)]))
    with pytest.raises(ConfigurationError, match="the filter lang > 3 can't be applied to the value 'en'"):
        wrong(ROWS[0])


def test_filters_hold_over_a_server(tmp_path):
    pytest.importorskip("qdrant_client", reason="Qdrant needs the extra qdrant")
    over = Retriever.over(f"qdrant://{tmp_path}/qdrant", collection="c", **make_components())
    try:
        over.add([Passage(id=str(n), text="The sky is blue.", metadata=row) for n, row in enumerate(ROWS)])
        filters = MetadataFilters(filters=[
            MetadataFilter(key="lang", operator=FilterOperator.IN, value=["en", "EN-gb"]),
            MetadataFilters(filters=[
                MetadataFilter(key="year", operator=FilterOperator.GTE, value=2000),
                MetadataFilter(key="year", operator=FilterOperator.LT, value=2010),
            ]),
        ])  # fmt: skip
        found = MeVeRetriever(over, filters=filters).retrieve("the blue sky")
        assert [result.node.node_id for result in found] == ["0"]
    finally:
        over.close()


@pytest.mark.parametrize(("key", "operator", "value"), CASES)
def test_a_mapping_for_a_server_admits_the_same_or_raises(key, operator, value):
    filters = NamedPredicate(MetadataFilters(filters=[MetadataFilter(key=key, operator=operator, value=value)]))
    if operator.value in ("==", "in", ">", ">=", "<", "<="):
        wanted = Filter(filters.as_mapping())
        assert [wanted.matches(row) for row in ROWS] == [filters(row) for row in ROWS]
    else:
        with pytest.raises(ConfigurationError, match=f"(?s)must all hold.*{key}"):
            filters.as_mapping()


@pytest.mark.parametrize(
    ("condition", "values"), [(FilterCondition.OR, [2001, 1999]), (FilterCondition.NOT, [2001]),
                              (FilterCondition.AND, [2001, 1999]), (FilterCondition.AND, [[2001]])]
)  # fmt: skip
def test_conditions_that_no_mapping_expresses_raise(condition, values):
    filters = MetadataFilters(filters=[MetadataFilter(key="year", value=each) for each in values], condition=condition)
    with pytest.raises(ConfigurationError, match="must all hold"):
        NamedPredicate(filters).as_mapping()
