"""`meve memory`: what people see, what programs read, and that what destroys asks first."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from meve.memory import GovernedMemory
from meve.testing.fakes import FakeClock
from tests.memories import reflected


@pytest.fixture
def memory(meve, tmp_path):
    """Runs `meve memory` over one file."""
    return lambda *arguments, **more: meve("memory", *arguments, "--file", tmp_path / "memory.db", **more)


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


def test_what_would_be_erased_is_told_exactly_and_asked_beside_the_output(meve, filled, tmp_path):
    """Under the id of what became part of another too; the number asked for is what goes."""
    for name in ("one", "two"):
        filled("add", "Tomatoes want water in the evening.", "--user", "bob", "--id", name, "--source", "doc")
    assert told(filled("maintain", "--yes", "--json"))["merged"] == 1
    [left] = [r["id"] for r in told(filled("list", "--user", "bob", "--json"))]
    [gone] = {"one", "two"} - {left}
    dry = told(filled("forget", gone, "--user", "bob", "--dry-run", "--json"))
    assert dry == {"would_erase": [left], "held": {}}
    asked = filled("forget", gone, "--user", "bob", "--json", input="y\n")
    assert "Erase 1 memory of bob for good?" in asked.stderr
    assert "Erase" not in asked.stdout
    assert json.loads(asked.stdout[asked.stdout.index("{") :])["erased"] == [left]  # after what the runner typed
    assert filled("forget", "t", "--user", "alice", input="n\n").exit_code == 1
    assert len(told(filled("list", "--user", "alice", "--json"))) == 2
    assert "Erase" not in filled("maintain", "--json", input="y\n").stdout


@pytest.mark.parametrize(
    "command",
    [
        ["list", "--user", "a"], ["search", "x", "--user", "a"], ["explain", "x", "--user", "a"],
        ["forget", "x", "--user", "a", "--yes"], ["export", "--user", "a"], ["hold", "x", "--user", "a"], ["audit"],
        ["verify"], ["maintain", "--yes"], ["stats"],
    ],
)  # fmt: skip
def test_a_mistyped_file_is_no_empty_memory(memory, tmp_path, command):
    """Least of all one whose log is whole."""
    done = memory(*command)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "there is no memory at" in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_a_conversation_s_memories_are_listed(filled):
    filled("add", "I like tea.", "--user", "alice", "--id", "tea", "--session", "s1")
    assert [r["id"] for r in told(filled("list", "--user", "alice", "--session", "s1", "--json"))] == ["tea"]


def test_tags_are_listed_where_there_are_any(filled):
    assert "tags" not in filled("list", "--user", "alice").stdout
    filled("add", "I grow basil.", "--user", "alice", "--id", "b", "--tag", "Kitchen", "--tag", "balcony")
    head, row = (line.split() for line in filled("list", "--user", "alice").stdout.splitlines()[1:3])
    assert head == ["id", "text", "tags", "class", "source", "score", "until"]
    assert row[:7] == ["b", "I", "grow", "basil.", "balcony,", "kitchen", "intent_bound"]


def test_a_list_fits_a_narrow_terminal(filled, on_terminal, tmp_path):
    """All but the source, and no line is longer than the terminal is wide."""
    text = "Basil likes warmth and does not like wind, so it stands by the wall."
    filled("add", text, "--user", "alice", "--tag", "kitchen", "--tag", "balcony", "--session", "s1")
    lines = on_terminal("memory", "list", "--user", "alice", "--file", tmp_path / "memory.db")
    assert max(map(len, lines)) <= 80
    assert next(line for line in lines if "until" in line).split() == ["id", "text", "tags", "class", "score", "until"]
    assert {"balcony,", "kitchen", "intent_bound"} <= set(" ".join(lines).split())


@pytest.fixture
def archived(tmp_path):
    """A memory of alice's, that nobody used, was archived a month ago."""
    clock = FakeClock(datetime.now(UTC) - timedelta(days=90))
    with GovernedMemory.open(tmp_path / "memory.db", clock=clock) as opened:
        reflected(opened, 20, text="Tomatoes need sun.", id="t", source="doc", ttl=timedelta(days=900))
        clock.advance(timedelta(days=60))
        assert opened.maintain().archived == {"alice": ["t"]}


def test_what_is_archived_is_explained_where_it_is_asked_for(archived, memory):
    assert memory("explain", "tomatoes", "--user", "alice").stdout == "nothing\n"
    assert "; archived" in memory("explain", "tomatoes", "--user", "alice", "--archived").stdout
    (found,) = told(memory("explain", "tomatoes", "--user", "alice", "--archived", "--json"))
    assert (found["record"]["id"], found["archived"]) == ("t", True)


def test_a_memory_can_not_command_the_terminal(filled):
    filled("add", "\x1b]0;mine\x07\x1b[2J", "--user", "eve", "--id", "\x1b[31mid", "--reason", "\x1b[2Jwhy")
    for command in (["list", "--user", "eve"], ["audit", "--user", "eve"], ["explain", "mine", "--user", "eve"]):
        shown = filled(*command).stdout
        assert "\x1b" not in shown
        assert "\x07" not in shown


def test_an_action_that_there_is_not_is_said(filled):
    done = filled("audit", "--action", "deleted")
    assert done.exit_code == 1
    assert "choose one of add, retrieve" in " ".join(done.stderr.split())


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
        (
            ["forget", "nope", "--user", "alice", "--yes"],
            "no memory 'nope' of alice: meve memory list --user alice tells which there are",
        ),
        (["hold", "nope", "--user", "a b"], "no memory 'nope' of a b: meve memory list --user 'a b' tells"),
        (["add", "x", "--user", "a", "--source", "item"], "--source is 'item': choose one of doc, chat_user, "),
        (["search", "x", "--user", " "], "user_id is blank"),
        (["search", "x", "--user", "int:x"], "whole number"),
        (["add", "x", "--user", "a", "--ttl", "soon"], "length of time"),
        (["add", "x", "--user", "a", "--class", "secret"], "policy_class is 'secret'"),
        (["forget", "--user", "a"], "either a memory's id, or --everything"),
        (["list", "--user", "a", "--policy", "nowhere.yaml"], "nowhere.yaml"),
        (["list", "--user", "a", "--key", "nowhere.key"], "nowhere.key"),
        (["add", "x", "--user", "a", "--ttl", "999999999999999d"], "999,999,999 days"),
        (["audit", "--since", "999999999999999d"], "999,999,999 days"),
    ],
)
def test_what_can_not_be_is_said_without_a_traceback(filled, arguments, said):
    done = filled(*arguments)
    assert done.exit_code in (1, 2)
    assert said in " ".join(done.output.split())
    assert "Traceback" not in done.output
