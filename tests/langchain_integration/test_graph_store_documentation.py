"""The comparison table of docs/langgraph-store.md agrees with the contract tests."""

from pathlib import Path

import pytest

pytest.importorskip("langgraph.store.sqlite", reason="needs langgraph-checkpoint-sqlite, of the dev extra")

from tests.langchain_integration.graph_store_contract.contract import list_rules
from tests.langchain_integration.langgraph_stores import ASYNC_SQLITE_FAILS, IN_MEMORY_FAILS, SQLITE_FAILS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "langgraph-store.md"


def read_table():
    cells = [[cell.strip() for cell in line.strip("|\n").split(" | ")] for line in PAGE.read_text("utf-8").splitlines()]
    return {row[0]: row[1:] for row in cells if len(row) == 5}


def test_documented_failures_equal_tested_failures():
    """`python benchmarks/langgraph_stores.py rules` prints the table."""
    table = read_table()
    names = {statement: name for name, statement in list_rules().items()}
    documented = [
        {names[rule]: row[n][4:] for rule, row in table.items() if row[n].startswith("no: ")} for n in range(4)
    ]
    assert documented == [IN_MEMORY_FAILS, SQLITE_FAILS, ASYNC_SQLITE_FAILS, {}]
    broken = table["broken"]
    assert broken == [str(len(each)) for each in (IN_MEMORY_FAILS, SQLITE_FAILS, ASYNC_SQLITE_FAILS, {})]
    assert f"of {len(list_rules())} rules" in table


def test_every_rule_has_a_unique_statement():
    statements = list(list_rules().values())
    assert len(set(statements)) == len(statements) > 50
    assert all(each.endswith(".") for each in statements)
