"""Test that a user is forgotten although keys, or the places where they stand, are damaged."""

import pytest

from meve.errors import StoreCorruptError
from meve.memory.stores._sql.key_file import _FIRST, _SLOT
from tests.memories import open_memory, run_sql
from tests.memory.sealed_files import copy_to, key_file, words_in_files

ROW = "(SELECT row FROM memories WHERE id = {alice/tea})"
BOB = "(SELECT slot FROM memories WHERE id = {bob/b})"
NO_MARK = "CAST(zeroblob(8) || substr({0}, 9) AS BLOB)"
OF_RECORD = {
    "slot of another user": f"UPDATE memories SET slot = {BOB} WHERE row = {ROW}",
    "slot that is free": f"UPDATE memories SET slot = 300 WHERE row = {ROW}",
    "no slot": f"UPDATE memories SET slot = -1 WHERE row = {ROW}",
    "mark of the record": f"UPDATE memories SET sealed = {NO_MARK.format('sealed')} WHERE row = {ROW}",
    "nothing sealed": f"UPDATE memories SET sealed = x'' WHERE row = {ROW}",
}
OF_USER = {
    "slot of the user": "UPDATE users SET slot = 300 WHERE key = {alice/}",
    "mark of the user": f"UPDATE users SET name = {NO_MARK.format('name')} WHERE key = {{alice/}}",
    "name of the user": "UPDATE users SET name = zeroblob(40) WHERE key = {alice/}",
    "end of the name": "UPDATE users SET name = CAST(substr(name, 1, 30) || zeroblob(8) AS BLOB) WHERE key = {alice/}",
}


@pytest.fixture
def filled(file, tmp_path):
    """Alice's record and Bob's in a file, and a copy of the database."""
    with open_memory(file) as memory:
        for user, record_id in (("alice", "tea"), ("alice", "cup"), ("bob", "b")):
            memory.add(f"Of {record_id}.", user_id=user, id=record_id, source="doc")
    return file, copy_to(file, tmp_path / "before")


def read_copy(file, copy):
    """Return the texts of both users that a copy from before still tells with the keys of now."""
    key_file(copy).write_bytes(key_file(file).read_bytes())
    with open_memory(copy, accept_older=True) as memory:
        return [[record.text for record in memory.list(user_id=user)] for user in ("alice", "bob")]


def flip(file, user, at):
    """Flip a bit of the slot of a user's first record."""
    slots = []
    with open_memory(file) as memory, memory._runtime.store.backend.reading() as snapshot:
        owner = snapshot._vault.owner(f"s:{user}")
        slots = snapshot._connection.execute(
            "SELECT slot FROM memories WHERE tenant = :tenant AND user = ?", (owner.no,)
        ).fetchone()
    with key_file(file).open("r+b") as stream:
        stream.seek(_FIRST + _SLOT * slots[0] + at)
        (byte,) = stream.read(1)
        stream.seek(-1, 1)
        stream.write(bytes([byte ^ 1]))


@pytest.mark.parametrize("damage", OF_RECORD.values(), ids=OF_RECORD)
def test_record_whose_key_is_not_found_is_named_and_forgotten(filled, damage):
    file, copy = filled
    run_sql(file, damage)
    with open_memory(file) as memory:
        assert memory.maintain().unreadable == {"alice": ["tea"]}
        assert memory.find_damage() != []
        assert memory.forget_user(user_id="alice").erased == ("cup", "tea")
        assert memory.find_damage() == []
        assert [r.text for r in memory.list(user_id="bob")] == ["Of b."]
    assert read_copy(file, copy) == [[], ["Of b."]]


@pytest.mark.parametrize("at", [0, 20], ids=["mark", "secret"])
def test_record_whose_key_is_damaged_is_named_and_forgotten(filled, at):
    file, _ = filled
    flip(file, "alice", at)
    with open_memory(file) as memory:
        assert memory.maintain().unreadable == {"alice": ["tea"]}
        assert memory.forget_user(user_id="alice").erased == ("cup", "tea")
        assert memory.stats().records == 1


@pytest.mark.parametrize("damage", OF_USER.values(), ids=OF_USER)
def test_user_whose_key_is_damaged_is_forgotten_and_stops_no_upkeep(filled, damage):
    file, copy = filled
    run_sql(file, damage)
    with open_memory(file) as memory:
        assert memory.maintain().damage != []
        with pytest.raises(StoreCorruptError, match="forget_user"):
            memory.add("More.", user_id="alice")
        assert memory.forget_user(user_id="alice", dry_run=True).found
        assert memory.forget_user(user_id="alice").found
        assert memory.maintain().damage == []
        assert not memory.forget_user(user_id="alice").found
        assert [r.text for r in memory.list(user_id="bob")] == ["Of b."]
        memory.add("More.", user_id="alice")
        assert [r.text for r in memory.list(user_id="alice")] == ["More."]
    assert read_copy(file, copy) == [[], ["Of b."]]


def test_id_that_reads_like_that_of_a_damaged_record_is_hashed(file):
    with open_memory(file) as memory:
        memory.add("I like tea.", user_id="alice", id="damaged:sentinel")
        memory.messages.add("s", [{"a": 1}], user_id="alice", ids=["damaged:sentinel2"])
        assert memory.get("damaged:sentinel", user_id="alice").text == "I like tea."
        assert words_in_files(file.parent, ["sentinel"]) == set()
