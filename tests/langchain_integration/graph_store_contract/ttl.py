"""Rules of how long items live. Lives here are of a second or more, since some stores count in seconds."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from langgraph.store.base import PutOp

from tests.langchain_integration.graph_store_contract.store_client import StoreClient

SECOND = 1 / 60
"""In minutes, in which a TTL is given."""


class TtlRules:
    """What has expired is never handed out."""

    def test_a_ttl_holds_or_is_refused(self, client: StoreClient, wait: Callable[[float], None]) -> None:
        """A TTL is kept, or refused; it is never taken and forgotten, by `put` or by `batch`."""
        with suppress(NotImplementedError, ValueError):
            client.put(client.at("docs"), "put", {"n": 1}, ttl=SECOND)
        with suppress(NotImplementedError, ValueError):
            client.batch([PutOp(client.at("docs"), "batch", {"n": 1}, None, SECOND)])
        wait(2.1)
        _swept(client)
        assert client.get(client.at("docs"), "put") is None
        assert client.get(client.at("docs"), "batch") is None

    @pytest.mark.usefixtures("expiring")
    def test_what_is_over_is_not_got(self, client: StoreClient, wait: Callable[[float], None]) -> None:
        """What has expired isn't got, with or without a sweep."""
        client.put(client.at("docs"), "k", {"n": 1}, ttl=SECOND)
        wait(2.1)
        assert client.get(client.at("docs"), "k") is None

    @pytest.mark.usefixtures("expiring")
    def test_what_is_over_is_not_found(self, client: StoreClient, wait: Callable[[float], None]) -> None:
        """What has expired isn't found, with a question or without."""
        client.put(client.at("docs"), "k", {"text": "zebra"}, ttl=SECOND)
        wait(2.1)
        assert client.search(client.at("docs")) == []
        assert client.search(client.at("docs"), query="zebra") == []

    @pytest.mark.usefixtures("expiring")
    def test_what_is_over_is_not_listed(self, client: StoreClient, wait: Callable[[float], None]) -> None:
        """A namespace whose items have all expired isn't listed."""
        client.put(client.at("docs"), "k", {"n": 1}, ttl=SECOND)
        client.put(client.at("kept"), "k", {"n": 1})
        wait(2.1)
        assert client.namespaces() == [client.at("kept")]

    @pytest.mark.usefixtures("expiring")
    def test_pages_are_full_beside_what_is_over(self, client: StoreClient, wait: Callable[[float], None]) -> None:
        """What has expired takes no room in a page."""
        for n in range(4):
            client.put(client.at("docs"), f"old{n}", {"text": "zebra"}, ttl=SECOND)
            client.put(client.at("docs"), f"new{n}", {"text": "zebra"})
        wait(2.1)
        pages = [client.keys(client.at("docs"), limit=2, offset=offset) for offset in (0, 2, 4)]
        assert sorted(key for page in pages for key in page) == [f"new{n}" for n in range(4)]
        assert len(pages[1]) == 2

    @pytest.mark.usefixtures("expiring")
    def test_what_is_over_can_be_put_anew(self, client: StoreClient, wait: Callable[[float], None]) -> None:
        """A key whose value has expired takes another, which is new."""
        client.put(client.at("docs"), "k", {"n": 1}, ttl=SECOND)
        before = client.get(client.at("docs"), "k", refresh_ttl=False)
        wait(2.1)
        client.put(client.at("docs"), "k", {"n": 2})
        after = client.get(client.at("docs"), "k")
        assert after.value == {"n": 2}
        assert after.created_at > before.created_at

    @pytest.mark.usefixtures("expiring")
    def test_a_value_without_ttl_ends_it(self, client: StoreClient, wait: Callable[[float], None]) -> None:
        """A value that is put without a TTL in place of one with lives on."""
        client.put(client.at("docs"), "k", {"n": 1}, ttl=SECOND)
        client.put(client.at("docs"), "k", {"n": 2})
        wait(2.1)
        assert client.value(client.at("docs"), "k") == {"n": 2}

    @pytest.mark.usefixtures("expiring")
    def test_reading_refreshes_if_asked(self, client: StoreClient, wait: Callable[[float], None]) -> None:
        """A reading with `refresh_ttl=True` starts the TTL anew; one with False leaves it."""
        for label in ("got", "found", "left"):
            client.put(client.at(label), "k", {"n": 1}, ttl=4 * SECOND)
        wait(2.5)
        client.get(client.at("got"), "k", refresh_ttl=True)
        client.search(client.at("found"), refresh_ttl=True)
        client.get(client.at("left"), "k", refresh_ttl=False)
        client.search(client.at("left"), refresh_ttl=False)
        wait(2.6)
        _swept(client)
        found = {label: client.get(client.at(label), "k", refresh_ttl=False) for label in ("got", "found", "left")}
        assert {label for label, item in found.items() if item is not None} == {"got", "found"}


def _swept(client: StoreClient) -> None:
    """A store that needs it has swept away what is over."""
    sweep = getattr(client.store, "sweep_ttl", None)
    if sweep is not None and client.runner is None:
        sweep()
    elif sweep is not None and client.runner is not None:
        client.runner.run(sweep())
