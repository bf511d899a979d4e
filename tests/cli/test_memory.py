"""`meve memory`: what people see, what programs read, and that what destroys asks first."""

import json

import pytest


@pytest.fixture
def memory(meve, tmp_path):
    """Runs `meve memory` over one file."""
    return lambda *arguments: meve("memory", *arguments, "--file", tmp_path / "memory.db")


@pytest.fixture
def filled(memory):
    assert (
        memory("add", "Tomatoes need 6-8 hours of sun.", "--user", "alice", "--id", "t", "--source", "doc").exit_code
        == 0
    )
    assert memory("add", "My PIN is 4711.", "--user", "alice", "--id", "pin", "--class", "private").exit_code == 0
    return memory


def told(result):
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_what_is_added_is_found_listed_and_explained(filled):
    assert "[1] Tomatoes need 6-8 hours of sun. (doc, " in filled("search", "how much sun?", "--user", "alice").stdout
    assert [r["id"] for r in told(filled("list", "--user", "alice", "--json"))] == ["pin", "t"]
    (why,) = told(filled("explain", "tomatoes", "--user", "alice", "--json"))
    assert "factual, from doc" in why["why"]


def test_another_user_sees_nothing(filled):
    assert told(filled("list", "--user", "bob", "--json")) == []
    assert filled("search", "how much sun?", "--user", "bob").stdout.startswith("nothing")
    assert told(filled("list", "--user", "int:7", "--json")) == []


def test_what_destroys_asks_and_a_dry_run_only_says(filled):
    dry = told(filled("forget", "--user", "alice", "--everything", "--dry-run", "--json"))
    assert dry == {"would_erase": ["pin", "t"], "held": {}}
    assert filled("forget", "t", "--user", "alice").exit_code == 1  # nobody says yes
    assert len(told(filled("list", "--user", "alice", "--json"))) == 2
    assert told(filled("forget", "t", "--user", "alice", "--yes", "--json"))["erased"] == ["t"]
    assert filled("maintain").exit_code == 1
    assert told(filled("maintain", "--dry-run", "--json"))["dry_run"] is True


def test_a_hold_stays(filled):
    filled("hold", "t", "--user", "alice", "--why", "case 12")
    done = filled("forget", "--user", "alice", "--everything", "--yes")
    assert "on hold, stays: t (case 12)" in done.stdout
    filled("hold", "t", "--user", "alice", "--release")
    assert told(filled("forget", "t", "--user", "alice", "--yes", "--json"))["held"] == {}


def test_the_log_is_listed_and_verified(filled, tmp_path):
    events = told(filled("audit", "--user", "alice", "--action", "add", "--json"))
    assert [e["record_id"] for e in events] == ["t", "pin"]
    assert told(filled("verify", "--json"))["ok"] is True
    import sqlite3

    with sqlite3.connect(tmp_path / "memory.db") as connection:
        connection.execute("UPDATE audit SET reason = 'x' WHERE seq = 2")
    connection.close()
    broken = filled("verify")
    assert broken.exit_code == 1
    assert "entry 2 was altered" in broken.stdout


def test_everything_of_a_user_is_exported(filled, tmp_path):
    assert [r["id"] for r in told(filled("export", "--user", "alice"))["records"]] == ["pin", "t"]
    filled("export", "--user", "alice", "--to", tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text())["user_id"] == "alice"


def test_counts(filled):
    assert told(filled("stats", "--json"))["records"] == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["forget", "nope", "--user", "alice", "--yes"], "no memory 'nope'"),
        (["search", "x", "--user", " "], "user_id is blank"),
        (["search", "x", "--user", "int:x"], "whole number"),
        (["add", "x", "--user", "a", "--ttl", "soon"], "length of time"),
        (["add", "x", "--user", "a", "--class", "secret"], "policy_class is 'secret'"),
        (["forget", "--user", "a"], "either a memory's id, or --everything"),
        (["list", "--user", "a", "--policy", "nowhere.yaml"], "nowhere.yaml"),
        (["list", "--user", "a", "--key", "nowhere.key"], "nowhere.key"),
    ],
)
def test_what_can_not_be_is_said_without_a_traceback(filled, arguments, said):
    done = filled(*arguments)
    assert done.exit_code in (1, 2)
    assert said in " ".join(done.output.split())
    assert "Traceback" not in done.output
