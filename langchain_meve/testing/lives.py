"""Rules of how long items live. Lives here are of a second or more, since some stores count in seconds."""

from collections.abc import Awaitable, Callable

import pytest
from langgraph.store.base import PutOp

from langchain_meve.testing.face import Face

SECOND = 1 / 60
"""In minutes, in which a TTL is given."""


class LifeRules:
    """What has expired is never handed out."""

    @pytest.mark.parametrize("way", ["put", "batch"])
    def test_a_ttl_holds_or_is_refused(self, face: Face, wait: Callable[[float], None], way: str) -> None:
        """A TTL is kept, or refused; it is never taken and forgotten, by `put` or by `batch`."""
        try:
            if way == "put":
                face.put(face.at("docs"), "k", {"n": 1}, ttl=SECOND)
            else:
                face.batch([PutOp(face.at("docs"), "k", {"n": 1}, None, SECOND)])
        except (NotImplementedError, ValueError):
            return
        wait(2.1)
        sweep = getattr(face.store, "sweep_ttl", None)
        if sweep is not None:
            sweep() if face.runner is None else face.runner.run(_awaited(sweep))
        assert face.get(face.at("docs"), "k") is None

    @pytest.mark.usefixtures("expiring")
    def test_what_is_over_is_not_got(self, face: Face, wait: Callable[[float], None]) -> None:
        """What has expired isn't got, with or without a sweep."""
        face.put(face.at("docs"), "k", {"n": 1}, ttl=SECOND)
        wait(2.1)
        assert face.get(face.at("docs"), "k") is None

    @pytest.mark.usefixtures("expiring")
    def test_what_is_over_is_not_found(self, face: Face, wait: Callable[[float], None]) -> None:
        """What has expired isn't found, with a question or without."""
        face.put(face.at("docs"), "k", {"text": "zebra"}, ttl=SECOND)
        wait(2.1)
        assert face.search(face.at("docs")) == []
        assert face.search(face.at("docs"), query="zebra") == []

    @pytest.mark.usefixtures("expiring")
    def test_what_is_over_is_not_listed(self, face: Face, wait: Callable[[float], None]) -> None:
        """A namespace whose items have all expired isn't listed."""
        face.put(face.at("docs"), "k", {"n": 1}, ttl=SECOND)
        face.put(face.at("kept"), "k", {"n": 1})
        wait(2.1)
        assert face.namespaces() == [face.at("kept")]

    @pytest.mark.usefixtures("expiring")
    def test_pages_are_full_beside_what_is_over(self, face: Face, wait: Callable[[float], None]) -> None:
        """What has expired takes no room in a page."""
        for n in range(4):
            face.put(face.at("docs"), f"old{n}", {"text": "zebra"}, ttl=SECOND)
            face.put(face.at("docs"), f"new{n}", {"text": "zebra"})
        wait(2.1)
        pages = [face.keys(face.at("docs"), limit=2, offset=offset) for offset in (0, 2, 4)]
        assert sorted(key for page in pages for key in page) == [f"new{n}" for n in range(4)]
        assert len(pages[1]) == 2

    @pytest.mark.usefixtures("expiring")
    def test_what_is_over_can_be_put_anew(self, face: Face, wait: Callable[[float], None]) -> None:
        """A key whose value has expired takes another, which is new."""
        face.put(face.at("docs"), "k", {"n": 1}, ttl=SECOND)
        before = face.get(face.at("docs"), "k", refresh_ttl=False)
        wait(2.1)
        face.put(face.at("docs"), "k", {"n": 2})
        after = face.get(face.at("docs"), "k")
        assert after.value == {"n": 2}
        assert after.created_at > before.created_at

    @pytest.mark.usefixtures("expiring")
    def test_a_value_without_ttl_ends_it(self, face: Face, wait: Callable[[float], None]) -> None:
        """A value that is put without a TTL in place of one with lives on."""
        face.put(face.at("docs"), "k", {"n": 1}, ttl=SECOND)
        face.put(face.at("docs"), "k", {"n": 2})
        wait(2.1)
        assert face.value(face.at("docs"), "k") == {"n": 2}

    @pytest.mark.usefixtures("expiring")
    @pytest.mark.parametrize("way", ["get", "search"])
    def test_reading_refreshes_if_asked(self, face: Face, wait: Callable[[float], None], way: str) -> None:
        """A reading with `refresh_ttl=True` starts the TTL anew; one with False leaves it."""
        for key in ("read", "left"):
            face.put(face.at(key), "k", {"n": 1}, ttl=4 * SECOND)
        wait(2.5)
        for key, refresh in (("read", True), ("left", False)):
            if way == "get":
                face.get(face.at(key), "k", refresh_ttl=refresh)
            else:
                face.search(face.at(key), refresh_ttl=refresh)
        wait(2.6)
        sweep = getattr(face.store, "sweep_ttl", None)
        if sweep is not None:
            sweep() if face.runner is None else face.runner.run(_awaited(sweep))
        assert face.get(face.at("read"), "k", refresh_ttl=False) is not None
        assert face.get(face.at("left"), "k", refresh_ttl=False) is None


async def _awaited(sweep: Callable[[], object]) -> None:
    made = sweep()
    if isinstance(made, Awaitable):
        await made
