"""The contract of LangGraph stores on MeVeStore, for one user and for many, and on LangGraph's own stores.

The comparison table of docs/langgraph-store.md must agree with it.
"""

from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import pytest

pytest.importorskip("langgraph.store.sqlite", reason="needs langgraph-checkpoint-sqlite, of the dev extra")

from langchain_meve import MeVeStore
from tests.langchain_integration import langgraph_stores
from tests.langchain_integration.graph_store_contract.contract import GraphStoreContract, list_rules

PAGE = Path(__file__).resolve().parents[2] / "docs" / "langgraph-store.md"
TTL = {"omit_expired": True, "refresh_on_read": True}


class TestMeVeStoreOfOneUser(GraphStoreContract):
    options: ClassVar = {"user_id": "alice"}

    @pytest.fixture
    def wait(self, clock):
        return lambda seconds: clock.advance(timedelta(seconds=seconds))

    @pytest.fixture
    def store(self, word_memory, clock):
        self.now = clock.now
        return MeVeStore(word_memory, **self.options)


class TestMeVeStore(TestMeVeStoreOfOneUser):
    options: ClassVar = {"namespaces": "memories/{user_id}/*"}
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


def read_table():
    cells = [[cell.strip() for cell in line.strip("|\n").split(" | ")] for line in PAGE.read_text("utf-8").splitlines()]
    return {row[0]: row[1:] for row in cells if len(row) == 5}


class TestDocumentation:
    def test_documented_failures_equal_tested_failures(self):
        """`python benchmarks/langgraph_stores.py rules` prints the table."""
        table = read_table()
        names = {statement: name for name, statement in list_rules().items()}
        documented = [
            {names[rule]: row[n][4:] for rule, row in table.items() if row[n].startswith("no: ")} for n in range(4)
        ]
        stores = (TestInMemoryStore, TestSqliteStore, TestAsyncSqliteStore, TestMeVeStore)
        assert documented == [each.fails for each in stores]
        assert table["broken"] == [str(len(each.fails)) for each in stores]
        assert f"of {len(list_rules())} rules" in table

    def test_every_rule_has_a_unique_statement(self):
        statements = list(list_rules().values())
        assert len(set(statements)) == len(statements) > 50
        assert all(each.endswith(".") for each in statements)
