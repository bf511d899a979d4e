"""`meve memory`: output for people and programs, and confirmation before erasing."""

import json
import re
import stat
import sys
from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest

from meve.cli._memory_options import CLASSES
from meve.memory import GovernedMemory, Policy
from meve.memory.policy import PolicyClass
from meve.testing.fakes import FakeClock
from tests.memories import add_with_score, change_sealed, run_sql


def read_json(result):
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_added_memory_is_found_listed_and_explained(filled):
    assert ", doc:\n[1] Tomatoes need 6-8 hours of sun." in filled("search", "how much sun?", "--user", "alice").stdout
    assert [r["id"] for r in read_json(filled("list", "--user", "alice", "--json"))] == ["t", "pin"]
    why, *_ = read_json(filled("explain", "tomatoes", "--user", "alice", "--json"))
    assert "factual, from doc" in why["why"]


def test_other_user_sees_nothing(filled):
    assert read_json(filled("list", "--user", "bob", "--json")) == []
    assert filled("search", "how much sun?", "--user", "bob").stdout.startswith("nothing")
    assert read_json(filled("list", "--user", "int:7", "--json")) == []


def test_erasing_asks_first_and_dry_run_erases_nothing(filled):
    dry = read_json(filled("forget", "--user", "alice", "--everything", "--dry-run", "--json"))
    assert dry == {"would_erase": ["pin", "t"], "held": {}, "left_closed": []}
    assert filled("forget", "t", "--user", "alice").exit_code == 1  # no confirmation is typed
    assert len(read_json(filled("list", "--user", "alice", "--json"))) == 2
    assert read_json(filled("forget", "t", "--user", "alice", "--yes", "--json"))["erased"] == ["t"]
    assert filled("maintain").exit_code == 1
    assert read_json(filled("maintain", "--dry-run", "--json"))["dry_run"] is True


def test_confirmation_names_the_exact_number(meve, filled, tmp_path):
    for name in ("one", "two"):
        filled("add", "Tomatoes want water in the evening.", "--user", "bob", "--id", name, "--source", "doc")
    assert read_json(filled("maintain", "--yes", "--json"))["merged"] == 1
    [left] = [r["id"] for r in read_json(filled("list", "--user", "bob", "--json"))]
    [gone] = {"one", "two"} - {left}
    dry = read_json(filled("forget", gone, "--user", "bob", "--dry-run", "--json"))
    assert dry == {"would_erase": ["one", "two"], "held": {}, "left_closed": []}
    result = filled("forget", gone, "--user", "bob", "--json", input="y\n")
    assert "Erase 2 memories of bob for good?" in result.stderr
    assert "Erase" not in result.stdout
    assert json.loads(result.stdout[result.stdout.index("{") :])["erased"] == ["one", "two"]  # after the typed answer
    assert filled("forget", "t", "--user", "alice", input="n\n").exit_code == 1
    assert len(read_json(filled("list", "--user", "alice", "--json"))) == 2
    assert "Erase" not in filled("maintain", "--json", input="y\n").stdout


@pytest.mark.parametrize(
    "command",
    [
        ["list", "--user", "a"], ["search", "x", "--user", "a"], ["explain", "x", "--user", "a"],
        ["forget", "x", "--user", "a", "--yes"], ["export", "--user", "a"], ["hold", "x", "--user", "a"], ["audit"],
        ["verify"], ["maintain", "--yes"], ["stats"],
        ["restore", "x", "--user", "a"],
    ],
)  # fmt: skip
def test_missing_file_is_rejected(memory, tmp_path, command):
    result = memory(*command)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "there is no memory at" in " ".join(result.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_replaced_memory_is_listed_and_restored_on_request(filled):
    for name in ("one", "two"):
        filled("add", "Tomatoes want water in the evening.", "--user", "bob", "--id", name, "--source", "doc")
    filled("maintain", "--yes")
    [left] = [r["id"] for r in read_json(filled("list", "--user", "bob", "--json"))]
    [gone] = {"one", "two"} - {left}
    listed = filled("list", "--user", "bob").stdout
    assert listed.startswith("1 memory; not listed: 1 replaced (--superseded)\n")
    listed = filled("list", "--user", "bob", "--superseded").stdout
    assert listed.startswith("2 memories\n")
    assert '(superseded by "Tomatoes want water in the evening.")' in listed
    records = {r["id"]: r for r in read_json(filled("list", "--user", "bob", "--superseded", "--json"))}
    end = datetime.fromisoformat(records[gone]["expires_at"])
    restored = filled("restore", gone, "--user", "bob").stdout
    assert restored == f"restored {gone}: factual, until {end:%Y-%m-%d %H:%M:%S} UTC\n"
    assert len(read_json(filled("list", "--user", "bob", "--json"))) == 2
    assert read_json(filled("restore", gone, "--user", "bob", "--json"))["id"] == gone
    assert filled("restore", "nothing", "--user", "bob").exit_code == 1


def test_restore_of_a_memory_that_holds_changes_nothing(filled):
    assert filled("restore", "t", "--user", "alice").stdout == (
        "nothing to restore: t is neither archived, replaced, flagged nor contradicted\n"
    )
    [record, _] = read_json(filled("list", "--user", "alice", "--json"))
    assert (record["id"], record["restored_at"]) == ("t", None)


def test_hold_without_a_reason_names_none(filled):
    assert filled("hold", "t", "--user", "alice").stdout == "t: on hold\n"
    assert filled("hold", "t", "--user", "alice", "--reason", "a court case").stdout == "t: on hold, a court case\n"


def test_errors_name_the_option_and_its_value(filled):
    add = ("add", "I live in Oslo.", "--user", "carl")
    for options, message in (
        (
            ("--class", "fact"),
            "--class must be one of canonical, factual, intent_bound, ephemeral, private",
        ),
        (("--ttl", "3x"), "--ttl must be a duration such as 90s, 30m, 24h, 7d or 2w, got '3x'"),
        (("--pin", "--source", "doc"), "may be pinned or an instruction, and this comes from doc"),
    ):
        result = filled(*add, *options)
        assert result.exit_code != 0
        assert message in " ".join(result.stderr.replace("│", " ").split())
    assert read_json(filled("list", "--user", "carl", "--json")) == []
    assert set(CLASSES) == set(get_args(PolicyClass))


def test_list_of_nothing_has_no_head(filled):
    assert filled("list", "--user", "carl").stdout == "0 memories\n"


def test_what_an_answer_contradicted_is_listed_for_review_until_it_is_restored(filled, tmp_path):
    with GovernedMemory.open(tmp_path / "memory.db") as opened:
        add_with_score(opened, 20, text="I live in Lyon.", id="town", flagged="contradicted by an answer")
    flagged = ("list", "--user", "alice", "--flagged")
    assert [r["id"] for r in read_json(filled(*flagged, "--json"))] == ["town"]
    assert "I live in Lyon. (contradicted by an answer)" in filled(*flagged).stdout
    filled("restore", "town", "--user", "alice")
    assert read_json(filled(*flagged, "--json")) == []


def test_forget_names_what_the_memory_replaced_and_erases_it_on_request(filled):
    for name, hour in (("nine", 9), ("ten", 10)):
        filled("add", f"The shop opens at {hour} on weekdays.", "--user", "bob", "--source", "doc", "--id", name)
    assert read_json(filled("maintain", "--yes", "--json"))["superseded"] == 1
    dry = read_json(filled("forget", "ten", "--user", "bob", "--superseded", "--dry-run", "--json"))
    assert dry == {"would_erase": ["nine", "ten"], "held": {}, "left_closed": []}
    result = filled("forget", "ten", "--user", "bob", "--yes")
    assert result.stdout.splitlines() == [
        "erased: ten",
        "kept in the history: nine (restore or forget them by id)",
    ]


def test_search_tells_what_is_left_out_and_shows_it_on_request(filled):
    """Before maintenance, after it, and on request with the reason."""
    question = ("search", "When does the shop open on weekdays?", "--user", "bob")
    for name, hour in (("nine", 9), ("ten", 10)):
        filled("add", f"The shop opens at {hour} on weekdays.", "--user", "bob", "--source", "doc", "--id", name)
    secret = ("--class", "private", "--id")
    filled("add", "The shop opens at 8 on weekdays.", "--user", "bob", *secret, "old-secret")
    filled("add", "The shop opens at 7 on weekdays.", "--user", "bob", *secret, "secret")
    before = filled(*question).stdout
    says = 'ten ("The shop opens at 10 on weekdays.") says otherwise, and is newer or better'
    assert f'left out: nine, "The shop opens at 9 on weekdays.": {says}\n' in before
    filled("maintain", "--yes")
    after = filled(*question).stdout
    by = r'replaced since 20.+ UTC by ten \("The shop opens at 10 on weekdays."\): another number than ten'
    assert re.search(rf'^left out: nine, "The shop opens at 9 on weekdays.": {by}$', after, re.M)
    assert "secret" not in before + after
    assert list(read_json(filled(*question, "--json"))["left_out"]) == ["nine"]
    assert "left out: old-secret" in filled(*question, "--private").stdout
    shown = filled(*question, "--superseded").stdout
    assert "opens at 9" in shown
    assert re.search(rf"^\[\d\] nine: {by}$", shown, re.M)
    assert "left out" not in shown


def test_explain_tells_what_replaced_a_memory_and_takes_its_id(filled):
    for name, hour in (("nine", 9), ("ten", 10)):
        filled("add", f"The shop opens at {hour} on weekdays.", "--user", "bob", "--source", "doc", "--id", name)
    filled("maintain", "--yes")

    def explain(*arguments):
        return read_json(filled("explain", *arguments, "--user", "bob", "--json"))

    assert [e["record"]["id"] for e in explain("shop")] == ["ten"]
    assert {e["record"]["id"] for e in explain("shop", "--superseded")} == {"nine", "ten"}
    (nine,) = explain("nine")
    assert (nine["score"], nine["replacement"]["text"]) == (None, "The shop opens at 10 on weekdays.")
    shown = filled("explain", "nine", "--user", "bob").stdout.splitlines()
    assert shown[:2] == [
        "nine: The shop opens at 9 on weekdays.",
        '  replaced by "The shop opens at 10 on weekdays."',
    ]
    assert "score" not in shown[2]
    assert [e["record"]["id"] for e in explain("t" * 600)] == ["ten"]  # no id has so many characters
    of_alice = read_json(filled("explain", "nine", "--user", "alice", "--json"))
    assert "nine" not in [e["record"]["id"] for e in of_alice]


def test_replacement_of_a_private_class_is_told_only_with_private_memories(filled, tmp_path):
    filled("add", "The shop opens at 9 on weekdays.", "--user", "bob", "--source", "doc", "--id", "nine")
    with GovernedMemory.open(tmp_path / "memory.db") as opened:
        opened.supersede("nine", "The shop opens at 10.", user_id="bob", policy_class="private", source="doc")
    question = ("search", "When does the shop open on weekdays?", "--user", "bob", "--superseded")
    assert "opens at 9" in filled(*question).stdout
    assert "opens at 10" not in filled(*question).stdout
    assert 'by "The shop opens at 10."' not in filled(*question).stdout
    assert "opens at 10" in filled(*question, "--private").stdout


def test_search_reads_what_held_at_a_moment(filled):
    question = ("search", "how much sun?", "--user", "alice", "--as-of")
    assert filled(*question, "2020-01-01").stdout.startswith("nothing")
    now = datetime.now(UTC).isoformat()
    assert "Tomatoes need" in filled(*question, now).stdout
    wrong = filled(*question, "yesterday")
    assert wrong.exit_code == 2
    assert "--as-of must be a date or time" in wrong.stderr


def test_certificate_is_written_and_checked(meve, tmp_path):
    (tmp_path / "audit.key").write_bytes(b"k" * 32)
    file = tmp_path / "memory.db"

    def run(*arguments):
        return meve("memory", *arguments, "--file", file, "--key", tmp_path / "audit.key")

    for name in ("pin", "home"):
        run("add", f"My {name} is secret.", "--user", "alice", "--id", name)
        run("forget", name, "--user", "alice", "--yes")
    printed = read_json(run("certificate", "pin", "--user", "alice"))
    assert [entry["record_id"] for entry in printed["entries"]] == ["pin"]
    assert run("certificate", "--user", "alice", "--to", tmp_path / "c.json").stdout.startswith("2 erasures of alice: ")
    assert run("certificate", "--check", tmp_path / "c.json").stdout == "the certificate holds: 2 erasures\n"
    run("add", "My pin is secret.", "--user", "alice", "--id", "x")
    change_sealed(file, "alice", "x", id="pin")
    result = run("certificate", "--check", tmp_path / "c.json")
    assert result.exit_code == 4
    assert "the certificate doesn't hold: record 'pin' is stored" in result.stdout
    assert json.loads(run("certificate", "--check", tmp_path / "c.json", "--json").stdout)["ok"] is False
    (tmp_path / "c.json").write_text("[]")
    assert run("certificate", "--check", tmp_path / "c.json").exit_code == 1
    assert "give either --user or --check" in run("certificate").stderr


def test_added_memory_says_when_it_ends(filled):
    assert filled("add", "I live in Lyon.", "--user", "bob", "--id", "town").stdout.endswith("factual, for ever\n")
    assert read_json(filled("add", "I drink tea.", "--user", "bob", "--json"))["expires_at"] is None


def test_list_filters_by_session(filled):
    filled("add", "I like tea.", "--user", "alice", "--id", "tea", "--session", "s1")
    assert [r["id"] for r in read_json(filled("list", "--user", "alice", "--session", "s1", "--json"))] == ["tea"]


def test_tags_are_listed_if_there_are_any(filled):
    assert "tags" not in filled("list", "--user", "alice").stdout
    filled("add", "I grow basil.", "--user", "alice", "--id", "b", "--tag", "Kitchen", "--tag", "balcony")
    head, row = (line.split() for line in filled("list", "--user", "alice").stdout.splitlines()[1::3])
    assert head == ["added", "id", "text", "tags", "class", "source", "score", "until"]
    assert row[1:8] == ["b", "I", "grow", "basil.", "balcony,", "kitchen", "factual"]


def test_list_fits_a_narrow_terminal(filled, on_terminal, tmp_path):
    text = "Basil likes warmth and does not like wind, so it stands by the wall."
    filled("add", text, "--user", "alice", "--tag", "kitchen", "--tag", "balcony", "--session", "s1")
    lines = on_terminal("memory", "list", "--user", "alice", "--file", tmp_path / "memory.db")
    assert max(map(len, lines)) <= 80
    assert next(line for line in lines if "until" in line).split() == [
        "added", "id", "text", "tags", "class", "score", "until",
    ]  # fmt: skip
    assert {"balcony,", "kitchen", "factual"} <= set(" ".join(lines).split())


@pytest.fixture
def archived(tmp_path):
    """Archive an unused record of alice a month ago."""
    clock = FakeClock(datetime.now(UTC) - timedelta(days=90))
    with GovernedMemory.open(tmp_path / "memory.db", clock=clock, policy=Policy.paper()) as opened:
        add_with_score(opened, 20, text="Tomatoes need sun.", id="t", source="doc", ttl=timedelta(days=900))
        clock.advance(timedelta(days=60))
        assert opened.maintain().archived == {"alice": ["t"]}


def test_archived_memory_is_explained_on_request(archived, memory):
    assert memory("explain", "tomatoes", "--user", "alice").stdout == "nothing\n"
    assert "; archived" in memory("explain", "tomatoes", "--user", "alice", "--archived").stdout
    (explanation,) = read_json(memory("explain", "tomatoes", "--user", "alice", "--archived", "--json"))
    assert (explanation["record"]["id"], explanation["archived"]) == ("t", True)


def test_memory_text_cannot_control_the_terminal(filled):
    filled("add", "\x1b]0;mine\x07\x1b[2J", "--user", "eve", "--id", "\x1b[31mid", "--reason", "\x1b[2Jwhy")
    for command in (["list", "--user", "eve"], ["audit", "--user", "eve"], ["explain", "mine", "--user", "eve"]):
        shown = filled(*command).stdout
        assert "\x1b" not in shown
        assert "\x07" not in shown


def test_unknown_action_is_rejected(filled):
    result = filled("audit", "--action", "deleted")
    assert result.exit_code == 1
    assert "must be one of add, retrieve" in " ".join(result.stderr.split())


def test_held_memory_is_not_erased(filled):
    filled("hold", "t", "--user", "alice", "--reason", "case 12")
    result = filled("forget", "--user", "alice", "--everything", "--yes")
    assert "kept, on hold: t (case 12)" in result.stdout
    filled("hold", "t", "--user", "alice", "--release")
    assert read_json(filled("hold", "t", "--user", "alice", "--json"))["hold"] == "held"
    filled("hold", "t", "--user", "alice", "--release")
    assert read_json(filled("forget", "t", "--user", "alice", "--yes", "--json"))["held"] == {}


def test_audit_log_is_listed_and_verified(filled, tmp_path):
    events = read_json(filled("audit", "--user", "alice", "--action", "add", "--json"))
    assert [e["record_id"] for e in events] == ["t", "pin"]
    assert read_json(filled("verify", "--json"))["ok"] is True
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection, connection:
        connection.execute("UPDATE audit SET reason = 'x' WHERE seq = 2")
    broken = filled("verify")
    assert broken.exit_code == 1
    assert "entry 2 was altered" in broken.stdout


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["memory", "audit", "--file", "m.db", "--head", "--user", "alice"], "--user"),
        (["memory", "audit", "--file", "m.db", "--head", "--changes"], "--changes"),
        (["memory", "certificate", "--file", "m.db", "--check", "c.json", "--since", "7d"], "--since"),
        (["memory", "certificate", "--file", "m.db", "--check", "c.json", "m1"], "id"),
        (["serve", "--memory", "memory.db", "--stdio", "--port", "80"], "--port"),
    ],
)
def test_option_that_another_one_ignores_is_refused(meve, arguments, option):
    result = meve(*arguments)
    assert result.exit_code == 2
    assert f"{option} doesn't go with" in " ".join(result.stderr.replace("│", " ").split())


def test_kept_head_shows_that_the_end_of_the_log_is_gone(meve, filled, tmp_path):
    (tmp_path / "older").mkdir()
    for name in ("memory.db", "memory.db.keys"):
        (tmp_path / "older" / name).write_bytes((tmp_path / name).read_bytes())
    before = filled("audit", "--head").stdout.strip()
    filled("add", "More.", "--user", "alice")
    head = filled("audit", "--head").stdout.strip()
    assert read_json(filled("audit", "--head", "--json"))["digest"] == head.partition(":")[2]
    verified = filled("verify", "--head", head)
    assert verified.exit_code == 0
    assert "this finds accidental damage to the log" in verified.stdout
    assert filled("verify", "--head", before).exit_code == 0
    result = meve("memory", "verify", "--head", head, "--file", tmp_path / "older" / "memory.db")
    assert (result.exit_code, "fewer than the head that was kept" in result.stdout) == (1, True)
    assert "head must be a number" in filled("verify", "--head", "x").stderr


def test_signed_checkpoints_are_written_and_verified(meve, filled, tmp_path):
    keys, public, kept = (tmp_path / name for name in ("sign.keys", "sign.pub.json", "kept.jsonl"))
    assert meve("kernel", "new-key", "2026-11", "--keys", keys).exit_code == 0
    public.write_text(meve("kernel", "public-keys", "--keys", keys).stdout)
    signing, checking = ("--checkpoint-key", keys), ("--checkpoints", kept, "--public-key", public)
    assert filled("maintain", "--yes", "--checkpoints", kept, *signing).exit_code == 0
    assert "as signed: 1 checkpoint" in filled("verify", *checking).stdout
    assert read_json(filled("verify", *checking, "--json"))["checkpoints"] == 1
    other = meve("memory", "add", "Other.", "--user", "bob", "--file", tmp_path / "other.db")
    assert other.exit_code == 0
    result = meve("memory", "verify", *checking, "--file", tmp_path / "other.db")
    assert (result.exit_code, "a signed checkpoint covers 2" in result.stdout) == (1, True)
    kept.write_text(kept.read_text().replace("position", "posture"))
    assert "line 1 of" in filled("verify", *checking).stderr
    assert "together" in filled("verify", "--checkpoints", kept).stderr
    assert "together" in filled("maintain", "--yes", *signing).stderr
    assert "wasn't written" in filled("maintain", "--yes", "--checkpoints", tmp_path, *signing).stderr


def test_older_database_is_opened_on_request_only(meve, filled, tmp_path):
    backup = (tmp_path / "memory.db").read_bytes()
    filled("forget", "t", "--user", "alice", "--yes")
    (tmp_path / "memory.db").write_bytes(backup)
    assert "older than memory.db.keys" in filled("list", "--user", "alice").stderr
    result = meve("memory", "--accept-older", "list", "--user", "alice", "--file", tmp_path / "memory.db", "--json")
    assert "t" not in [record["id"] for record in json.loads(result.stdout)]


def test_clock_that_was_ahead_is_reset_on_request_only(meve, filled, tmp_path):
    with GovernedMemory.open(tmp_path / "memory.db", clock=FakeClock(datetime(2200, 1, 1, tzinfo=UTC))) as later:
        later.list(user_id="alice")
    listing = ("list", "--user", "alice", "--file", tmp_path / "memory.db", "--json")
    shown = [meve("memory", *options, *listing).stdout for options in ((), ["--reset-clock"], ())]
    assert ['"t"' in each for each in shown] == [False, True, True]


def test_master_key_locks_the_keys(meve, tmp_path, monkeypatch):
    (tmp_path / "master").write_bytes(b"a master key, long enough for it")
    lock, file = ("--master-key", tmp_path / "master"), ("--file", tmp_path / "memory.db")
    assert meve("memory", *lock, "add", "I like tea.", "--user", "alice", "--id", "tea", *file).exit_code == 0
    locked = meve("memory", "list", "--user", "alice", *file)
    assert locked.exit_code == 1
    assert "locked with a master key" in locked.output
    assert "I like tea." in meve("memory", *lock, "list", "--user", "alice", *file).stdout
    monkeypatch.setenv("MEVE_MASTER_KEY", str(tmp_path / "master"))
    assert meve("memory", "list", *file, "--user", "alice").exit_code == 0


def test_verify_names_an_altered_memory_and_exits_with_4(meve, tmp_path):
    key, file = tmp_path / "audit.key", tmp_path / "memory.db"
    key.write_bytes(b"a key of the tests, long enough")
    options = ("--file", file, "--key", key)
    meve("memory", "add", "My PIN is 4711.", "--user", "int:7", "--id", "pin", *options)
    assert "as the log says: 1 memory" in meve("memory", "verify", *options).stdout
    run_sql(file, "UPDATE memories SET class = 'canonical', expires = 1")
    result = meve("memory", "verify", *options)
    assert result.exit_code == 4
    assert "not as the log says: pin of 7 (expiry, class)" in result.stdout
    result = meve("memory", "verify", "--json", *options)
    data = json.loads(result.stdout)
    assert (result.exit_code, data["ok"], data["records"]) == (4, False, 0)
    assert data["differences"] == [{"id": "pin", "user": 7, "differs": ["expiry", "class"]}]


def test_forget_of_an_unknown_user_says_so_and_exits_with_3(filled):
    filled("add", "I live in Lyon.", "--user", "int:5", "--id", "home")
    for arguments in (["--everything", "--yes"], ["home", "--yes"], ["--everything", "--dry-run"]):
        result = filled("forget", "--user", "5", *arguments)
        assert result.exit_code == 3
        shown = " ".join(result.stderr.split())
        assert shown == "error: nothing is stored of 5, nothing was erased; did you mean --user int:5?"
    result = filled("forget", "--user", "nobody", "--everything", "--yes", "--json")
    assert result.exit_code == 3
    assert json.loads(result.stdout) == {"erased": [], "held": {}, "found": False, "other_user": None}
    assert len(read_json(filled("list", "--user", "int:5", "--json"))) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes of files")
def test_exported_file_has_mode_600(filled, tmp_path):
    filled("export", "--user", "alice", "--to", tmp_path / "out.json")
    assert stat.S_IMODE((tmp_path / "out.json").stat().st_mode) == 0o600


def test_export_contains_everything_of_a_user(filled, tmp_path):
    assert [r["id"] for r in read_json(filled("export", "--user", "alice"))["records"]] == ["t", "pin"]
    filled("export", "--user", "alice", "--to", tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text())["user_id"] == "alice"


def test_stats_prints_counts(filled):
    assert read_json(filled("stats", "--json"))["records"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["forget", "nope", "--user", "alice", "-y"], "no memory 'nope' of alice: meve memory list --user alice lists"),
        (["hold", "nope", "--user", "a b"], "no memory 'nope' of a b: meve memory list --user 'a b' lists all"),
        (["add", "x", "--user", "a", "--source", "item"], "--source must be one of doc, chat_user, "),
        (["search", "x", "--user", " "], "user_id must not be blank"),
        (["search", "x", "--user", "int:x"], "whole number"),
        (["add", "x", "--user", "a", "--ttl", "soon"], "must be a duration"),
        (
            ["add", "x", "--user", "a", "--class", "secret"],
            "one of canonical, factual, intent_bound, ephemeral, private, instruction, got 'secret'",
        ),
        (["forget", "--user", "a"], "either a memory's id or --everything"),
        (["list", "--user", "a", "--policy", "nowhere.yaml"], "nowhere.yaml"),
        (["list", "--user", "a", "--key", "nowhere.key"], "nowhere.key"),
        (["add", "x", "--user", "a", "--ttl", "999999999999999d"], "999,999,999 days"),
        (["audit", "--since", "999999999999999d"], "999,999,999 days"),
    ],
)
def test_invalid_arguments_are_rejected_without_traceback(filled, arguments, message):
    result = filled(*arguments)
    assert result.exit_code in (1, 2)
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_reembed_changes_the_embedder(filled, monkeypatch):
    report = read_json(filled("reembed", "--embedder", "static", "--json"))
    assert report == {"embedder": "meve-static-1", "users": 1, "records": 2}
    assert "Tomatoes" in filled("search", "how much sun?", "--user", "alice").stdout
    monkeypatch.setenv("MEVE_EMBEDDER", "minilm")
    refused = filled("list", "--user", "alice")
    assert refused.exit_code == 1
    assert "meve memory reembed --embedder" in " ".join(refused.output.split())


def test_import_adds_what_is_new_and_refuses_bad_rows_with_5(filled, meve, tmp_path):
    exported = tmp_path / "alice.json"
    filled("export", "--user", "alice", "--to", exported)
    other = ("--file", tmp_path / "other.db")
    dry = meve("memory", "import", exported, "--dry-run", *other)
    assert (dry.exit_code, "there is no memory at" in " ".join(dry.output.split())) == (1, True)
    assert meve("memory", "import", exported, *other).stdout == "added: 2 memories\n"
    assert meve("memory", "import", exported, *other).stdout == "added: 0 memories\nknown: 2\n"
    data = json.loads(exported.read_text())
    data["records"][0] |= {"id": "x", "text": ""}
    exported.write_text(json.dumps(data))
    refused = meve("memory", "import", exported, "--json", *other)
    assert refused.exit_code == 5
    assert json.loads(refused.stdout)["rejected"] == [[1, "text must not be blank, got ''"]]
    exported.write_text("{")
    assert "is no JSON" in meve("memory", "import", exported, *other).output
