"""Signed checkpoints: whoever holds the audit key can't rewrite the log, nor cut off its end, without being found."""

import json
import logging
import multiprocessing
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from meve.errors import AuditError, ConfigurationError, ModelError, ValidationError
from meve.memory import AuditHead, Checkpoints
from meve.memory._audit.chain import INITIAL_DIGEST, AuditChain
from meve.memory._audit.checkpoints import _message
from meve.memory.stores.protocol import EventQuery, SealedHead
from meve.signing_keys import SigningKey, encode
from tests.memories import KEY, open_memory, open_store

SIGNING = SigningKey(id="2026-11", secret=b"a secret that signs checkpoints!")


@pytest.fixture
def kept(tmp_path):
    return tmp_path / "elsewhere.jsonl"


def make_history(file, kept, clock, name="alice", times=3):
    """Add a record and maintain, several times."""
    with open_memory(file, clock=clock, checkpoints=Checkpoints(to=kept, key=SIGNING)) as memory:
        for n in range(times):
            memory.add(f"Fact {n}.", user_id=name, id=f"f{n}")
            memory.maintain()
            clock.advance(timedelta(hours=1))


def verify(file, kept, key=SIGNING.verifying):
    with open_memory(file) as memory:
        return memory.audit.verify(checkpoints=kept, public_key=key)


def rewrite(file, change):
    """Write the log anew with what `change` makes of its entries, as whoever holds file and audit key can."""
    with closing(open_store(file)) as store:
        chain = AuditChain(KEY, names_key=store.names_key)
        with store.reading() as snapshot:
            rows = change(list(snapshot.entries(EventQuery())))
        before = INITIAL_DIGEST
        with store.writing() as transaction:
            transaction._vault.connection.execute("DELETE FROM audit WHERE tenant = :tenant")
            for n, row in enumerate(rows):
                before = chain.digest(before, row[:-1])
                rows[n] = row._replace(digest=before)
            head = SealedHead(seq=len(rows), digest=before, seal=chain.seal(len(rows), before))
            transaction.append(rows, head)


def change_reason(rows):
    return [row._replace(reason="another") if row.seq == 2 else row for row in rows]


def claim_former(rows):
    """Change an entry, and claim that the checkpoint is of the time before keyed hashes took the place of names."""
    chain = AuditChain(KEY)
    forged = json.dumps({"former": chain.place(rows[-1].seq, rows[-1].digest.hex())})
    return [row._replace(detail=forged) if row is rows[-1] else row for row in change_reason(rows)]


def test_each_maintenance_appends_a_checkpoint_that_verifies(file, kept, clock):
    make_history(file, kept, clock)
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    assert [line["position"] for line in lines] == [1, 2, 3]
    assert {line["key"] for line in lines} == {"2026-11"}
    result = verify(file, kept)
    assert (result.ok, result.checkpoints, result.events) == (True, 3, 3)


@pytest.mark.parametrize(
    ("change", "position"),
    [(change_reason, 2), (claim_former, 2), (lambda rows: rows[:2], 3), (lambda _rows: [], 1)],
    ids=["changed", "claimed-former", "cut", "emptied"],
)
def test_log_rewritten_with_the_audit_key_is_found(file, kept, clock, change, position):
    make_history(file, kept, clock)
    rewrite(file, change)
    with open_memory(file) as memory:
        assert memory.audit.verify().broken_at is None  # the log alone seems intact
    result = verify(file, kept)
    assert (result.ok, result.broken_at, result.checkpoints) == (False, position, 0)
    assert "checkpoint" in result.problem


def test_lost_write_ahead_log_is_found(file, kept, clock):
    make_history(file, kept, clock, times=1)
    before = file.read_bytes(), (keys := file.with_name("memory.db.keys")).read_bytes()
    make_history(file, kept, clock, name="bob")
    file.write_bytes(before[0])
    keys.write_bytes(before[1])
    result = verify(file, kept)
    assert result.problem == "the log has 1 entries, and a signed checkpoint covers 2: the end is missing"


def resign(line, **changes):
    """Return the line with other values, and the signature of somebody else with a key of the same id."""
    stranger = SigningKey(id="2026-11", secret=b"a secret of quite another person")
    data = json.loads(line) | changes
    return json.dumps(data | {"signature": encode(stranger.sign(_message(data)))})


def make_line(seq, digest):
    lines = []
    head = AuditHead(seq=seq, digest=digest)
    Checkpoints(to=lines.append, key=SIGNING).write(lambda: head, lambda: datetime.now(UTC))
    return lines[0]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda lines: [*lines, resign(lines[-1])], "line 4 .* isn't signed with the key 2026-11"),
        (lambda lines: [lines[0].replace('"position": 1', '"position": 2')], "line 1 .* isn't signed"),
        (lambda lines: [lines[0].replace("2026-05-01", "2026-05-02")], "line 1 .* isn't signed"),
        (lambda lines: [resign(lines[0], key="other")], "names the key 'other'"),
        (lambda lines: lines[::-1], "line 2 .* isn't in its place"),
        (lambda lines: [*lines, '{"position": 1}'], "line 4 .* is no checkpoint"),
        (lambda lines: [*lines, "[" * 99_999 + "}"], "line 4 .* is no checkpoint"),
        (lambda lines: [lines[0].replace('"2026-11"', "7")], "line 1 .* is no checkpoint"),
        (lambda _lines: [], "holds no checkpoint"),
    ],
)
def test_forged_altered_and_reordered_checkpoints_are_refused(file, kept, clock, change, problem):
    make_history(file, kept, clock)
    kept.write_text("".join(f"{line}\n" for line in change(kept.read_text().splitlines())))
    with pytest.raises(AuditError, match=problem):
        verify(file, kept)


def test_checkpoints_of_another_memory_are_refused(file, kept, clock, tmp_path):
    make_history(file, kept, clock)
    other = tmp_path / "other.jsonl"
    make_history(tmp_path / "other.db", other, clock, times=2)
    assert "entry 1 differs from a signed checkpoint" in verify(file, other).problem
    other.write_text(kept.read_text() + other.read_text().splitlines()[-1] + "\n")
    with pytest.raises(AuditError, match="isn't in its place"):
        verify(file, other)
    lines = [make_line(seq, digest) for seq, digest in ((1, "a" * 64), (1, "b" * 64))]
    other.write_text("\n".join(lines) + "\n")
    with pytest.raises(AuditError, match="contradicts the line before it"):
        verify(file, other)


def test_line_that_was_never_completed_is_passed_over(file, kept, clock):
    make_history(file, kept, clock, times=2)
    first, second = kept.read_text().splitlines()
    kept.write_text(f"{first}\n{second[:40]}")
    make_history(file, kept, clock, name="bob", times=1)
    assert verify(file, kept).checkpoints == 2


def test_function_gets_the_lines(file, kept, clock):
    lines = []
    with open_memory(file, clock=clock, checkpoints=Checkpoints(to=lines.append, key=SIGNING)) as memory:
        memory.maintain()
        memory.add("One.", user_id="alice")
        memory.maintain(dry_run=True)
        memory.maintain(user_id="alice")
    kept.write_text("\n".join(lines) + "\n")
    assert verify(file, kept).checkpoints == 2


@pytest.mark.parametrize("failing", ["folder", "directory", "function"])
def test_checkpoint_that_cannot_be_written_is_said_and_maintenance_is_done(file, clock, tmp_path, failing):
    to = {"folder": tmp_path / "missing" / "kept.jsonl", "directory": tmp_path, "function": lambda _line: 1 / 0}[
        failing
    ]
    with open_memory(file, clock=clock, checkpoints=Checkpoints(to=to, key=SIGNING)) as memory:
        memory.add("Old news.", user_id="alice", id="old", ttl=timedelta(days=1))
        clock.advance(timedelta(days=2))
        with pytest.raises(AuditError, match="maintenance is done, but its checkpoint"):
            memory.maintain()
        assert [event.record_id for event in memory.audit.events(user_id="alice", action="expire")] == ["old"]
    assert not (tmp_path / "missing").exists()


def test_failed_component_does_not_prevent_the_checkpoint(file, kept, clock):
    class Broken:
        def judge(self, *_arguments, **_options):
            raise ModelError("the judge is out")

    with open_memory(file, clock=clock, updates=Broken(), checkpoints=Checkpoints(to=kept, key=SIGNING)) as memory:
        for text in ("I live in Rome.", "I live in Paris."):
            memory.add(text, user_id="alice")
        with pytest.raises(ModelError):
            memory.maintain()
    assert verify(file, kept).checkpoints == 1


def test_no_secret_is_shown_logged_or_written(file, kept, clock, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    checkpoints = Checkpoints(to=kept, key=SIGNING)
    make_history(file, kept, clock)
    with pytest.raises(ConfigurationError) as refused:
        open_memory(file, checkpoints=SIGNING.secret)
    with pytest.raises(AuditError) as failed, open_memory(file, checkpoints=Checkpoints(to=tmp_path, key=SIGNING)) as m:
        m.maintain()
    shown = repr(checkpoints) + caplog.text + repr(refused.value) + repr(failed.value)
    written = b"".join(each.read_bytes() for each in tmp_path.iterdir()) + shown.encode()
    assert SIGNING.secret not in written
    assert SIGNING.secret.hex().encode() not in written


def test_invalid_arguments_are_refused(file, kept, clock):
    shared = SigningKey.generate("k", "hmac-sha256")
    for arguments in ({"to": 7, "key": SIGNING}, {"to": kept, "key": shared}, {"to": kept, "key": b"x" * 32}):
        with pytest.raises(ConfigurationError):
            Checkpoints(**arguments)
    make_history(file, kept, clock)
    for key in (shared.verifying, b"x" * 32, ()):
        with pytest.raises(ConfigurationError):
            verify(file, kept, key)
    with open_memory(file) as memory:
        for arguments in ({"checkpoints": kept}, {"public_key": SIGNING.verifying}):
            with pytest.raises(ValidationError, match="together"):
                memory.audit.verify(**arguments)
        with pytest.raises(AuditError, match="can't be read"):
            memory.audit.verify(checkpoints=file.with_name("none"), public_key=SIGNING.verifying)


def _work(file, kept, name):
    with open_memory(file, checkpoints=Checkpoints(to=kept, key=SIGNING)) as memory:
        for n in range(10):
            memory.add(f"Fact {n}.", user_id=name)
            memory.maintain(user_id=name)


def test_processes_that_maintain_at_once_write_in_order(file, kept):
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_work, args=(file, kept, name)) for name in ("alice", "bob")]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0]
    assert verify(file, kept).checkpoints == 20
