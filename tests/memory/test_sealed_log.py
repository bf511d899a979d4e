"""The log names users and records by keyed hashes, and a file of an earlier version is sealed."""

import signal
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest

from meve.conversation import Turn
from meve.memory.stores.sqlite.store import SqliteStore
from meve.memory.turns import add_turns
from tests.memories import KEY, as_plain, open_memory, run_sql
from tests.memory.sealed_files import Workload, rows_of, words_in_files
from tests.warm_process import run_code


def stored_of(memory, n):
    return {**memory.export(user_id=f"user{n}qzx"), "exported_at": "", "audit": ()}


def test_plain_file_is_sealed_when_it_is_opened(file, clock, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "names_key", None)  # as before there were keys
        with open_memory(file, clock=clock) as memory:
            work = Workload(memory, seed=9)
            for _ in range(60):
                work.add()
            exported = {n: stored_of(memory, n) for n in range(5)}
            verified, heads = memory.audit.verify(), [memory.audit.head()]
        as_plain(file)
    words = {word for *_, each in work.live.values() for word in each}
    plain = {word for kind, _, each in work.live.values() for word in each if kind != "archived"}  # it is compressed
    assert words_in_files(file.parent, plain) == plain
    for _ in range(2):
        with open_memory(file, clock=clock) as memory:
            assert words_in_files(file.parent, {*words, "user0qzx"}) == set()
            assert {n: stored_of(memory, n) for n in range(5)} == exported
            assert memory.audit.verify() == verified
            assert all(memory.audit.verify(head).ok for head in heads)
    assert words_in_files(file.parent, words) == set()


def test_process_killed_while_sealing_a_plain_file_leaves_it_plain(file, clock):
    with open_memory(file, clock=clock) as memory:
        memory.add("Zyxomma flies.", user_id="alice", id="s")
    as_plain(file)
    code = """
import os, signal, sys
from pathlib import Path
from meve.memory.stores.sqlite import store
from tests.memories import open_memory
seal = store.seal_plain_rows
def seal_and_die(vault):
    seal(vault)
    os.kill(os.getpid(), signal.SIGKILL)
store.seal_plain_rows = seal_and_die
open_memory(Path(sys.argv[1]))
"""
    assert run_code(code, file) == (-signal.SIGKILL, "")
    with open_memory(file, clock=clock) as memory:
        assert [r.text for r in memory.list(user_id="alice")] == ["Zyxomma flies."]
    assert words_in_files(file.parent, {"zyxomma"}) == set()


def test_plain_pages_that_a_reader_kept_are_dropped_at_the_next_opening(file, clock, monkeypatch):
    monkeypatch.setattr("meve._sqlite.WAIT_SECONDS", 0.1)
    with open_memory(file, clock=clock) as memory:
        memory.add("Zyxomma flies.", user_id="alice", id="s")
    as_plain(file)
    reader = sqlite3.connect(file, isolation_level=None)
    reader.execute("PRAGMA journal_mode = WAL")
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM memories").fetchall()
    with open_memory(file, clock=clock) as memory:
        assert memory.get("s", user_id="alice").text == "Zyxomma flies."
    assert words_in_files(file.parent, {"zyxomma"}) == {"zyxomma"}
    reader.close()
    with open_memory(file, clock=clock):
        assert words_in_files(file.parent, {"zyxomma"}) == set()


@pytest.mark.parametrize("audit_key", [None, KEY])
def test_forgotten_user_is_named_in_no_row(file, clock, audit_key):
    with open_memory(file, clock=clock, audit_key=audit_key) as memory:
        memory.add("I like tea.", user_id="alicezyx", id="alicezyx-tea", ttl=timedelta(days=5))
        memory.add("Tea is hot.", user_id="alicezyx", id="alicezyx-hot", derived_from=["alicezyx-tea"])
        memory.update("alicezyx-tea", user_id="alicezyx", ttl=timedelta(days=3))
        memory.supersede("alicezyx-tea", "I like coffee.", user_id="alicezyx", id="alicezyx-new")
        memory.add("I like tea.", user_id="bob", id="tea")
        names = {e.record_id for e in memory.audit.events(action="add")}
        assert names == {"alicezyx-tea", "alicezyx-hot", "alicezyx-new", "tea"}
        assert any("alicezyx-tea" in e.reason for e in memory.audit.events(user_id="alicezyx", action="update"))
        memory.forget_user(user_id="alicezyx")
        assert "alicezyx" not in rows_of(file)
        assert {e.record_id for e in memory.audit.events(user_id="bob")} == {"tea"}
        erased = memory.audit.events(user_id="alicezyx", record_id="alicezyx-tea", action="delete")
        assert [(e.user_id, e.record_id) for e in erased] == [("alicezyx", "alicezyx-tea")]
        certificate = memory.audit.certificate(user_id="alicezyx", record_ids=["alicezyx-tea"])
        assert [e.record_id for e in certificate.entries] == ["alicezyx-tea"]
        assert memory.audit.check_certificate(certificate).ok
        assert memory.audit.verify().ok
        assert memory.add("I like coffee.", user_id="alicezyx", id="tea").text == "I like coffee."
        assert [r.text for r in memory.list(user_id="alicezyx")] == ["I like coffee."]
    assert b"alicezyx" not in b"".join(path.read_bytes() for path in file.parent.iterdir())


def test_name_of_an_erased_item_is_in_no_row_and_of_a_stored_one_is_shown(file, clock):
    with open_memory(file, clock=clock) as memory:
        for key in ("hivzyx", "teazyx"):
            memory.items.put(("health",), key, {"n": 1}, user_id="alice")
        memory.items.delete(("health",), "hivzyx", user_id="alice")
        names = [e.record_id for e in memory.audit.events(user_id="alice")]
        assert names[1] == '[["health"],"teazyx"]'
        assert names[0] == names[2]
        assert names[0].startswith("r:")
    assert not words_in_files(file.parent, {"hivzyx", "teazyx"})


def test_id_of_a_fact_that_was_said_again_is_in_no_row(file, clock):
    with open_memory(file, clock=clock) as memory:
        for session in ("s1", "s2"):
            turn = Turn(id=session, speaker="user", text="I live in Lyon.")
            result = add_turns(memory, [turn], user_id="alice", session_id=session)
        (said,) = result.confirmed
    with closing(sqlite3.connect(file)) as connection:
        log = str(connection.execute("SELECT * FROM audit").fetchall())
    assert "said again" in log
    assert said not in log


def test_log_holds_no_hash_of_content_without_a_key(file, clock):
    """A PIN could be guessed from it."""
    with open_memory(file, clock=clock, audit_key=None) as memory:
        memory.items.put(("pins",), "bank", {"pin": "4711"}, user_id="alice")
        memory.items.search(("pins",), user_id="alice", query="4711")
        memory.messages.add("s", [{"pin": "4711"}], user_id="alice")
        details = [e.detail for e in memory.audit.events()]
    assert details
    assert not any({"content", "query"} & detail.keys() for detail in details)


def test_export_holds_no_digest_and_no_place_in_the_log_of_all_users(memory):
    memory.add("I like tea.", user_id="alice", id="tea")
    (entry,) = memory.export(user_id="alice")["audit"]
    assert (entry["record_id"], entry["action"]) == ("tea", "add")
    assert not {"seq", "digest"} & entry.keys()


@pytest.mark.parametrize("audit_key", [None, KEY])
def test_log_of_a_plain_file_names_nobody_and_stays_provable(file, clock, monkeypatch, audit_key):
    """Neither an erased item's key nor a forgotten user's name stands in it."""
    heads = []
    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "names_key", None)
        with open_memory(file, clock=clock, audit_key=audit_key) as memory:
            memory.add("I like tea.", user_id="alicezyx", id="teazyx")
            memory.items.put(("health",), "hivzyx", {"n": 1}, user_id="alicezyx")
            heads.append(memory.audit.head())
            memory.items.delete(("health",), "hivzyx", user_id="alicezyx")
            memory.supersede("teazyx", "I like coffee.", user_id="alicezyx", id="newzyx")
            memory.add("I like tea.", user_id="bobzyx", id="s")
            memory.forget_user(user_id="bobzyx")
            heads.append(memory.audit.head())
            events = memory.audit.events(user_id="alicezyx")
        as_plain(file)
    assert words_in_files(file.parent, {"bobzyx", "hivzyx"}) == {"bobzyx", "hivzyx"}
    with open_memory(file, clock=clock, audit_key=audit_key) as memory:
        assert words_in_files(file.parent, {"bobzyx", "alicezyx", "hivzyx", "teazyx"}) == set()
        assert all(memory.audit.verify(head).ok for head in heads)
        wrong = replace(heads[0], digest=heads[1].digest)
        assert "differs from the head that was kept" in memory.audit.verify(wrong).problem
        found = memory.audit.events(user_id="alicezyx")
        assert [(e.at, e.action, e.user_id, e.reason) for e in found] == [
            (e.at, e.action, e.user_id, e.reason) for e in events
        ]
        assert [e.record_id for e in found if e.action == "supersede"] == ["teazyx"]
        assert [e.action for e in memory.audit.events(user_id="bobzyx", record_id="s")] == ["add", "delete"]
        certificate = memory.audit.certificate(user_id="bobzyx", record_ids=["s"])
        assert memory.audit.check_certificate(certificate).ok
        memory.forget_user(user_id="alicezyx")
        assert "zyx" not in rows_of(file)
        assert memory.audit.verify().ok


def test_log_of_a_plain_file_that_is_not_intact_stays_as_it_is(file, clock, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "names_key", None)
        with open_memory(file, clock=clock) as memory:
            memory.add("I like tea.", user_id="alice", id="tea")
            memory.add("I like coffee.", user_id="alice", id="coffee")
        as_plain(file)
    run_sql(file, "UPDATE audit SET reason = 'forged' WHERE seq = 2")
    for _ in range(2):
        with open_memory(file, clock=clock) as memory:
            assert memory.audit.verify().problem == "entry 2 was altered, or the entry before it"
            assert [e.reason for e in memory.audit.events()] == ["on request", "forged"]
