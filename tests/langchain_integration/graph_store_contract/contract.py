"""All rules of LangGraph stores together, and what they need."""

import time
from asyncio import Runner
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import pytest
from langgraph.store.base import BaseStore

from tests.langchain_integration.graph_store_contract.batches_and_concurrency import BatchAndConcurrencyRules
from tests.langchain_integration.graph_store_contract.filters_and_pages import FilterAndPageRules
from tests.langchain_integration.graph_store_contract.keys_and_values import KeyAndValueRules
from tests.langchain_integration.graph_store_contract.namespaces import NamespaceRules
from tests.langchain_integration.graph_store_contract.semantic_search import SemanticSearchRules
from tests.langchain_integration.graph_store_contract.store_client import StoreClient
from tests.langchain_integration.graph_store_contract.ttl import TtlRules


class GraphStoreContract(
    KeyAndValueRules, NamespaceRules, FilterAndPageRules, SemanticSearchRules, TtlRules, BatchAndConcurrencyRules
):
    """The rules of `langgraph.store.base.BaseStore`, each sync and async.

    The store must be new and empty for each test. If it searches by vectors, its embedder must be
    `meve.testing.fakes.WordEmbedder` (wrapped in `MeVeEmbeddings`), or another to which a text is likest itself.
    """

    root: ClassVar[tuple[Any, ...]] = ()
    """What every namespace begins with; for a store that asks for it."""
    sides: ClassVar[tuple[str, ...]] = ("sync", "async")
    """Which of its methods are tested; a store may have one kind alone."""
    searches: ClassVar[bool] = True
    """Whether it searches by vectors."""
    fails: ClassVar[Mapping[str, str]] = {}
    """Rules that it breaks, by the test's name without `test_`, and why: they must fail, or the suite does."""

    @pytest.fixture
    def store(self) -> BaseStore:
        """A new and empty one. One that needs a running loop is made by `runner.run(…)`."""
        raise NotImplementedError("give a fixture 'store' that returns a new and empty store")

    @pytest.fixture
    def wait(self) -> Callable[[float], None]:
        """Lets seconds pass; for a store with a clock of its own, by moving that."""
        return time.sleep

    @pytest.fixture
    def runner(self) -> Iterator[Runner]:
        """The event loop of one test."""
        with Runner() as made:
            yield made

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Each rule for each side."""
        if "face" in metafunc.fixturenames:
            metafunc.parametrize("face", self.sides, indirect=True)

    @pytest.fixture
    def client(self, request: pytest.FixtureRequest, store: BaseStore, runner: Runner) -> StoreClient:
        """The store, by its sync methods or its async ones."""
        return StoreClient(store, runner if request.param == "async" else None, self.root)

    @pytest.fixture(autouse=True)
    def _known(self, request: pytest.FixtureRequest) -> None:
        why = self.fails.get(request.node.originalname.removeprefix("test_"))
        if why is not None:
            request.applymarker(pytest.mark.xfail(reason=why, strict=True))

    @pytest.fixture
    def searching(self) -> None:
        """Skips a store that doesn't search by vectors."""
        if not self.searches:
            pytest.skip("it doesn't search by vectors")

    @pytest.fixture
    def expiring(self, store: BaseStore) -> None:
        """Skips a store that refuses a TTL."""
        if not store.supports_ttl:
            pytest.skip("it says that it supports no TTL")


def rules() -> dict[str, str]:
    """Each rule by its test's name without `test_`, in one line.

    >>> rules()["what_is_put_is_got"]
    'What is put is got: namespace, key and value.'
    """
    found = {name: getattr(GraphStoreContract, name) for name in dir(GraphStoreContract) if name.startswith("test_")}
    return {name.removeprefix("test_"): str(test.__doc__).splitlines()[0] for name, test in found.items()}
