"""Rules of keys and values."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from tests.langchain_integration.graph_store_contract.store_client import StoreClient

PLAIN = {"text": "tea", "n": 3, "x": 1.5, "on": True, "off": None, "list": [1, "a", {"b": []}], "deep": {"e": {}}}
ODD = ("", " ", "a.b", "ключ", "🍅", "a'b\"c", "a%b_c", "*", "a/b", "[0]", "-- ;", "A", "a")


class KeyAndValueRules:
    """A value lies under a key until it is deleted."""

    def test_what_is_put_is_got(self, client: StoreClient) -> None:
        """What is put is got: namespace, key and value."""
        client.put(client.at("docs", "one"), "k", PLAIN)
        found = client.get(client.at("docs", "one"), "k")
        assert (found.namespace, found.key, found.value) == (client.at("docs", "one"), "k", PLAIN)

    def test_what_is_found_is_what_was_put(self, client: StoreClient) -> None:
        """What a search finds is what was put, its namespace a tuple too."""
        client.put(client.at("docs", "one"), "k", PLAIN)
        (found,) = client.search(client.at("docs"))
        assert (found.namespace, found.key, found.value) == (client.at("docs", "one"), "k", PLAIN)

    def test_an_unknown_key_is_none(self, client: StoreClient) -> None:
        """A key under which nothing lies is None, and no error."""
        client.put(client.at("docs"), "k", {"n": 1})
        assert client.get(client.at("docs"), "other") is None
        assert client.get(client.at("other"), "k") is None

    def test_a_value_takes_anothers_place(self, client: StoreClient) -> None:
        """A value takes the place of the one before: nothing of that is left."""
        client.put(client.at("docs"), "k", {"old": 1})
        client.put(client.at("docs"), "k", {"new": 2})
        assert client.value(client.at("docs"), "k") == {"new": 2}
        assert client.keys(client.at("docs")) == ["k"]

    def test_a_key_in_two_namespaces_is_two(self, client: StoreClient) -> None:
        """One key in two namespaces is two items."""
        client.put(client.at("docs"), "k", {"n": 1})
        client.put(client.at("docs", "sub"), "k", {"n": 2})
        client.delete(client.at("docs"), "k")
        assert client.value(client.at("docs", "sub"), "k") == {"n": 2}

    def test_any_text_is_a_key(self, client: StoreClient) -> None:
        """Any text is a key, and none is taken for another."""
        for n, each in enumerate(ODD):
            client.put(client.at("docs"), each, {"n": n})
        assert [client.value(client.at("docs"), each) for each in ODD] == [{"n": n} for n in range(len(ODD))]

    def test_deleting_leaves_nothing(self, client: StoreClient) -> None:
        """What is deleted is neither got nor found; deleting what isn't there is no error."""
        client.put(client.at("docs"), "k", {"n": 1})
        client.delete(client.at("docs"), "k")
        client.delete(client.at("docs"), "k")
        assert client.get(client.at("docs"), "k") is None
        assert client.search(client.at("docs")) == []

    def test_moments_are_aware_and_true(self, client: StoreClient) -> None:
        """When an item was made and changed has a time zone, and is the present, to two seconds."""
        client.put(client.at("docs"), "k", {"n": 1})
        found = client.get(client.at("docs"), "k")
        for moment in (found.created_at, found.updated_at):
            assert moment.tzinfo is not None
            assert abs(moment - self.present()) < timedelta(seconds=2)

    def test_creation_stays_over_updates(self, client: StoreClient, wait: Callable[[float], None]) -> None:
        """A new value moves `updated_at`, and leaves `created_at`."""
        client.put(client.at("docs"), "k", {"n": 1})
        before = client.get(client.at("docs"), "k")
        wait(1.1)
        client.put(client.at("docs"), "k", {"n": 2})
        after = client.get(client.at("docs"), "k")
        assert after.created_at == before.created_at
        assert after.updated_at > before.updated_at

    def test_what_is_got_is_a_copy(self, client: StoreClient) -> None:
        """What becomes of a value that was got, or found, changes nothing that is stored."""
        client.put(client.at("docs"), "k", {"list": [1]})
        client.get(client.at("docs"), "k").value["list"].append(2)
        client.search(client.at("docs"))[0].value["list"].append(3)
        assert client.value(client.at("docs"), "k") == {"list": [1]}
        assert [item.value for item in client.search(client.at("docs"))] == [{"list": [1]}]

    def test_what_was_put_is_a_copy(self, client: StoreClient) -> None:
        """What becomes of a value after it was put changes nothing that is stored."""
        value = {"list": [1]}
        client.put(client.at("docs"), "k", value)
        value["list"].append(2)
        assert client.value(client.at("docs"), "k") == {"list": [1]}

    def present(self) -> datetime:
        """The time; for a store with a clock of its own, by that."""
        return datetime.now(UTC)
