"""Rules of namespaces: what they may be, and how they are listed."""

from typing import Any

import pytest
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp

from tests.langchain_integration.graph_store_contract.store_client import StoreClient

REFUSED: tuple[tuple[str, ...], ...] = ((), ("langgraph",), ("langgraph", "x"))


class NamespaceRules:
    """Namespaces are tuples of labels, and their borders hold."""

    def test_labels_may_hold_dots(self, client: StoreClient) -> None:
        """A label may hold dots, as mail addresses do."""
        for label in ("bob@example.com", "a.b", "v1.2.3", "."):
            client.put(client.at("docs", label), "k", {"n": 1})
            assert client.get(client.at("docs", label), "k").namespace == client.at("docs", label)

    def test_labels_may_be_ints(self, client: StoreClient) -> None:
        """A label may be an int, and comes back as one."""
        for label in (1, 0, -7, 2**70):
            client.put(client.at("docs", label), "k", {"n": 1})
            assert client.get(client.at("docs", label), "k").namespace == client.at("docs", label)

    def test_a_dot_is_no_border(self, client: StoreClient) -> None:
        """A label with a dot never addresses a namespace of two labels, in `batch` either."""
        client.put(client.at("docs", "a", "b"), "k", {"n": 1})
        try:
            found = client.batch([GetOp(client.at("docs", "a.b"), "k")])[0]
        except ValueError:
            found = None
        assert found is None

    def test_some_namespaces_are_refused(self, client: StoreClient) -> None:
        """An empty namespace, and LangGraph's own, are refused by `put`."""
        for namespace in REFUSED:
            with pytest.raises(ValueError, match=r"(?i)namespace"):
                client.put(namespace, "k", {"n": 1})

    def test_a_batch_refuses_them_too(self, client: StoreClient) -> None:
        """An empty namespace, and LangGraph's own, are refused by `batch`."""
        for namespace in REFUSED:
            with pytest.raises(ValueError, match=r"(?i)namespace"):
                client.batch([PutOp(namespace, "k", {"n": 1})])

    def test_labels_of_other_kinds_are_refused(self, client: StoreClient) -> None:
        """A label that is neither text nor an int is refused, by `batch` too."""
        kinds: tuple[Any, ...] = (None, 1.5, b"x", ("a",))
        for label in kinds:
            with pytest.raises((ValueError, TypeError)):
                client.batch([PutOp(client.at("docs", label), "k", {"n": 1})])

    def test_a_prefix_ends_at_a_border(self, client: StoreClient) -> None:
        """A prefix finds whole labels only, and minds upper and lower case."""
        for n, label in enumerate(["doc", "docs", "Doc", "doc s"]):
            client.put(client.at(label, "x"), f"k{n}", {"n": n})
        assert client.keys(client.at("doc")) == ["k0"]

    def test_wild_cards_are_plain_in_a_search(self, client: StoreClient) -> None:
        """A `%`, `_` or `*` in the prefix of a search stands for itself."""
        labels = ("a1", "ab", "a%", "a_", "*", "%", "_b", "a\\")
        for label in labels:
            client.put(client.at(label, "x"), label, {"n": 1})
        assert [client.keys(client.at(label)) for label in labels] == [[label] for label in labels]

    def test_a_prefix_finds_what_lies_deeper(self, client: StoreClient) -> None:
        """A prefix finds its own namespace and all below it, and nothing above."""
        for n, labels in enumerate([("a",), ("a", "b"), ("a", "b", "c"), ("b",)]):
            client.put(client.at(*labels), f"k{n}", {"n": n})
        assert sorted(client.keys(client.at("a"))) == ["k0", "k1", "k2"]
        assert sorted(client.keys(client.at("a", "b"))) == ["k1", "k2"]

    def test_namespaces_are_listed_once(self, client: StoreClient) -> None:
        """Each namespace that holds an item is listed once, in order."""
        for n, labels in enumerate([("b",), ("a", "y"), ("a", "x"), ("b",)]):
            client.put(client.at(*labels), f"k{n}", {"n": n})
        assert client.namespaces() == [client.at("a", "x"), client.at("a", "y"), client.at("b")]

    def test_what_is_empty_is_not_listed(self, client: StoreClient) -> None:
        """A namespace whose last item was deleted isn't listed."""
        client.put(client.at("a"), "k", {"n": 1})
        client.delete(client.at("a"), "k")
        client.get(client.at("b"), "k")
        assert client.namespaces() == []

    def test_listings_take_conditions(self, client: StoreClient) -> None:
        """Listings go by prefix and suffix, `*` standing for any one label; of several all must hold."""
        for labels in [("a", "x", "1"), ("a", "y", "1"), ("a", "y", "2"), ("b", "y", "1"), ("ab", "y", "1")]:
            client.put(client.at(*labels), "k", {"n": 1})
        assert client.namespaces("a", "y") == [client.at("a", "y", "1"), client.at("a", "y", "2")]
        assert client.namespaces("*", "x") == [client.at("a", "x", "1")]
        assert client.namespaces("a", suffix=("1",)) == [client.at("a", "x", "1"), client.at("a", "y", "1")]
        assert client.namespaces("a", suffix=("y", "*")) == [client.at("a", "y", "1"), client.at("a", "y", "2")]
        both = [MatchCondition("prefix", client.at("a")), MatchCondition("prefix", client.at("a", "y"))]
        (found,) = client.batch([ListNamespacesOp(tuple(both))])
        assert [tuple(each) for each in found] == [client.at("a", "y", "1"), client.at("a", "y", "2")]

    def test_listings_stop_at_a_depth(self, client: StoreClient) -> None:
        """With `max_depth` namespaces are cut to it, each told once."""
        for labels in [("a", "x", "1"), ("a", "x", "2"), ("a", "y"), ("b",)]:
            client.put(client.at(*labels), "k", {"n": 1})
        found = client.namespaces(max_depth=len(client.at()) + 2)
        assert found == [client.at("a", "x"), client.at("a", "y"), client.at("b")]

    def test_pages_of_a_listing_cover_it(self, client: StoreClient) -> None:
        """Pages of a listing hold each namespace once, cut ones too."""
        for n in range(7):
            for label in ("x", "y"):
                client.put(client.at(f"n{n}", label), "k", {"n": 1})
        deep = len(client.at()) + 1
        pages = [client.namespaces(max_depth=deep, limit=3, offset=offset) for offset in (0, 3, 6, 9)]
        assert [len(page) for page in pages] == [3, 3, 1, 0]
        assert sorted(each for page in pages for each in page) == [client.at(f"n{n}") for n in range(7)]
