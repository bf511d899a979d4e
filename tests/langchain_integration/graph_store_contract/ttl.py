"""Contract rules of TTL; the TTLs here are a second or more, since some stores count in seconds."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from langgraph.store.base import PutOp

from tests.langchain_integration.graph_store_contract.store_client import StoreClient

SECOND = 1 / 60
"""One second in minutes, the unit of a TTL."""


class TtlRules:
    """Expired items are never returned."""

    def test_ttl_is_applied_or_refused(self, client: StoreClient, wait: Callable[[float], None]) -> None:
        """`put` and `batch` apply or refuse a TTL, but never ignore it."""
        with suppress(NotImplementedError, ValueError):
            client.put(client.ns("docs"), "put", {"n": 1}, ttl=SECOND)
        with suppress(NotImplementedError, ValueError):
            client.batch([PutOp(client.ns("docs"), "batch", {"n": 1}, None, SECOND)])
        wait(2.1)
        _sweep(client)
        assert client.get(client.ns("docs"), "put") is None
        assert client.get(client.ns("docs"), "batch") is None

    @pytest.mark.usefixtures("expiring")
    def test_expired_item_is_not_returned_by_get(self, client: StoreClient, wait: Callable[[float], None]) -> None:
        """`get` returns no expired item, even before a sweep."""
        client.put(client.ns("docs"), "k", {"n": 1}, ttl=SECOND)
        wait(2.1)
        assert client.get(client.ns("docs"), "k") is None

    @pytest.mark.usefixtures("expiring")
    def test_expired_item_is_not_returned_by_search(self, client: StoreClient, wait: Callable[[float], None]) -> None:
        """`search` returns no expired item, with or without a query."""
        client.put(client.ns("docs"), "k", {"text": "zebra"}, ttl=SECOND)
        wait(2.1)
        assert client.search(client.ns("docs")) == []
        assert client.search(client.ns("docs"), query="zebra") == []

    @pytest.mark.usefixtures("expiring")
    def test_namespace_of_expired_items_is_not_listed(self, client: StoreClient, wait: Callable[[float], None]) -> None:
        """A namespace whose items have all expired isn't listed."""
        client.put(client.ns("docs"), "k", {"n": 1}, ttl=SECOND)
        client.put(client.ns("kept"), "k", {"n": 1})
        wait(2.1)
        assert client.namespaces() == [client.ns("kept")]

    @pytest.mark.usefixtures("expiring")
    def test_expired_items_take_no_place_in_pages(self, client: StoreClient, wait: Callable[[float], None]) -> None:
        """Expired items take no place in a page."""
        for n in range(4):
            client.put(client.ns("docs"), f"old{n}", {"text": "zebra"}, ttl=SECOND)
            client.put(client.ns("docs"), f"new{n}", {"text": "zebra"})
        wait(2.1)
        pages = [client.keys(client.ns("docs"), limit=2, offset=offset) for offset in (0, 2, 4)]
        assert sorted(key for page in pages for key in page) == [f"new{n}" for n in range(4)]
        assert len(pages[1]) == 2

    @pytest.mark.usefixtures("expiring")
    def test_expired_key_can_be_put_again(self, client: StoreClient, wait: Callable[[float], None]) -> None:
        """A key whose item has expired can be put again, as a new item."""
        client.put(client.ns("docs"), "k", {"n": 1}, ttl=SECOND)
        before = client.get(client.ns("docs"), "k", refresh_ttl=False)
        wait(2.1)
        client.put(client.ns("docs"), "k", {"n": 2})
        after = client.get(client.ns("docs"), "k")
        assert after.value == {"n": 2}
        assert after.created_at > before.created_at

    @pytest.mark.usefixtures("expiring")
    def test_put_without_ttl_removes_ttl(self, client: StoreClient, wait: Callable[[float], None]) -> None:
        """A `put` without a TTL removes that of the old item."""
        client.put(client.ns("docs"), "k", {"n": 1}, ttl=SECOND)
        client.put(client.ns("docs"), "k", {"n": 2})
        wait(2.1)
        assert client.value(client.ns("docs"), "k") == {"n": 2}

    @pytest.mark.usefixtures("expiring")
    def test_read_restarts_ttl_if_refresh_ttl(self, client: StoreClient, wait: Callable[[float], None]) -> None:
        """A read with `refresh_ttl=True` restarts the TTL; one with False doesn't."""
        for label in ("read", "searched", "unrefreshed"):
            client.put(client.ns(label), "k", {"n": 1}, ttl=4 * SECOND)
        wait(2.5)
        client.get(client.ns("read"), "k", refresh_ttl=True)
        client.search(client.ns("searched"), refresh_ttl=True)
        client.get(client.ns("unrefreshed"), "k", refresh_ttl=False)
        client.search(client.ns("unrefreshed"), refresh_ttl=False)
        wait(2.6)
        _sweep(client)
        items = {
            label: client.get(client.ns(label), "k", refresh_ttl=False) for label in ("read", "searched", "unrefreshed")
        }
        assert {label for label, item in items.items() if item is not None} == {"read", "searched"}


def _sweep(client: StoreClient) -> None:
    """Sweep a store that only expires items by a sweep."""
    sweep = getattr(client.store, "sweep_ttl", None)
    if sweep is not None and client.runner is None:
        sweep()
    elif sweep is not None and client.runner is not None:
        client.runner.run(sweep())
