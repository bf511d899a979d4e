"""Rules of namespaces: what they may be, and how they are listed."""

from typing import Any

import pytest
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp

from tests.langchain_integration.graph_store_contract.store_client import Face

REFUSED: tuple[tuple[str, ...], ...] = ((), ("langgraph",), ("langgraph", "x"))


class NamespaceRules:
    """Namespaces are tuples of labels, and their borders hold."""

    def test_labels_may_hold_dots(self, face: Face) -> None:
        """A label may hold dots, as mail addresses do."""
        for label in ("bob@example.com", "a.b", "v1.2.3", "."):
            face.put(face.at("docs", label), "k", {"n": 1})
            assert face.get(face.at("docs", label), "k").namespace == face.at("docs", label)

    def test_labels_may_be_ints(self, face: Face) -> None:
        """A label may be an int, and comes back as one."""
        for label in (1, 0, -7, 2**70):
            face.put(face.at("docs", label), "k", {"n": 1})
            assert face.get(face.at("docs", label), "k").namespace == face.at("docs", label)

    def test_a_dot_is_no_border(self, face: Face) -> None:
        """A label with a dot never addresses a namespace of two labels, in `batch` either."""
        face.put(face.at("docs", "a", "b"), "k", {"n": 1})
        try:
            found = face.batch([GetOp(face.at("docs", "a.b"), "k")])[0]
        except ValueError:
            found = None
        assert found is None

    def test_some_namespaces_are_refused(self, face: Face) -> None:
        """An empty namespace, and LangGraph's own, are refused by `put`."""
        for namespace in REFUSED:
            with pytest.raises(ValueError, match=r"(?i)namespace"):
                face.put(namespace, "k", {"n": 1})

    def test_a_batch_refuses_them_too(self, face: Face) -> None:
        """An empty namespace, and LangGraph's own, are refused by `batch`."""
        for namespace in REFUSED:
            with pytest.raises(ValueError, match=r"(?i)namespace"):
                face.batch([PutOp(namespace, "k", {"n": 1})])

    def test_labels_of_other_kinds_are_refused(self, face: Face) -> None:
        """A label that is neither text nor an int is refused, by `batch` too."""
        kinds: tuple[Any, ...] = (None, 1.5, b"x", ("a",))
        for label in kinds:
            with pytest.raises((ValueError, TypeError)):
                face.batch([PutOp(face.at("docs", label), "k", {"n": 1})])

    def test_a_prefix_ends_at_a_border(self, face: Face) -> None:
        """A prefix finds whole labels only, and minds upper and lower case."""
        for n, label in enumerate(["doc", "docs", "Doc", "doc s"]):
            face.put(face.at(label, "x"), f"k{n}", {"n": n})
        assert face.keys(face.at("doc")) == ["k0"]

    def test_wild_cards_are_plain_in_a_search(self, face: Face) -> None:
        """A `%`, `_` or `*` in the prefix of a search stands for itself."""
        labels = ("a1", "ab", "a%", "a_", "*", "%", "_b", "a\\")
        for label in labels:
            face.put(face.at(label, "x"), label, {"n": 1})
        assert [face.keys(face.at(label)) for label in labels] == [[label] for label in labels]

    def test_a_prefix_finds_what_lies_deeper(self, face: Face) -> None:
        """A prefix finds its own namespace and all below it, and nothing above."""
        for n, labels in enumerate([("a",), ("a", "b"), ("a", "b", "c"), ("b",)]):
            face.put(face.at(*labels), f"k{n}", {"n": n})
        assert sorted(face.keys(face.at("a"))) == ["k0", "k1", "k2"]
        assert sorted(face.keys(face.at("a", "b"))) == ["k1", "k2"]

    def test_namespaces_are_listed_once(self, face: Face) -> None:
        """Each namespace that holds an item is listed once, in order."""
        for n, labels in enumerate([("b",), ("a", "y"), ("a", "x"), ("b",)]):
            face.put(face.at(*labels), f"k{n}", {"n": n})
        assert face.namespaces() == [face.at("a", "x"), face.at("a", "y"), face.at("b")]

    def test_what_is_empty_is_not_listed(self, face: Face) -> None:
        """A namespace whose last item was deleted isn't listed."""
        face.put(face.at("a"), "k", {"n": 1})
        face.delete(face.at("a"), "k")
        face.get(face.at("b"), "k")
        assert face.namespaces() == []

    def test_listings_take_conditions(self, face: Face) -> None:
        """Listings go by prefix and suffix, `*` standing for any one label; of several all must hold."""
        for labels in [("a", "x", "1"), ("a", "y", "1"), ("a", "y", "2"), ("b", "y", "1"), ("ab", "y", "1")]:
            face.put(face.at(*labels), "k", {"n": 1})
        assert face.namespaces("a", "y") == [face.at("a", "y", "1"), face.at("a", "y", "2")]
        assert face.namespaces("*", "x") == [face.at("a", "x", "1")]
        assert face.namespaces("a", suffix=("1",)) == [face.at("a", "x", "1"), face.at("a", "y", "1")]
        assert face.namespaces("a", suffix=("y", "*")) == [face.at("a", "y", "1"), face.at("a", "y", "2")]
        both = [MatchCondition("prefix", face.at("a")), MatchCondition("prefix", face.at("a", "y"))]
        (found,) = face.batch([ListNamespacesOp(tuple(both))])
        assert [tuple(each) for each in found] == [face.at("a", "y", "1"), face.at("a", "y", "2")]

    def test_listings_stop_at_a_depth(self, face: Face) -> None:
        """With `max_depth` namespaces are cut to it, each told once."""
        for labels in [("a", "x", "1"), ("a", "x", "2"), ("a", "y"), ("b",)]:
            face.put(face.at(*labels), "k", {"n": 1})
        found = face.namespaces(max_depth=len(face.at()) + 2)
        assert found == [face.at("a", "x"), face.at("a", "y"), face.at("b")]

    def test_pages_of_a_listing_cover_it(self, face: Face) -> None:
        """Pages of a listing hold each namespace once, cut ones too."""
        for n in range(7):
            for label in ("x", "y"):
                face.put(face.at(f"n{n}", label), "k", {"n": 1})
        deep = len(face.at()) + 1
        pages = [face.namespaces(max_depth=deep, limit=3, offset=offset) for offset in (0, 3, 6, 9)]
        assert [len(page) for page in pages] == [3, 3, 1, 0]
        assert sorted(each for page in pages for each in page) == [face.at(f"n{n}") for n in range(7)]
