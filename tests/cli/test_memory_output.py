"""What `meve memory` prints for people: by time, with texts, the essential first."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from meve.cli._memory_tables import print_events
from meve.cli._memory_text import format_export
from meve.memory import GovernedMemory
from meve.memory._audit.chain import AuditEvent
from meve.testing.fakes import FakeClock
from tests.memories import open_memory


@pytest.fixture
def shop(memory, tmp_path):
    """Return `meve memory` on a memory whose ids are in another order than its times; three recalls are logged."""
    clock = FakeClock(datetime.now(UTC) - timedelta(days=2))
    with GovernedMemory.open(tmp_path / "memory.db", clock=clock) as opened:
        for name, hour in (("old", 9), ("new", 10)):
            opened.add(f"The shop opens at {hour} on weekdays.", user_id="bob", id=name, source="doc")
            clock.advance(timedelta(days=1))
        for _ in range(3):
            opened.search("When does the shop open?", user_id="bob")
    return memory


def test_list_and_export_are_ordered_by_time_with_dates(shop):
    assert [r["id"] for r in json.loads(shop("list", "--user", "bob", "--json").stdout)] == ["old", "new"]
    _, head, *rows = shop("list", "--user", "bob").stdout.splitlines()
    assert head.split()[0] == "added"
    days = [row.split()[0] for row in rows]
    assert days == [f"{datetime.now(UTC) - timedelta(days=n):%Y-%m-%d}" for n in (2, 1)]
    assert [r["id"] for r in json.loads(shop("export", "--user", "bob").stdout)["records"]] == ["old", "new"]


def test_export_as_text_tells_all_memories_and_the_log(shop, tmp_path):
    shop("maintain", "--yes")
    shop("add", "Line one.\nLine two.", "--user", "bob", "--id", "lines")
    shown = shop("export", "--user", "bob", "--format", "text").stdout
    newer = 'replaced by new: "The shop opens at 10 on weekdays."'
    for words in ("Memories (2)", "Replaced memories (1)", "opens at 9", newer, "Line two.", "supersede old: new"):
        assert words in shown
    shop("export", "--user", "bob", "--format", "text", "--to", tmp_path / "bob.txt")
    assert "opens at 9" in (tmp_path / "bob.txt").read_text()
    assert "must be one of json, text" in " ".join(shop("export", "--user", "bob", "--format", "xml").stderr.split())


def test_export_as_text_tells_what_messages_and_items_hold(tmp_path):
    with open_memory(tmp_path / "memory.db") as memory:
        memory.messages.add("s", [{"role": "user", "content": "Good morning!"}], user_id="bob")
        memory.items.put(("notes",), "k", {"drink": "tea", "cups": 2}, user_id="bob", text="")
        shown = format_export(memory.export(user_id="bob"))
    for words in ("content: Good morning!", "drink: tea", "cups: 2"):
        assert words in shown


def test_dry_run_of_forget_counts_and_shows_the_texts(shop):
    shown = shop("forget", "--user", "bob", "--everything", "--dry-run").stdout
    assert shown.splitlines() == [
        "would erase: 2 memories",
        "  new: The shop opens at 10 on weekdays.",
        "  old: The shop opens at 9 on weekdays.",
    ]


def test_dry_run_of_maintenance_shows_the_texts_of_each_step(shop):
    shown = shop("maintain", "--dry-run").stdout
    assert shown.splitlines() == [
        "would be: 1 superseded",
        "superseded, of bob",
        "  old: The shop opens at 9 on weekdays.",
        "    replaced by: The shop opens at 10 on weekdays.",
    ]
    assert shop("maintain", "--yes").stdout.splitlines() == [
        "1 superseded",
        "list --user ID --superseded shows what was replaced, and by which text",
    ]


@pytest.mark.parametrize("command", [("forget", "new", "--user", "bob"), ("maintain",)])
def test_erasure_without_a_terminal_asks_for_yes(shop, command):
    refused = shop(*command)
    assert refused.exit_code == 1
    assert "error: nothing was erased: without a terminal, --yes must confirm it" in " ".join(refused.stderr.split())
    assert len(json.loads(shop("list", "--user", "bob", "--superseded", "--json").stdout)) == 2
    assert shop(*command, input="y\n").exit_code == 0


def test_list_counts_what_it_leaves_out_and_stats_say_what_they_count(shop):
    assert shop("list", "--user", "bob").stdout.splitlines()[0] == "2 memories"
    shop("maintain", "--yes")
    assert shop("list", "--user", "bob").stdout.splitlines()[0] == "1 memory; not listed: 1 replaced (--superseded)"
    records, what, others = shop("stats").stdout.splitlines()
    assert records == "2 records of 1 user, and 0 in the archive"
    assert what == "(memories, messages and items; replaced, shared, and expired ones until `maintain` included)"
    assert others.startswith("6 entries in the log, ")


def test_verification_without_a_key_says_what_it_finds(shop):
    assert shop("verify").stdout.splitlines() == [
        "the log is intact: 5 entries",
        "this finds accidental damage to the log; a memory that is made with an audit key (--key) also shows "
        "deliberate changes, and changed memories",
    ]


def test_explain_counts_recalls_and_lists_them_on_request(shop):
    shown = shop("explain", "shop", "--user", "bob").stdout
    assert "4 log entries; recalled 3 times, last 20" in shown
    assert "retrieve" not in shown
    assert shop("explain", "shop", "--user", "bob", "--history").stdout.count(" retrieve: recall") == 3


def test_audit_leaves_recalls_out_on_request(shop):
    def actions(*options):
        return [e["action"] for e in json.loads(shop("audit", "--json", *options).stdout)]

    assert actions() == ["add", "add", "retrieve", "retrieve", "retrieve"]
    assert actions("--changes") == ["add", "add"]


def test_audit_table_shows_the_probability_of_a_model(capsys):
    event = AuditEvent(
        seq=1, at=datetime.now(UTC), user_id="bob", record_id="choir", action="supersede",
        reason="voice says otherwise", detail={"evidence": {"by": "voice", "probability": 0.978}}, digest="",
    )  # fmt: skip
    print_events([event])
    assert "voice says otherwise (probability 0.98)" in capsys.readouterr().out
