"""An erasure certificate says what was erased, when, and where the log says so; a check finds what isn't so."""

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest

from meve.errors import AuditError, ValidationError
from meve.memory import ErasureCertificate, Policy
from meve.testing.dict_memory_store import DictMemoryStore
from tests.memories import KEY, open_memory, open_store, plant, read_stored, run_sql

OWN_KEY = b"a key of the certificate's own"


def erase(memory, clock):
    """Erase a fact, an item and a message of alice, let one expire, and add more afterwards."""
    memory.add("My PIN is quatorze.", user_id="alice", id="pin")
    memory.add("Soon over.", user_id="alice", id="soon", ttl=timedelta(hours=1))
    memory.add("I live in Lyon.", user_id="alice", id="home")
    memory.add("I live in Rome.", user_id="bob", id="rome")
    memory.items.put(("prefs",), "theme", {"dark": True}, user_id="alice")
    memory.messages.add("s1", [{"text": "Hello."}], user_id="alice", ids=["m1"])
    clock.advance(timedelta(hours=2))
    memory.maintain()
    memory.delete("pin", user_id="alice")
    memory.items.delete(("prefs",), "theme", user_id="alice")
    memory.messages.pop("s1", user_id="alice")
    memory.forget_user(user_id="bob")


@pytest.fixture(params=["sqlite", "dict"])
def memory(request, file, clock):
    store = open_store(file) if request.param == "sqlite" else DictMemoryStore()
    with open_memory(None, store=store, clock=clock) as opened:
        erase(opened, clock)
        yield opened


def test_certificate_names_ids_kinds_and_times_but_no_text(memory, clock):
    certificate = memory.audit.certificate(user_id="alice")
    item = certificate.entries[2].record_id
    assert item == '[["prefs"],"theme"]' or re.fullmatch("r:[0-9a-f]{32}", item)  # in a file, its key is gone
    assert [(e.record_id, e.kind, e.action) for e in certificate.entries] == [
        ("soon", "fact", "expire"),
        ("pin", "fact", "delete"),
        (item, "item", "delete"),
        ("m1", "message", "delete"),
    ]
    assert certificate.counts == {"fact": 2, "item": 1, "message": 1}
    deleted = memory.audit.events(user_id="alice", action=["expire", "delete"])
    assert [(e.record_id, e.at) for e in certificate.entries] == [(e.record_id, e.at) for e in deleted]
    assert (certificate.user_id, certificate.issued_at) == ("alice", clock.now())
    assert "quatorze" not in json.dumps(certificate.to_dict())


def test_certificate_passes_its_check_after_json_and_later_changes(memory):
    certificate = memory.audit.certificate(user_id="alice")
    memory.add("Again.", user_id="alice", id="pin")
    again = ErasureCertificate.from_dict(json.loads(json.dumps(certificate.to_dict())))
    assert again == certificate
    result = memory.audit.check_certificate(again)
    assert (result.ok, result.signed, result.problems) == (True, True, ())


def test_record_ids_and_times_narrow_a_certificate(memory, clock):
    clock.advance(timedelta(hours=1))
    memory.delete("home", user_id="alice")
    certified = [
        memory.audit.certificate(user_id="alice", record_ids=["pin"]),
        memory.audit.certificate(user_id="alice", since=timedelta(minutes=5)),
        memory.audit.certificate(user_id="alice", until=clock.now() - timedelta(hours=2)),
    ]
    assert [[e.record_id for e in each.entries] for each in certified] == [["pin"], ["home"], []]
    with pytest.raises(ValidationError, match="record_ids names 'rome', whose erasure the log doesn't show"):
        memory.audit.certificate(user_id="alice", record_ids=["rome"])
    with pytest.raises(ValidationError, match="record_ids must be a list of ids, got 'pin'"):
        memory.audit.certificate(user_id="alice", record_ids="pin")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda c: replace(c, user_id="bob"), "doesn't hold this erasure of"),
        (
            lambda c: replace(c, entries=(replace(c.entries[0], record_id="home"),)),
            "doesn't hold this erasure of 'home'",
        ),
        (lambda c: replace(c, entries=(replace(c.entries[0], place="0" * 32),)), "doesn't hold this erasure of 'soon'"),
        (lambda c: replace(c, entries=(replace(c.entries[0], kind="item"),)), "doesn't hold this erasure of"),
        (lambda c: replace(c, entries=c.entries[:1]), "the signature isn't that of this certificate and this key"),
        (lambda c: replace(c, signature=""), "the signature isn't that of this certificate and this key"),
        (lambda c: replace(c, head=c.entries[0].place), "doesn't hold this erasure of 'pin'"),
        (lambda c: replace(c, head="0" * 32), "lacks the entry that was its newest"),
    ],
)
def test_changed_certificate_fails_with_the_reason(memory, change, problem):
    result = memory.audit.check_certificate(change(memory.audit.certificate(user_id="alice")))
    assert not result.ok
    assert problem in "; ".join(result.problems)


def test_key_of_its_own_signs_and_checks(memory):
    certificate = memory.audit.certificate(user_id="alice", key=OWN_KEY)
    assert memory.audit.check_certificate(certificate, key=OWN_KEY).ok
    assert not memory.audit.check_certificate(certificate).ok
    with pytest.raises(ValidationError, match="key must be at least 16 bytes"):
        memory.audit.certificate(user_id="alice", key=b"short")
    with pytest.raises(ValidationError, match="certificate must be what certificate"):
        memory.audit.check_certificate({})
    with pytest.raises(ValidationError, match="data must be what"):
        ErasureCertificate.from_dict({"user_id": "alice"})


def test_certificate_without_a_key_is_unsigned(file, clock):
    with open_memory(file, clock=clock, audit_key=None) as memory:
        erase(memory, clock)
        certificate = memory.audit.certificate(user_id="alice")
        assert certificate.signature == ""
        result = memory.audit.check_certificate(certificate)
        assert (result.ok, result.signed) == (True, False)
        signed = memory.audit.certificate(user_id="alice", key=OWN_KEY)
        assert memory.audit.check_certificate(signed).problems == ("the certificate is signed: give its key",)


def test_certificate_with_pseudonyms_holds_no_user_id(file, clock):
    policy = Policy.from_dict({"audit": {"pseudonyms": True}})
    with open_memory(file, clock=clock, policy=policy) as memory:
        erase(memory, clock)
        certificate = memory.audit.certificate(user_id="alice")
        assert len(certificate.entries) == 4
        assert "alice" not in json.dumps(certificate.to_dict())
        assert memory.audit.check_certificate(certificate).ok


def test_broken_log_certifies_nothing_and_fails_the_check(file, clock):
    with open_memory(file, clock=clock) as memory:
        erase(memory, clock)
        certificate = memory.audit.certificate(user_id="alice")
    run_sql(file, "UPDATE audit SET reason = 'x' WHERE seq = 2")
    with open_memory(file, clock=clock) as memory:
        with pytest.raises(AuditError, match="nothing can be certified: entry 2 was altered"):
            memory.audit.certificate(user_id="alice")
        assert not memory.audit.check_certificate(certificate).ok


def put_back(file, record_id, new_id, erase):
    """Keep a record, run a function, and put the record back under an id."""
    kept = read_stored(file, "alice", record_id)
    erase()
    plant(file, "alice", kept, id=new_id)


@pytest.mark.parametrize(("audit_key", "pseudonyms"), [(KEY, False), (None, False), (KEY, True)])
def test_certificate_fails_once_an_erased_record_was_put_back(file, clock, audit_key, pseudonyms):
    policy = Policy.from_dict({"audit": {"pseudonyms": pseudonyms}})
    with open_memory(file, clock=clock, audit_key=audit_key, policy=policy) as memory:
        for user in ("alice", "bob"):
            memory.add("My PIN is 4711.", user_id=user, id="pin")
        put_back(file, "pin", "pin", lambda: memory.delete("pin", user_id="alice"))
        memory.delete("pin", user_id="bob")
        certificate = memory.audit.certificate(user_id="bob")
        assert memory.audit.check_certificate(certificate).ok
        with pytest.raises(AuditError, match="nothing can be certified: record 'pin' is stored"):
            memory.audit.certificate(user_id="alice")


@pytest.mark.parametrize(("audit_key", "new_id"), [(KEY, "pin"), (None, "pin"), (KEY, "x")])
def test_check_fails_once_an_erased_record_was_put_back(file, clock, audit_key, new_id):
    with open_memory(file, clock=clock, audit_key=audit_key) as memory:
        memory.add("My PIN is 4711.", user_id="alice", id="pin")
        certificates = []

        def erase():
            memory.delete("pin", user_id="alice")
            certificates.append(memory.audit.certificate(user_id="alice"))

        put_back(file, "pin", new_id, erase)
        result = memory.audit.check_certificate(certificates[0])
        assert not result.ok
        assert f"record {new_id!r} is stored" in result.problems[0]


def test_certificate_says_nothing_of_other_users_nor_how_many_entries_there_are(file, clock):
    """Neither a number nor a digest changes in a way that tells what happened to others."""
    with open_memory(file, clock=clock) as memory:
        erase(memory, clock)
        certificate = memory.audit.certificate(user_id="alice").to_dict()
        log = memory.audit.events()
    text = json.dumps({**certificate, "counts": {}, "issued_at": "", "entries": [
        {**entry, "at": ""} for entry in certificate["entries"]
    ]})  # fmt: skip
    assert not any(event.digest[:16] in text for event in log)
    assert not re.search(r"[:\[ ]\d+[,}\]]", text)  # no number


def test_certificate_fails_once_the_end_of_the_log_was_removed(file, clock):
    """Somebody with the audit key removes what follows the erasures, and seals the rest anew."""
    with open_memory(file, clock=clock) as memory:
        erase(memory, clock)
        memory.add("More.", user_id="carol", id="more")
        certificate = memory.audit.certificate(user_id="alice")
        chain, events = memory._runtime.store.chain, memory.audit.events()
    last = events[-2]
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM audit WHERE seq > ?", (last.seq,))
        seal = chain.seal(last.seq, bytes.fromhex(last.digest))
        connection.execute(
            "UPDATE audit_head SET seq = ?, digest = ?, seal = ?", (last.seq, bytes.fromhex(last.digest), seal)
        )
    with open_memory(file, clock=clock) as memory:
        result = memory.audit.check_certificate(certificate)
    assert "the log lacks the entry that was its newest when the certificate was issued" in result.problems
