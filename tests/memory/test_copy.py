"""Copying a whole memory between a file and a PostgreSQL database, also when it is killed or changed meanwhile."""

import random
import signal
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from meve.errors import AuditError, KeyFileError, StorageError, StoreCorruptError
from meve.memory import copy_memory
from meve.memory.stores._sql.copying import StoreCopier
from meve.memory.stores._sql.vault import KEY_SETTINGS
from meve.memory.stores.protocol import EventQuery, RecordQuery
from tests.memories import KEY, as_argument, open_memory, open_store, place_of, read_sql, run_sql
from tests.memory import copying_child
from tests.memory.sealed_files import Workload, key_file, words_in_files
from tests.postgres import MemoryUrl
from tests.warm_process import warm_process

PROGRESS = "SELECT name FROM meta WHERE substr(name, 1, 9) = 'compared '"
"""How far maintenance has come, by row numbers, which differ in a copy."""


@pytest.fixture(params=["to postgresql", "from postgresql"])
def places(request, tmp_path, postgres_url):
    """Return source and target, of which one is a file and the other one a database."""
    (tmp_path / "server").mkdir()
    (tmp_path / "file").mkdir()
    pair = tmp_path / "file" / "memory.db", MemoryUrl(postgres_url, tmp_path / "server" / "memory.keys")
    return pair if request.param == "to postgresql" else pair[::-1]


@pytest.fixture
def files(tmp_path):
    """Return source and target, both of them files."""
    for name in ("source", "target"):
        (tmp_path / name).mkdir()
    return tmp_path / "source" / "memory.db", tmp_path / "target" / "memory.db"


def fill(memory):
    """Add all kinds of what a memory holds."""
    memory.add("Dave likes tea.", user_id="dave", id="tea")
    for n in range(12):
        memory.add(f"Tea number {n}.", user_id="alice", id=f"t{n}", source="doc", ttl=timedelta(days=n + 1), tags=["x"])
    memory.supersede("t3", "Tea number three.", user_id="alice", id="three", source="doc")
    memory.hold("t4", user_id="alice", why="case 12")
    memory.delete("t5", user_id="alice")
    memory.add("My PIN is 4711.", user_id="bob", id="pin", metadata={"a": [1, {"b": None}]})
    memory.add("Bread.", user_id=7, id="bread")
    memory.items.put(("prefs",), "theme", {"dark": True}, user_id="alice")
    memory.items.put(("prefs",), "font", {"size": 3}, user_id=7)
    memory.messages.add("s1", [{"role": "user", "text": f"Message {n}"} for n in range(5)], user_id="bob")
    memory.messages.pop("s1", user_id="bob", ids=None)
    memory.messages.add("s2", [{"role": "user", "text": f"Message {n}"} for n in range(5)], user_id="bob")
    memory.messages.add("s2", [{"role": "user", "text": "archived"}], user_id="bob", archived=True)
    memory.add_shared("The office opens at 9.", id="office")
    memory.record_outcome("office", 1.0, user_id="alice")
    memory.record_outcome("t1", 0.5, user_id="alice")
    memory.search("Tea number 2", user_id="alice")
    memory.add("Gone.", user_id="carol", id="gone")
    memory.forget_user(user_id="carol")
    archive(memory, "t7")
    archive(memory, "t2")


def archive(memory, record_id):
    Workload(memory)._change("s:alice", record_id, archived=True)


def content(file):
    """Return all that a store holds, in its order, except for what every store makes anew."""
    with closing(open_store(file)) as store, store.reading() as snapshot:
        own = KEY_SETTINGS | {"key_file", "plain_pages"}
        rows = snapshot.vault.connection.execute("SELECT name, value FROM meta WHERE tenant = :tenant").fetchall()
        users = {user for user, _ in snapshot.names(None)} | set(snapshot.users())
        return {
            "settings": {name: value for name, value in rows if name not in own and not name.startswith("compared ")},
            "users": users,
            "records": {user: [plain(each) for each in all_of(snapshot, user)] for user in users},
            "scores": {user: snapshot.shared_scores(user) for user in users},
            "names": sorted(set(snapshot.names(None))),
            "log": list(snapshot.entries(EventQuery())),
            "head": snapshot.head(),
            "time": store.latest_time() > 0,
        }


def all_of(snapshot, user):
    return snapshot.records(RecordQuery(user=user, archived=None))


def plain(stored):
    return stored.record, stored.vector.tobytes(), np.asarray(stored.passages).tobytes(), stored.tokens, stored.model


def copy(source, target, **options):
    return copy_memory(place_of(source), place_of(target), **{"audit_key": KEY, **options})


def test_copy_holds_all_that_the_source_holds(places):
    source, target = places
    with open_memory(source) as memory:
        fill(memory)
        memory.maintain()
        head = memory.audit.head()
    before = content(source)
    report = copy(source, target)
    assert content(source) == before
    assert content(target) == before
    assert [len(read_sql(file, PROGRESS)) > 0 for file in (source, target)] == [True, False]
    assert report.head == head
    assert report.verification.ok
    with open_memory(target) as copied:
        result = copied.audit.verify(head)
        assert (result.ok, result.not_covered, result.events) == (True, 0, head.seq)
        assert result.records == report.verification.records > 20
        assert (copied.stats().users, copied.stats().records) == (report.users, report.records)
        assert "Tea number 1." in copied.search("Tea number 1", user_id="alice").text
        assert copied.find_damage() == []
        copied.add("More.", user_id="alice")
        assert not copied.maintain().damage
        assert copied.audit.verify(head).ok
    with pytest.raises(StorageError, match="holds a memory already"):
        copy(source, target)


def test_copy_of_a_memory_without_an_audit_key(files):
    source, target = files
    with open_memory(source, audit_key=None) as memory:
        fill(memory)
    assert copy(source, target, audit_key=None).verification.ok
    assert content(target) == content(source)


def test_each_record_has_a_new_key(files):
    """Erasing a memory in the source takes nothing from the copy, and the other way round."""
    source, target = files
    with open_memory(source) as memory:
        fill(memory)
    copy(source, target)
    with open_memory(source) as memory:
        memory.forget_user(user_id="alice")
    with open_memory(target) as copied:
        assert len(copied.list(user_id="alice")) > 5
        copied.forget_user(user_id="bob")
        assert copied.audit.verify().ok
    with open_memory(source) as memory:
        assert [record.id for record in memory.list(user_id="bob")] == ["pin"]
    shared = set(chunks(key_file(source))) & set(chunks(key_file(target)))
    assert len(shared) == 0


def chunks(path):
    slots = path.read_bytes()[4096:]
    return [slots[at : at + 32] for at in range(0, len(slots), 32)]


POINTS = [
    ("meve.memory.stores._sql.transaction:SqlTransaction:put", 1),
    ("meve.memory.stores._sql.transaction:SqlTransaction:put", 9),
    ("meve.memory.stores._sql.transaction:SqlTransaction:finish", 2),
    ("meve.memory.stores._sql.transaction:SqlTransaction:finish", 4),
    ("meve.memory.stores._sql.transaction:SqlTransaction:append", 2),
    ("meve.memory.stores._sql.key_file:KeyFile:create", 1),
    ("meve.memory.stores._sql.key_file:KeyFile:mark_used", 2),
    ("meve.memory.stores._sql.copying:StoreCopier:_copy_settings", 1),
    ("meve.memory.stores._sql.copying:StoreCopier:_compare", 1),
]


@pytest.mark.parametrize(("where", "count"), POINTS)
def test_killed_copy_goes_on(places, where, count):
    source, target = places
    with open_memory(source) as memory:
        fill(memory)
    with warm_process(copying_child.copy_and_die, as_argument(source), as_argument(target), where, count) as (child, _):
        child.join()
        assert child.exitcode == -signal.SIGKILL
    if where.endswith(("put", "append", "finish", "_compare")):
        with pytest.raises(StorageError, match="is an unfinished copy of a memory"):
            open_memory(target)
    with open_memory(source) as memory:  # what is erased meanwhile must not be in the copy
        memory.delete("t1", user_id="alice")
        memory.forget_user(user_id=7)
        memory.add("New.", user_id="dora", id="new")
    assert copy(source, target).verification.ok
    assert content(target) == content(source)


def test_changes_during_the_copy_are_in_the_copy(places):
    """Erased, forgotten, added, archived and changed memories, after their user was copied."""
    source, target = places
    with open_memory(source) as memory:
        fill(memory)
        change = iter(changes(memory))
        copy(source, target, progress=lambda *_: next(change, None))
        assert next(change, "all were made") == "all were made"
    assert content(target) == content(source)
    with open_memory(target) as copied:
        assert "t1" not in [record.id for record in copied.list(user_id="alice", include_archived=True)]
        assert [record.text for record in copied.list(user_id="bob")] == ["Bob again."]
        assert copied.list(user_id=7) == []


def changes(memory):
    """Make changes one by one, the last ones between the copying of users and the end."""
    yield
    yield
    yield
    memory.delete("t1", user_id="alice")
    archive(memory, "t8")
    memory.restore("t7", user_id="alice")
    archive(memory, "t0")
    memory.restore("t0", user_id="alice")  # it is the newest now
    memory.update("t9", user_id="alice", text="Tea number nine.")
    yield
    memory.forget_user(user_id="bob")
    memory.search("Who likes tea?", user_id="dave")  # when is written with the next change
    memory.add("Bob again.", user_id="bob", id="again")
    memory.forget_user(user_id=7)


def test_random_changes_between_killed_copies_leave_the_same_content(places):
    source, target = places
    chosen = random.Random(4)
    with open_memory(source) as memory:
        workload = Workload(memory, seed=4)
        for turn in range(4):
            for _ in range(15):
                workload.add() if not workload.live or chosen.random() < 0.6 else workload.erase()
            if turn < 3:
                with pytest.raises(Stop):
                    copy(source, target, progress=stop_after(chosen.randrange(1, 8)))
    copy(source, target)
    assert content(target) == content(source)
    folder = key_file(target).parent
    assert words_in_files(folder, workload.gone) == set()


class Stop(Exception):  # noqa: N818
    pass


def stop_after(count):
    calls = iter(range(count))

    def progress(*_):
        if next(calls, None) is None:
            raise Stop

    return progress


def test_erased_words_cannot_be_read_with_any_key_of_the_copy(files):
    """An unfinished copy is finished after an erasure: its former keys are overwritten."""
    source, target = files
    with open_memory(source) as memory:
        fill(memory)
        with pytest.raises(Stop):
            copy(source, target, progress=stop_after(5))
        before = set(chunks(key_file(target)))
        memory.forget_user(user_id="alice")
    copy(source, target)
    renewed = before - set(chunks(key_file(target)))
    assert len(renewed) >= 12  # of all her records but the one on hold


def test_foreign_targets_are_refused_and_left_as_they_are(places, tmp_path):
    source, target = places
    with open_memory(source) as memory:
        fill(memory)
    with open_memory(target) as memory:
        memory.add("Mine.", user_id="alice", id="mine")
    before = content(target)
    with pytest.raises(StorageError, match="holds a memory already: copy to a new file, or to another tenant"):
        copy(source, target)
    with pytest.raises(StorageError, match="holds a memory already"):
        copy(source, source)
    assert content(target) == before
    third = tmp_path / "third.db"
    with pytest.raises(Stop):
        copy(source, third, progress=stop_after(2))
    with pytest.raises(StorageError, match="is an unfinished copy of another memory than this one"):
        copy(target, third)
    with pytest.raises(StorageError, match="there is no memory at"):
        copy(tmp_path / "missing.db", third)
    assert not (tmp_path / "missing.db").exists()


def test_source_that_does_not_verify_is_refused(files):
    source, target = files
    with open_memory(source) as memory:
        fill(memory)
    with pytest.raises(AuditError, match="another key"):
        copy(source, target, audit_key=b"another key, of the same length")
    run_sql(source, "UPDATE audit SET reason = 'forged' WHERE seq = 3")
    with pytest.raises(AuditError, match=r"isn't copied, since it doesn't verify .*: entry 3 was altered"):
        copy(source, target)


def test_unreadable_record_stops_the_copy(files):
    source, target = files
    with open_memory(source, audit_key=None) as memory:
        fill(memory)
    run_sql(source, "UPDATE memories SET sealed = zeroblob(80) WHERE row = 3")
    with pytest.raises((StoreCorruptError, AuditError)):
        copy(source, target, audit_key=None)
    with pytest.raises(StorageError, match="unfinished copy"):
        open_memory(target, audit_key=None)


def test_master_keys_of_source_and_target_differ(files):
    source, target = files
    mine, theirs = b"the master key of the source", b"the master key of the target"
    with open_memory(source, master_key=mine) as memory:
        fill(memory)
    copy_memory(replace(place_of(source), master_key=mine), replace(place_of(target), master_key=theirs), audit_key=KEY)
    with open_memory(target, master_key=theirs) as copied:
        assert copied.audit.verify().ok
    with pytest.raises(KeyFileError, match="another master key"):
        open_memory(target, master_key=mine)


def test_two_copies_at_once_end_as_one(files):
    """The one that comes later finds the copy finished, and changes nothing."""
    source, target = files
    with open_memory(source) as memory:
        fill(memory)

    def run_another(stage, done, total):
        if (stage, done) == ("users", 2):
            copy(source, target)

    with pytest.raises(StorageError, match="another process finished"):
        copy(source, target, progress=run_another)
    assert content(target) == content(source)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda target: target.remove("s:alice", "t6"), "rows in memories instead of"),
        (lambda target: target.put("s:alice", changed(target)), "and copy again: records that differ from the log: 1"),
    ],
)
def test_copy_that_differs_is_not_finished(files, monkeypatch, change, problem):
    """The comparison at the end finds what is missing, and the verification what is another; the copy stays closed."""
    source, target = files
    with open_memory(source) as memory:
        fill(memory)
    inner = StoreCopier._copy_settings

    def interfere(self, locked):
        inner(self, locked)
        with self._target.writing() as transaction:
            change(transaction)

    monkeypatch.setattr(StoreCopier, "_copy_settings", interfere)
    with pytest.raises((StorageError, AuditError), match=problem):
        copy(source, target)
    with pytest.raises(StorageError, match="unfinished copy"):
        open_memory(target)


def changed(target):
    [stored] = target.records(RecordQuery(user="s:alice", ids=["t6"]))
    return replace(stored, record=replace(stored.record, text="Another text."))
