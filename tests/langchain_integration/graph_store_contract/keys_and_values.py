"""Contract rules of keys and values."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from tests.langchain_integration.graph_store_contract.store_client import StoreClient

VALUE = {"text": "tea", "n": 3, "x": 1.5, "on": True, "off": None, "list": [1, "a", {"b": []}], "deep": {"e": {}}}
UNUSUAL_KEYS = ("", " ", "a.b", "ключ", "🍅", "a'b\"c", "a%b_c", "*", "a/b", "[0]", "-- ;", "A", "a")


class KeyAndValueRules:
    """An item is stored under a key until it is deleted."""

    def test_put_item_is_returned_by_get(self, client: StoreClient) -> None:
        """`get` returns namespace, key and value as they were put."""
        client.put(client.ns("docs", "one"), "k", VALUE)
        item = client.get(client.ns("docs", "one"), "k")
        assert (item.namespace, item.key, item.value) == (client.ns("docs", "one"), "k", VALUE)

    def test_put_item_is_returned_by_search(self, client: StoreClient) -> None:
        """`search` returns namespace, key and value as they were put."""
        client.put(client.ns("docs", "one"), "k", VALUE)
        (item,) = client.search(client.ns("docs"))
        assert (item.namespace, item.key, item.value) == (client.ns("docs", "one"), "k", VALUE)

    def test_unknown_key_returns_none(self, client: StoreClient) -> None:
        """`get` of an unknown key returns None."""
        client.put(client.ns("docs"), "k", {"n": 1})
        assert client.get(client.ns("docs"), "other") is None
        assert client.get(client.ns("other"), "k") is None

    def test_second_put_replaces_value(self, client: StoreClient) -> None:
        """A second `put` replaces the whole value."""
        client.put(client.ns("docs"), "k", {"old": 1})
        client.put(client.ns("docs"), "k", {"new": 2})
        assert client.value(client.ns("docs"), "k") == {"new": 2}
        assert client.keys(client.ns("docs")) == ["k"]

    def test_same_key_in_two_namespaces_is_two_items(self, client: StoreClient) -> None:
        """The same key in two namespaces is two items."""
        client.put(client.ns("docs"), "k", {"n": 1})
        client.put(client.ns("docs", "sub"), "k", {"n": 2})
        client.delete(client.ns("docs"), "k")
        assert client.value(client.ns("docs", "sub"), "k") == {"n": 2}

    def test_any_text_is_a_valid_key(self, client: StoreClient) -> None:
        """Any text is a valid key, and different texts are different keys."""
        for n, key in enumerate(UNUSUAL_KEYS):
            client.put(client.ns("docs"), key, {"n": n})
        assert [client.value(client.ns("docs"), key) for key in UNUSUAL_KEYS] == [
            {"n": n} for n in range(len(UNUSUAL_KEYS))
        ]

    def test_deleted_item_is_not_returned(self, client: StoreClient) -> None:
        """A deleted item isn't returned, and deleting a missing key raises nothing."""
        client.put(client.ns("docs"), "k", {"n": 1})
        client.delete(client.ns("docs"), "k")
        client.delete(client.ns("docs"), "k")
        assert client.get(client.ns("docs"), "k") is None
        assert client.search(client.ns("docs")) == []

    def test_timestamps_are_aware_and_current(self, client: StoreClient) -> None:
        """Timestamps have a time zone and are the present time, to two seconds."""
        client.put(client.ns("docs"), "k", {"n": 1})
        item = client.get(client.ns("docs"), "k")
        for timestamp in (item.created_at, item.updated_at):
            assert timestamp.tzinfo is not None
            assert abs(timestamp - self.now()) < timedelta(seconds=2)

    def test_update_keeps_created_at(self, client: StoreClient, wait: Callable[[float], None]) -> None:
        """An update changes `updated_at` and keeps `created_at`."""
        client.put(client.ns("docs"), "k", {"n": 1})
        before = client.get(client.ns("docs"), "k")
        wait(1.1)
        client.put(client.ns("docs"), "k", {"n": 2})
        after = client.get(client.ns("docs"), "k")
        assert after.created_at == before.created_at
        assert after.updated_at > before.updated_at

    def test_changed_returned_value_is_not_stored(self, client: StoreClient) -> None:
        """Changing a returned value doesn't change the stored one."""
        client.put(client.ns("docs"), "k", {"list": [1]})
        client.get(client.ns("docs"), "k").value["list"].append(2)
        client.search(client.ns("docs"))[0].value["list"].append(3)
        assert client.value(client.ns("docs"), "k") == {"list": [1]}
        assert [item.value for item in client.search(client.ns("docs"))] == [{"list": [1]}]

    def test_changed_put_value_is_not_stored(self, client: StoreClient) -> None:
        """Changing a value after `put` doesn't change the stored one."""
        value = {"list": [1]}
        client.put(client.ns("docs"), "k", value)
        value["list"].append(2)
        assert client.value(client.ns("docs"), "k") == {"list": [1]}

    def now(self) -> datetime:
        """Return the current time; override it for a store with its own clock."""
        return datetime.now(UTC)
