"""The contract of LangGraph stores on MeVeStore, for one user and for many, and on LangGraph's own stores."""

from datetime import timedelta
from typing import ClassVar

import pytest

pytest.importorskip("langgraph.store.sqlite", reason="needs langgraph-checkpoint-sqlite, of the dev extra")

from langchain_meve import MeVeStore
from meve.memory import GovernedMemory
from meve.testing.fakes import FakeClock, OverlapVerifier, WordCounter, WordEmbedder
from tests.langchain_integration import langgraph_stores
from tests.langchain_integration.graph_store_contract.contract import GraphStoreContract

TTL = {"omit_expired": True, "refresh_on_read": True}


class TestMeVeStoreOfOneUser(GraphStoreContract):
    options: ClassVar = {"user_id": "alice"}

    @pytest.fixture
    def clock(self):
        return FakeClock()

    @pytest.fixture
    def wait(self, clock):
        return lambda seconds: clock.advance(timedelta(seconds=seconds))

    @pytest.fixture
    def store(self, tmp_path, clock):
        parts = {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter(), "clock": clock}
        self.now = clock.now
        with GovernedMemory.open(tmp_path / "memory.db", **parts) as memory:
            yield MeVeStore(memory, **self.options)


class TestMeVeStore(TestMeVeStoreOfOneUser):
    options: ClassVar = {}
    root = ("memories", "alice")


class TestInMemoryStore(GraphStoreContract):
    fails = langgraph_stores.IN_MEMORY_FAILS

    @pytest.fixture
    def store(self):
        return langgraph_stores.in_memory()


class TestSqliteStore(GraphStoreContract):
    fails = langgraph_stores.SQLITE_FAILS
    modes = ("sync",)

    @pytest.fixture
    def store(self, tmp_path):
        with langgraph_stores.sqlite(str(tmp_path / "store.db"), ttl=TTL) as store:
            yield store


class TestAsyncSqliteStore(GraphStoreContract):
    fails = langgraph_stores.ASYNC_SQLITE_FAILS
    modes = ("async",)

    @pytest.fixture
    def store(self, tmp_path, runner):
        with langgraph_stores.async_sqlite(runner, tmp_path / "store.db", ttl=TTL) as store:
            yield store
