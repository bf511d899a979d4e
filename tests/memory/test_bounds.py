"""Test that nothing a caller adds makes a user's memory unreadable, and that upkeep goes on past damaged records."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from meve.errors import MeveError, PassageError, StoreCorruptError, ValidationError
from meve.testing.fakes import FakeClock
from tests.memories import LastLetters, change_sealed, open_memory, plant, read_stored, run_sql


def nested(depth):
    value = "end"
    for _ in range(depth):
        value = {"in": value}
    return value


def shared():
    value = ["x"]
    for _ in range(40):
        value = [value, value]
    return {"x": value}


def loop():
    value = {}
    value["self"] = value
    return value


HUGE = {"a": "x" * 17_000_000}
ODD = {"deep": nested(65), "very deep": nested(100_000), "loop": loop(), "shared": shared(), "huge": HUGE,
       "int": {"a": 10**6_000}, "int as name": {10**6_000: 1},
       "equal names": {"a": {1: "int", "1": "text"}}, "equal names, bool": {"a": [{True: 1, "true": 2}]}}  # fmt: skip


@pytest.mark.parametrize("metadata", ODD.values(), ids=ODD)
def test_odd_values_are_refused_at_every_door(file, metadata):
    with open_memory(file) as memory:
        memory.add("Tomatoes need sun.", user_id="ann", id="a")
        doors = [
            lambda: memory.add("Tea.", user_id="ann", metadata=metadata),
            lambda: memory.update("a", user_id="ann", metadata=metadata),
            lambda: memory.items.put(("n",), "k", metadata, user_id="ann"),
            lambda: memory.messages.add("s", [metadata], user_id="ann"),
        ]
        for door in doors:
            with pytest.raises(
                PassageError, match=r"nested at most 64 deep|characters as JSON|names that JSON makes equal|JSON values"
            ):
                door()
        assert [r.id for r in memory.list(user_id="ann", include_messages=True)] == ["a"]


def test_values_up_to_the_limits_come_back(file):
    with open_memory(file) as memory:
        memory.add("Tea.", user_id="ann", id="a", metadata=nested(64), tags=[str(n) for n in range(256)])
        memory.items.put(("n", 1), "k", {"a": "x" * 1_000_000}, user_id="ann")
        memory.items.put(("n", "1"), "k", {"a": 1}, user_id="ann")
        assert memory.get("a", user_id="ann").metadata == nested(64)
        assert memory.items.get(("n", "1"), "k", user_id="ann").value == {"a": 1}
        assert len(memory.items.get(("n", 1), "k", user_id="ann").value["a"]) == 1_000_000
        assert memory.search("tea", user_id="ann").records
        json.dumps(memory.export(user_id="ann"))
        memory.maintain()
        assert len(memory.forget_user(user_id="ann").erased) == 3


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.add("Tea.", user_id="u" * 2_001),
        lambda m: m.add("Tea.", user_id="ann", tags=["t" * 2_001]),
        lambda m: m.add("Tea.", user_id="ann", tags=[str(n) for n in range(257)]),
        lambda m: m.add("Tea.", user_id="ann", reason="r" * 20_001),
        lambda m: m.items.put(("n" * 70_000,), "k", {}, user_id="ann"),
        lambda m: m.items.put(("n",), "k" * 70_000, {}, user_id="ann"),
        lambda m: m.items.put((10**5_000,), "k", {}, user_id="ann"),
        lambda m: m.items.put(("n",), 1, {}, user_id="ann"),
    ],
)
def test_names_out_of_bounds_are_refused(file, call):
    with open_memory(file) as memory:
        with pytest.raises((PassageError, ValidationError), match="must"):
            call(memory)
        assert memory.stats().records == 0


def test_users_whose_ids_read_alike_are_kept_apart(file):
    users = [1, "1", "int:1", "i:1", "s:1", " 1", "01"]
    with open_memory(file) as memory:
        for n, user in enumerate(users):
            memory.add(f"The code of this user is {n}.", user_id=user, id="code")
            memory.items.put(("n",), "1", {"n": n}, user_id=user)
        for n, user in enumerate(users):
            assert memory.get("code", user_id=user).text.endswith(f"{n}.")
            assert memory.items.get(("n",), "1", user_id=user).value == {"n": n}
        memory.forget_user(user_id=1)
        assert [len(memory.list(user_id=user)) for user in users] == [0, *[2] * 6]


@pytest.fixture
def damaged(file):
    """A file whose records of ann are damaged in four ways: two active, one archived, one on hold."""
    with open_memory(file) as memory:
        for name in ("good", "deep", "vector", "held"):
            memory.add(f"Tomatoes need {name}.", user_id="ann", source="doc", id=name, ttl=timedelta(days=5))
        memory.add("Old.", user_id="ann", source="doc", id="expired", ttl=timedelta(microseconds=1))
        memory.add("Bob likes tea.", user_id="bob", source="doc", id="tea", ttl=timedelta(microseconds=1))
        memory.hold("held", user_id="ann", why="case 12")
    deep = '{"a":' * 50_000 + "1" + "}" * 50_000
    for name in ("deep", "held", "expired"):
        change_sealed(file, "ann", name, metadata=deep)
    change_sealed(file, "ann", "vector", vector=b"\0")
    plant(file, "ann", read_stored(file, "ann", "good"), id="packed", archived=True)
    run_sql(file, "UPDATE archive SET body = substr(body, 1, 90)")
    return file


def test_maintenance_goes_on_past_damaged_records_and_names_them(damaged):
    with open_memory(damaged) as memory:
        report = memory.maintain()
        assert sorted(report.unreadable["ann"]) == ["deep", "held", "packed", "vector"]
        assert report.expired == {"ann": ["expired"], "bob": ["tea"]}
        assert memory.maintain(dry_run=True).expired == {}
        with pytest.raises(StoreCorruptError):
            memory.list(user_id="ann")


def test_user_is_forgotten_whatever_is_stored(damaged):
    with open_memory(damaged) as memory:
        planned = memory.forget_user(user_id="ann", dry_run=True)
        report = memory.forget_user(user_id="ann")
        assert planned.erased == report.erased == ("deep", "expired", "good", "packed", "vector")
        assert set(report.held) == {"held"}
        assert memory.audit.verify().ok is False or memory.audit.verify().differences
        change_sealed(damaged, "ann", "held", hold="")
        assert memory.forget_user(user_id="ann").erased == ("held",)
        assert memory.list(user_id="ann", include_archived=True) == []
        assert memory.forget_user(user_id="ann").found is False
        memory.add("Tomatoes need water.", user_id="ann", source="doc", id="deep")
        assert [r.id for r in memory.search("tomatoes", user_id="ann").records] == ["deep"]


def test_session_with_damaged_records_is_forgotten_and_they_are_named(damaged):
    with open_memory(damaged) as memory:
        memory.add("Of the session.", user_id="ann", session_id="s", id="s1")
        report = memory.forget_session("s", user_id="ann")
        assert report.erased == ("s1",)
        assert "deep" in report.unreadable
        with pytest.raises(MeveError):
            memory.get("s1", user_id="ann")


def test_reembedding_goes_on_past_damaged_records(damaged):
    with open_memory(damaged, embedder=LastLetters(), reembed=True) as memory:
        memory.reembed()
        assert memory.search("tea", user_id="bob").passages is not None
        assert sorted(memory.maintain().unreadable["ann"]) == ["deep", "held", "packed", "vector"]
    with open_memory(damaged, embedder=LastLetters()) as memory:  # nobody else's vectors are left
        assert memory.reembed().records == 0


def test_what_a_damaged_record_replaced_stays_closed(file):
    with open_memory(file) as memory:
        memory.add("I live in Oslo.", user_id="ann", id="old")
        new = memory.supersede("old", "I live in Rome.", user_id="ann", ttl=timedelta(days=5))
    change_sealed(file, "ann", new.id, vector=b"\0")
    with open_memory(file) as memory:
        assert memory.maintain().restored == {}
        assert memory.get("old", user_id="ann").is_closed
    with open_memory(file, clock=FakeClock(datetime.now(UTC) + timedelta(days=6))) as memory:
        report = memory.maintain()
        assert (report.restored, report.expired) == ({}, {"ann": [new.id]})
        assert memory.maintain().restored == {}
        assert memory.get("old", user_id="ann").is_closed


def test_an_import_refuses_what_no_record_may_hold_and_takes_the_rest(file, tmp_path):
    with open_memory(file) as memory:
        memory.add("Tomatoes need sun.", user_id="ann", id="a")
        memory.items.put(("n",), "k", {"a": nested(63), "long": "x" * 1_000_000}, user_id="ann")
        memory.messages.add("s", [{"text": "x" * 1_000_000}], user_id="ann")
        data = json.loads(json.dumps(memory.export(user_id="ann")))
    fact, item = (next(r for r in data["records"] if r["kind"] == kind) for kind in ("fact", "item"))
    odd = [
        {**fact, "id": "b", "metadata": nested(65)},
        {**fact, "id": "c", "metadata": {"a": "x" * 1_000_001}},
        {**fact, "id": "d", "tags": ["t" * 2_001]},
        {**fact, "id": "e", "session_id": "s" * 2_001},
        {**fact, "id": "f", "hold": "h" * 2_001},
        [[nested(100_000)]],
        *({**item, "metadata": {**item["metadata"], "updated": n}} for n in (10**30, -1, "1")),
        *({**item, "metadata": {**item["metadata"], "ttl": n}} for n in ("5", True, -1, 1e300)),
        {**item, "metadata": {**item["metadata"], "value": nested(65)}},
    ]
    big = {**fact, "id": "g", "uses": 10**30, "version": 10**30}
    with open_memory(tmp_path / "other.db") as memory:
        report = memory.import_({**data, "records": [*odd, *data["records"], big]})
        assert [number for number, _ in report.rejected] == list(range(1, len(odd) + 1))
        assert len(report.added) == len(data["records"]) + 1
        assert memory.items.get(("n",), "k", user_id="ann").value == {"a": nested(63), "long": "x" * 1_000_000}
        assert memory.search("tomatoes", user_id="ann").records


def test_an_import_goes_on_past_a_damaged_record_of_its_id(damaged, tmp_path):
    with open_memory(tmp_path / "other.db") as memory:
        for name in ("deep", "new"):
            memory.add(f"Tomatoes need {name}.", user_id="ann", source="doc", id=name)
        data = memory.export(user_id="ann")
    with open_memory(damaged) as memory:
        report = memory.import_(data)
        assert (report.added, [why for _, why in report.rejected]) == (
            ["new"],
            ["the memory holds a damaged record 'deep'"],
        )
