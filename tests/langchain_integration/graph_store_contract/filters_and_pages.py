"""Contract rules of searches without a query: filters and pages."""

from typing import Any, TypeAlias

import pytest

from tests.langchain_integration.graph_store_contract.store_client import StoreClient

CUPS: dict[str, dict[str, Any]] = {
    "a": {"kind": "tea", "cups": 1, "size": 1, "day": "2026-01-05"},
    "b": {"kind": "tea", "cups": 2.5, "size": 2.5, "day": "2026-02-01"},
    "c": {"kind": "cacao", "cups": 3, "size": 3, "day": "2026-10-01", "made": {"by": "Ann", "hot": True}},
    "d": {"kind": "TEA", "size": 0, "day": "2025-12-31"},
}

FilterCase: TypeAlias = tuple[dict[str, Any], list[str]]
"""A filter and the keys that match it."""


class FilterAndPageRules:
    """A search without a query returns the items under a prefix that match the filter."""

    def _matching_keys(self, client: StoreClient, filter: dict[str, Any]) -> list[str]:
        for key, value in CUPS.items():
            client.put(client.ns("cups"), key, value)
        return sorted(client.keys(client.ns("cups"), filter=filter))

    def test_search_returns_ten_by_default(self, client: StoreClient) -> None:
        """A search returns ten items, or as many as `limit` says."""
        for n in range(12):
            client.put(client.ns("docs"), f"k{n}", {"n": n})
        assert len(client.search(client.ns("docs"))) == 10
        assert len(client.search(client.ns("docs"), limit=100)) == 12
        assert client.search(client.ns("docs"), limit=0) == []

    def test_pages_cover_each_item_once(self, client: StoreClient) -> None:
        """Pages contain each item once, also with a filter."""
        for n in range(11):
            client.put(client.ns("docs", f"s{n % 3}"), f"k{n:02}", {"even": n % 2 == 0})
        for filter, size in ((None, 11), ({"even": True}, 6)):
            pages = [client.keys(client.ns("docs"), limit=4, offset=offset, filter=filter) for offset in (0, 4, 8, 12)]
            keys = [key for page in pages for key in page]
            assert len(keys) == len(set(keys)) == size

    def test_filter_matches_values(self, client: StoreClient) -> None:
        """A filter matches values by name, nested ones too; all conditions must hold."""
        cases: list[FilterCase] = [
            ({"kind": "tea"}, ["a", "b"]),
            ({"kind": "tea", "cups": 1}, ["a"]),
            ({"made": {"by": "Ann"}}, ["c"]),
            ({"absent": "x"}, []),
            ({}, ["a", "b", "c", "d"]),
        ]
        for filter, keys in cases:
            assert self._matching_keys(client, filter) == keys

    def test_operators_compare_numbers(self, client: StoreClient) -> None:
        """`$eq $ne $gt $gte $lt $lte` compare numbers; several must all hold."""
        cases: list[FilterCase] = [
            ({"size": {"$eq": 3}}, ["c"]),
            ({"kind": {"$eq": "tea"}, "size": {"$ne": 1}}, ["b"]),
            ({"kind": {"$ne": "TEA"}, "size": {"$gt": 1}}, ["b", "c"]),
            ({"size": {"$gte": 2.5}}, ["b", "c"]),
            ({"size": {"$gt": 1, "$lt": 3}}, ["b"]),
        ]
        for filter, keys in cases:
            assert self._matching_keys(client, filter) == keys

    def test_missing_value_matches_no_comparison(self, client: StoreClient) -> None:
        """A missing value matches no comparison with a number, and raises nothing."""
        assert self._matching_keys(client, {"cups": {"$gte": 0}}) == ["a", "b", "c"]
        assert self._matching_keys(client, {"cups": {"$lte": 0}}) == []
        assert self._matching_keys(client, {"absent": {"$gte": 0}}) == []

    def test_operators_compare_strings(self, client: StoreClient) -> None:
        """`$gt $gte $lt $lte` compare strings, such as ISO dates."""
        cases: list[FilterCase] = [
            ({"day": {"$gt": "2026-01-31"}}, ["b", "c"]),
            ({"day": {"$lte": "2026-02-01"}}, ["a", "b", "d"]),
        ]
        for filter, keys in cases:
            assert self._matching_keys(client, filter) == keys

    def test_different_types_match_no_comparison(self, client: StoreClient) -> None:
        """A string matches no comparison with a number, and raises nothing."""
        for key, value in {"t": "many", "l": [5], "m": {"n": 5}, "y": 5}.items():
            client.put(client.ns("docs"), key, {"n": value})
        assert client.keys(client.ns("docs"), filter={"n": {"$gt": 1}}) == ["y"]
        assert client.keys(client.ns("docs"), filter={"n": {"$lt": "n"}}) == ["t"]

    def test_unknown_operator_raises(self, client: StoreClient) -> None:
        """An unknown operator raises an error, instead of matching nothing."""
        with pytest.raises(ValueError, match=r"\$near"):
            self._matching_keys(client, {"cups": {"$near": 2}})

    def test_filter_values_are_literal(self, client: StoreClient) -> None:
        """Quotes and other signs in a filter's values are literal."""
        client.put(client.ns("docs"), "plain", {"kind": "x"})
        for text in ("x' OR '1'='1", 'x" OR 1=1 --', "a b", "naïve", "x') --"):
            client.put(client.ns("docs"), text, {"kind": text})
            assert client.keys(client.ns("docs"), filter={"kind": text}) == [text]
            assert client.keys(client.ns("docs"), filter={"kind": {"$eq": text}}) == [text]

    def test_any_name_can_be_filtered(self, client: StoreClient) -> None:
        """A filter takes any name that a value has: with dots, spaces or quotes."""
        client.put(client.ns("docs"), "plain", {"kind": "x"})
        for text in ("a.b", "a b", "a'b", 'a"b', "naïve", "$"):
            client.put(client.ns("docs"), text, {text: "x"})
            assert client.keys(client.ns("docs"), filter={text: "x"}) == [text]
