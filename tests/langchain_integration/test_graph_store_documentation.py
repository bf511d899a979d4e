"""docs/langgraph-store.md says of each store what its tests say."""

from pathlib import Path

import pytest

pytest.importorskip("langgraph.store.sqlite", reason="needs langgraph-checkpoint-sqlite, of the dev extra")

from tests.langchain_integration.graph_store_contract.contract import list_rules
from tests.langchain_integration.langgraph_stores import ASYNC_SQLITE_FAILS, IN_MEMORY_FAILS, SQLITE_FAILS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "langgraph-store.md"


def rows():
    cells = [[cell.strip() for cell in line.strip("|\n").split(" | ")] for line in PAGE.read_text("utf-8").splitlines()]
    return {row[0]: row[1:] for row in cells if len(row) == 5}


def test_the_page_tells_of_every_rule_that_is_broken_and_why():
    """And of no other; `python benchmarks/graph_stores.py rules` makes it."""
    said = rows()
    stated = {statement: name for name, statement in list_rules().items()}
    told = [{stated[rule]: row[n][4:] for rule, row in said.items() if row[n].startswith("no: ")} for n in range(4)]
    assert told == [IN_MEMORY_FAILS, SQLITE_FAILS, ASYNC_SQLITE_FAILS, {}]
    broken = said["broken"]
    assert broken == [str(len(each)) for each in (IN_MEMORY_FAILS, SQLITE_FAILS, ASYNC_SQLITE_FAILS, {})]
    assert f"of {len(list_rules())} rules" in said


def test_every_rule_is_stated_in_a_line_of_its_own():
    """The first line of a rule's docstring is the rule."""
    stated = list(list_rules().values())
    assert len(set(stated)) == len(stated) > 50
    assert all(each.endswith(".") for each in stated)
