"""Rules of searches without a question: filters and pages."""

from typing import Any, TypeAlias

import pytest

from tests.langchain_integration.graph_store_contract.store_client import StoreClient

CUPS: dict[str, dict[str, Any]] = {
    "a": {"kind": "tea", "cups": 1, "size": 1, "day": "2026-01-05"},
    "b": {"kind": "tea", "cups": 2.5, "size": 2.5, "day": "2026-02-01"},
    "c": {"kind": "cacao", "cups": 3, "size": 3, "day": "2026-10-01", "made": {"by": "Ann", "hot": True}},
    "d": {"kind": "TEA", "size": 0, "day": "2025-12-31"},
}

Asked: TypeAlias = tuple[dict[str, Any], list[str]]
"""A filter, and the keys that it admits."""


class FilterAndPageRules:
    """A search without a question finds what lies under a prefix, and what a filter admits."""

    def _filtered(self, client: StoreClient, filter: dict[str, Any]) -> list[str]:
        for key, value in CUPS.items():
            client.put(client.at("cups"), key, value)
        return sorted(client.keys(client.at("cups"), filter=filter))

    def test_ten_are_found_unless_told(self, client: StoreClient) -> None:
        """A search finds ten, or as many as `limit` says."""
        for n in range(12):
            client.put(client.at("docs"), f"k{n}", {"n": n})
        assert len(client.search(client.at("docs"))) == 10
        assert len(client.search(client.at("docs"), limit=100)) == 12
        assert client.search(client.at("docs"), limit=0) == []

    def test_pages_cover_everything_once(self, client: StoreClient) -> None:
        """Pages hold each item once, with a filter too."""
        for n in range(11):
            client.put(client.at("docs", f"s{n % 3}"), f"k{n:02}", {"even": n % 2 == 0})
        for filter, size in ((None, 11), ({"even": True}, 6)):
            pages = [client.keys(client.at("docs"), limit=4, offset=offset, filter=filter) for offset in (0, 4, 8, 12)]
            found = [key for page in pages for key in page]
            assert len(found) == len(set(found)) == size

    def test_filters_ask_for_values(self, client: StoreClient) -> None:
        """A filter asks for values by name, nested ones too; all of it must hold."""
        asked: list[Asked] = [
            ({"kind": "tea"}, ["a", "b"]),
            ({"kind": "tea", "cups": 1}, ["a"]),
            ({"made": {"by": "Ann"}}, ["c"]),
            ({"absent": "x"}, []),
            ({}, ["a", "b", "c", "d"]),
        ]
        for filter, found in asked:
            assert self._filtered(client, filter) == found

    def test_operators_compare_numbers(self, client: StoreClient) -> None:
        """`$eq $ne $gt $gte $lt $lte` compare numbers; several of them must all hold."""
        asked: list[Asked] = [
            ({"size": {"$eq": 3}}, ["c"]),
            ({"kind": {"$eq": "tea"}, "size": {"$ne": 1}}, ["b"]),
            ({"kind": {"$ne": "TEA"}, "size": {"$gt": 1}}, ["b", "c"]),
            ({"size": {"$gte": 2.5}}, ["b", "c"]),
            ({"size": {"$gt": 1, "$lt": 3}}, ["b"]),
        ]
        for filter, found in asked:
            assert self._filtered(client, filter) == found

    def test_a_missing_value_is_neither_more_nor_less(self, client: StoreClient) -> None:
        """A value without a name matches neither more nor less than a number, and is no error."""
        assert self._filtered(client, {"cups": {"$gte": 0}}) == ["a", "b", "c"]
        assert self._filtered(client, {"cups": {"$lte": 0}}) == []
        assert self._filtered(client, {"absent": {"$gte": 0}}) == []

    def test_operators_compare_texts(self, client: StoreClient) -> None:
        """`$gt $gte $lt $lte` compare texts as texts: days in ISO order."""
        asked: list[Asked] = [
            ({"day": {"$gt": "2026-01-31"}}, ["b", "c"]),
            ({"day": {"$lte": "2026-02-01"}}, ["a", "b", "d"]),
        ]
        for filter, found in asked:
            assert self._filtered(client, filter) == found

    def test_what_cannot_be_compared_does_not_match(self, client: StoreClient) -> None:
        """A text is neither more nor less than a number, and that is no error."""
        for key, value in {"t": "many", "l": [5], "m": {"n": 5}, "y": 5}.items():
            client.put(client.at("docs"), key, {"n": value})
        assert client.keys(client.at("docs"), filter={"n": {"$gt": 1}}) == ["y"]
        assert client.keys(client.at("docs"), filter={"n": {"$lt": "n"}}) == ["t"]

    def test_an_unknown_operator_is_an_error(self, client: StoreClient) -> None:
        """An operator that isn't known is an error, and not an empty answer."""
        with pytest.raises(ValueError, match=r"\$near"):
            self._filtered(client, {"cups": {"$near": 2}})

    def test_what_a_filter_asks_is_data(self, client: StoreClient) -> None:
        """Quotes and signs in a filter's values are text, and nothing else."""
        client.put(client.at("docs"), "plain", {"kind": "x"})
        for odd in ("x' OR '1'='1", 'x" OR 1=1 --', "a b", "naïve", "x') --"):
            client.put(client.at("docs"), odd, {"kind": odd})
            assert client.keys(client.at("docs"), filter={"kind": odd}) == [odd]
            assert client.keys(client.at("docs"), filter={"kind": {"$eq": odd}}) == [odd]

    def test_any_name_can_be_asked_for(self, client: StoreClient) -> None:
        """A filter asks for any name that a value has: with dots, spaces, quotes."""
        client.put(client.at("docs"), "plain", {"kind": "x"})
        for odd in ("a.b", "a b", "a'b", 'a"b', "naïve", "$"):
            client.put(client.at("docs"), odd, {odd: "x"})
            assert client.keys(client.at("docs"), filter={odd: "x"}) == [odd]
