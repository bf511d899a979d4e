"""The contract suite of LangGraph stores.

Each test is one rule, which its docstring states, and runs on the sync and the async methods. A store declares what it
can't do by its own `supports_ttl` and by `fails`.
"""

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

    A subclass gives the fixture `store`: a new and empty store that embeds by `MeVeEmbeddings(WordEmbedder())`.
    """

    root: ClassVar[tuple[Any, ...]] = ()
    """The first labels of every namespace, for a store that demands them."""
    modes: ClassVar[tuple[str, ...]] = ("sync", "async")
    """The kinds of methods that are tested; a store may have only one."""
    fails: ClassVar[Mapping[str, str]] = {}
    """The rules that the store breaks, by test name without `test_`, and why; these tests must fail."""

    @pytest.fixture
    def wait(self) -> Callable[[float], None]:
        return time.sleep

    @pytest.fixture
    def runner(self) -> Iterator[Runner]:
        with Runner() as runner:
            yield runner

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run each rule in each mode."""
        if "client" in metafunc.fixturenames:
            metafunc.parametrize("client", self.modes, indirect=True)

    @pytest.fixture
    def client(self, request: pytest.FixtureRequest, store: BaseStore, runner: Runner) -> StoreClient:
        return StoreClient(store, runner if request.param == "async" else None, self.root)

    @pytest.fixture(autouse=True)
    def _expect_failure(self, request: pytest.FixtureRequest) -> None:
        reason = self.fails.get(request.node.originalname.removeprefix("test_"))
        if reason is not None:
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))

    @pytest.fixture
    def expiring(self, store: BaseStore) -> None:
        """Skip a store that refuses a TTL."""
        if not store.supports_ttl:
            pytest.skip("the store declares no TTL support")


def list_rules() -> dict[str, str]:
    """Return each rule's statement by its test name without `test_`."""
    tests = {name: getattr(GraphStoreContract, name) for name in dir(GraphStoreContract) if name.startswith("test_")}
    return {name.removeprefix("test_"): str(test.__doc__).splitlines()[0] for name, test in tests.items()}
