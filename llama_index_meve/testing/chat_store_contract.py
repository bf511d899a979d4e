"""All rules of LlamaIndex's chat stores together, and what they need."""

from asyncio import Runner
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, ClassVar, TypeAlias

import pytest
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore

from llama_index_meve.testing.archive import ArchiveRules
from llama_index_meve.testing.contents import ContentRules
from llama_index_meve.testing.pages import PageRules
from llama_index_meve.testing.sessions import SessionRules

Run: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a coroutine on the event loop of the test."""


class ChatStoreContract(ContentRules, SessionRules, PageRules, ArchiveRules):
    """The rules of `AsyncDBChatStore`. The store must be new and empty for each test."""

    archives: ClassVar[bool] = True
    """Whether messages have a status."""
    fails: ClassVar[Mapping[str, str]] = {}
    """Rules that it breaks, by the test's name without `test_`, and why: they must fail, or the suite does."""

    @pytest.fixture
    def store(self) -> AsyncDBChatStore:
        """A new and empty one. What needs a running loop to be closed is closed by `run(…)`."""
        raise NotImplementedError("give a fixture 'store' that returns a new and empty store")

    @pytest.fixture
    def run(self) -> Iterator[Run]:
        """The event loop of one test."""
        with Runner() as made:
            yield made.run

    @pytest.fixture
    def archiving(self) -> None:
        """Skips a store whose messages have no status."""
        if not self.archives:
            pytest.skip("its messages have no status")

    @pytest.fixture(autouse=True)
    def _known(self, request: pytest.FixtureRequest) -> None:
        node = request.node
        why = self.fails.get(node.name.removeprefix("test_")) or self.fails.get(node.originalname.removeprefix("test_"))
        if why is not None:
            request.applymarker(pytest.mark.xfail(reason=why, strict=True))


def rules() -> dict[str, str]:
    """Each rule by its test's name without `test_`, in one line.

    >>> rules()["messages_come_in_the_order_in_which_they_were_added"]
    'Messages come in the order in which they were added, one by one or many at once.'
    """
    found = {name: getattr(ChatStoreContract, name) for name in dir(ChatStoreContract) if name.startswith("test_")}
    return {name.removeprefix("test_"): str(test.__doc__).splitlines()[0] for name, test in found.items()}
