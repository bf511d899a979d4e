"""Contract rules of namespaces: valid labels, prefixes and listings."""

from typing import Any

import pytest
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp

from tests.langchain_integration.graph_store_contract.store_client import StoreClient

REFUSED: tuple[tuple[str, ...], ...] = ((), ("langgraph",), ("langgraph", "x"))


class NamespaceRules:
    """Namespaces are tuples of labels."""

    def test_label_with_dot_is_accepted(self, client: StoreClient) -> None:
        """A label may contain dots, as e-mail addresses do."""
        for label in ("bob@example.com", "a.b", "v1.2.3", "."):
            client.put(client.ns("docs", label), "k", {"n": 1})
            assert client.get(client.ns("docs", label), "k").namespace == client.ns("docs", label)

    def test_int_label_is_returned_as_int(self, client: StoreClient) -> None:
        """A label may be an int, and is returned as one."""
        for label in (1, 0, -7, 2**70):
            client.put(client.ns("docs", label), "k", {"n": 1})
            assert client.get(client.ns("docs", label), "k").namespace == client.ns("docs", label)

    def test_dot_does_not_separate_labels(self, client: StoreClient) -> None:
        """A dot in a label never addresses a namespace of two labels, also in `batch`."""
        client.put(client.ns("docs", "a", "b"), "k", {"n": 1})
        try:
            item = client.batch([GetOp(client.ns("docs", "a.b"), "k")])[0]
        except ValueError:
            item = None
        assert item is None

    def test_put_refuses_empty_or_reserved_namespace(self, client: StoreClient) -> None:
        """`put` refuses an empty namespace and LangGraph's own."""
        for namespace in REFUSED:
            with pytest.raises(ValueError, match=r"(?i)namespace"):
                client.put(namespace, "k", {"n": 1})

    def test_batch_refuses_empty_or_reserved_namespace(self, client: StoreClient) -> None:
        """`batch` refuses an empty namespace and LangGraph's own."""
        for namespace in REFUSED:
            with pytest.raises(ValueError, match=r"(?i)namespace"):
                client.batch([PutOp(namespace, "k", {"n": 1})])

    def test_label_of_other_type_is_refused(self, client: StoreClient) -> None:
        """A label that is neither a string nor an int is refused, also by `batch`."""
        labels: tuple[Any, ...] = (None, 1.5, b"x", ("a",))
        for label in labels:
            with pytest.raises((ValueError, TypeError)):
                client.batch([PutOp(client.ns("docs", label), "k", {"n": 1})])

    def test_prefix_matches_whole_labels(self, client: StoreClient) -> None:
        """A prefix matches whole labels only, and case matters."""
        for n, label in enumerate(["doc", "docs", "Doc", "doc s"]):
            client.put(client.ns(label, "x"), f"k{n}", {"n": n})
        assert client.keys(client.ns("doc")) == ["k0"]

    def test_wildcards_in_search_prefix_are_literal(self, client: StoreClient) -> None:
        """`%`, `_` and `*` are literal in the prefix of a search."""
        labels = ("a1", "ab", "a%", "a_", "*", "%", "_b", "a\\")
        for label in labels:
            client.put(client.ns(label, "x"), label, {"n": 1})
        assert [client.keys(client.ns(label)) for label in labels] == [[label] for label in labels]

    def test_prefix_matches_deeper_namespaces(self, client: StoreClient) -> None:
        """A prefix matches its own namespace and all below it, and none above."""
        for n, labels in enumerate([("a",), ("a", "b"), ("a", "b", "c"), ("b",)]):
            client.put(client.ns(*labels), f"k{n}", {"n": n})
        assert sorted(client.keys(client.ns("a"))) == ["k0", "k1", "k2"]
        assert sorted(client.keys(client.ns("a", "b"))) == ["k1", "k2"]

    def test_namespaces_are_listed_once_in_order(self, client: StoreClient) -> None:
        """Each namespace with items is listed once, in order."""
        for n, labels in enumerate([("b",), ("a", "y"), ("a", "x"), ("b",)]):
            client.put(client.ns(*labels), f"k{n}", {"n": n})
        assert client.namespaces() == [client.ns("a", "x"), client.ns("a", "y"), client.ns("b")]

    def test_emptied_namespace_is_not_listed(self, client: StoreClient) -> None:
        """A namespace whose last item was deleted isn't listed."""
        client.put(client.ns("a"), "k", {"n": 1})
        client.delete(client.ns("a"), "k")
        client.get(client.ns("b"), "k")
        assert client.namespaces() == []

    def test_listing_filters_by_prefix_and_suffix(self, client: StoreClient) -> None:
        """A listing filters by prefix and suffix, `*` for any label; all conditions must hold."""
        for labels in [("a", "x", "1"), ("a", "y", "1"), ("a", "y", "2"), ("b", "y", "1"), ("ab", "y", "1")]:
            client.put(client.ns(*labels), "k", {"n": 1})
        assert client.namespaces("a", "y") == [client.ns("a", "y", "1"), client.ns("a", "y", "2")]
        assert client.namespaces("*", "x") == [client.ns("a", "x", "1")]
        assert client.namespaces("a", suffix=("1",)) == [
            client.ns("a", "x", "1"),
            client.ns("a", "y", "1"),
        ]
        assert client.namespaces("a", suffix=("y", "*")) == [
            client.ns("a", "y", "1"),
            client.ns("a", "y", "2"),
        ]
        conditions = [
            MatchCondition("prefix", client.ns("a")),
            MatchCondition("prefix", client.ns("a", "y")),
        ]
        (listed,) = client.batch([ListNamespacesOp(tuple(conditions))])
        assert [tuple(each) for each in listed] == [client.ns("a", "y", "1"), client.ns("a", "y", "2")]

    def test_max_depth_cuts_listed_namespaces(self, client: StoreClient) -> None:
        """`max_depth` cuts the listed namespaces, and each is listed once."""
        for labels in [("a", "x", "1"), ("a", "x", "2"), ("a", "y"), ("b",)]:
            client.put(client.ns(*labels), "k", {"n": 1})
        listed = client.namespaces(max_depth=len(client.ns()) + 2)
        assert listed == [client.ns("a", "x"), client.ns("a", "y"), client.ns("b")]

    def test_listing_pages_cover_each_namespace_once(self, client: StoreClient) -> None:
        """Pages of a listing contain each namespace once, also with `max_depth`."""
        for n in range(7):
            for label in ("x", "y"):
                client.put(client.ns(f"n{n}", label), "k", {"n": 1})
        depth = len(client.ns()) + 1
        pages = [client.namespaces(max_depth=depth, limit=3, offset=offset) for offset in (0, 3, 6, 9)]
        assert [len(page) for page in pages] == [3, 3, 1, 0]
        assert sorted(each for page in pages for each in page) == [client.ns(f"n{n}") for n in range(7)]
