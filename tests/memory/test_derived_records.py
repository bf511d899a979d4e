"""Records derived from others are erased with any of them and outlive none."""

from datetime import timedelta

import pytest

from meve.errors import UnknownIdError, ValidationError
from meve.memory import Policy
from meve.memory.items.item import Drop
from tests.memories import add_with_score, archive, open_memory

NOTE, FACT = "The note says that Ann lives in Oslo.", "Ann lives in Oslo."


@pytest.fixture
def note(memory):
    return memory.add(NOTE, user_id="ann", id="note", source="doc", ttl=timedelta(days=2))


def test_erasing_an_origin_erases_all_derived_records(memory, note):
    memory.add(FACT, user_id="ann", id="fact", derived_from=["note"])
    last = memory.add("Ann is in Norway.", user_id="ann", id="land", derived_from=["fact"])
    assert last.derived_from == ("fact", "note")
    memory.add("Bread is baked.", user_id="ann", id="bread")
    assert memory.delete("note", user_id="ann").erased == ("fact", "land", "note")
    assert [r.id for r in memory.list(user_id="ann")] == ["bread"]


def test_derived_record_expires_with_its_origin_despite_longer_ttl(memory, note, clock):
    derived = memory.add(FACT, user_id="ann", id="fact", derived_from=["note"], ttl=timedelta(days=90))
    assert derived.expires_at == note.expires_at
    assert memory.get("fact", user_id="ann").expires_at == note.expires_at
    assert memory.update("fact", user_id="ann", ttl=timedelta(days=90)).expires_at == note.expires_at
    clock.advance(timedelta(days=2))
    assert memory.search(FACT, user_id="ann").records == ()


def test_derived_record_may_expire_before_its_origin(memory, note, clock):
    derived = memory.add(FACT, user_id="ann", derived_from=["note"], ttl=timedelta(hours=1))
    assert derived.expires_at == clock.now() + timedelta(hours=1)


@pytest.mark.parametrize("archived", [False, True])
def test_shortening_an_origins_ttl_shortens_the_derived_records(memory, note, clock, archived):
    memory.add(FACT, user_id="ann", id="fact", derived_from=["note"])
    if archived:
        archive(memory, "s:ann", "fact")
    updated = memory.update("note", user_id="ann", ttl=timedelta(hours=1))
    assert memory.get("fact", user_id="ann").expires_at == updated.expires_at
    assert [r.id for r in memory.list(user_id="ann", include_archived=True) if r.archived] == ["fact"] * archived
    events = memory.audit.events(record_id="fact", action="update")
    assert [e.reason for e in events] == ["expires with note, which it is derived from"]


def test_unknown_or_foreign_origin_raises(memory, note, clock):
    memory.add_shared("The office opens at 9.", id="office")
    for user, origin in (("ann", "nothing"), ("bob", "note"), ("ann", "office")):
        with pytest.raises(UnknownIdError, match=f"derived_from names '{origin}', which this user doesn't have"):
            memory.add(FACT, user_id=user, id="fact", derived_from=[origin])
        assert "fact" not in [r.id for r in memory.list(user_id=user)]
    clock.advance(timedelta(days=2))
    with pytest.raises(UnknownIdError, match="derived_from names 'note'"):
        memory.add(FACT, user_id="ann", derived_from=["note"])
    for odd in ("note", 3, [3], [""]):
        with pytest.raises(ValidationError, match="derived_from"):
            memory.add(FACT, user_id="ann", derived_from=odd)


@pytest.mark.parametrize("archived", [False, True])
def test_record_derived_from_a_merged_one_is_erased_with_the_merge(memory, clock, archived):
    lasting = {"user_id": "ann", "source": "doc", "policy_class": "factual", "ttl": timedelta(days=90)}
    memory.add("Tomatoes need sun.", id="old", **lasting)
    memory.add("Ann has a garden.", id="made", derived_from=["old"], **lasting)
    if archived:
        archive(memory, "s:ann", "made")
    clock.advance(timedelta(hours=1))
    memory.add("Tomatoes need sun!", id="new", **lasting)
    assert memory.maintain().merged == {"ann": ["old"]}
    assert memory.delete("new", user_id="ann").erased == ("made", "new", "old")
    assert memory.list(user_id="ann", include_archived=True) == []


def test_record_equal_to_its_origin_is_not_merged(memory, clock):
    lasting = {"user_id": "ann", "source": "doc", "policy_class": "factual"}
    memory.add("Tomatoes need sun.", id="old", **lasting)
    clock.advance(timedelta(hours=1))
    memory.add("Tomatoes need sun!", id="new", derived_from=["old"], **lasting)
    memory.maintain()
    assert [(r.id, r.derived_from) for r in memory.list(user_id="ann")] == [("old", ()), ("new", ("old",))]


ITEM = '[["notes"],"home"]'
ERASING = Policy.from_dict({"pruning": {"below": 60, "min_age": "1h", "erase": True}, "limits": {"per_user": 3}})
LASTING = {"user_id": "ann", "source": "doc", "policy_class": "factual", "ttl": timedelta(days=90)}


def derive_chain(memory, origin):
    """Add a record derived from an origin, and another one derived from that, which is in the archive."""
    memory.add(FACT, id="fact", derived_from=[origin], **LASTING)
    memory.add("Ann is in Norway.", id="land", derived_from=["fact"], **LASTING)
    archive(memory, "s:ann", "land")


def left(memory):
    return sorted(r.id for r in memory.list(user_id="ann", include_archived=True, include_messages=True))


@pytest.mark.parametrize("way", ["delete", "namespace", "drop", "put none"])
def test_deleting_an_item_erases_what_is_derived_from_it(memory, way):
    memory.items.put(("notes",), "home", {"text": NOTE}, user_id="ann")
    memory.items.put(("notes", "more"), "else", {"text": "Bread."}, user_id="ann")
    derive_chain(memory, ITEM)
    if way == "namespace":
        report = memory.items.delete_namespace(("notes",), user_id="ann", dry_run=True)
        assert {"fact", "land"} <= {*report.erased}
        assert memory.items.delete_namespace(("notes",), user_id="ann").erased == report.erased
        assert left(memory) == []
    elif way == "drop":
        drafts = memory.items.prepare([("ann", Drop(namespace=("notes",), key="home"))])
        assert memory.items.write(drafts) == 1
    elif way == "delete":
        assert memory.items.delete(("notes",), "home", user_id="ann")
    else:
        assert memory.delete(ITEM, user_id="ann").erased == (ITEM, "fact", "land")
    assert not {"fact", "land", ITEM} & {*left(memory)}
    assert memory.audit.verify().ok


def test_derived_record_on_hold_stays_when_its_item_is_deleted(memory):
    memory.items.put(("notes",), "home", {"text": NOTE}, user_id="ann")
    derive_chain(memory, ITEM)
    memory.hold("fact", user_id="ann")
    memory.items.delete(("notes",), "home", user_id="ann")
    assert left(memory) == ["fact"]


@pytest.mark.parametrize("archived", [False, True])
def test_item_put_again_with_a_shorter_life_shortens_what_is_derived_from_it(memory, clock, archived):
    memory.items.put(("notes",), "home", {"text": NOTE}, user_id="ann", ttl=timedelta(days=30))
    memory.add(FACT, user_id="ann", id="fact", derived_from=[ITEM])
    if archived:
        archive(memory, "s:ann", "fact")
    memory.items.put(("notes",), "home", {"text": NOTE}, user_id="ann", ttl=timedelta(hours=1))
    assert memory.get("fact", user_id="ann").expires_at == clock.now() + timedelta(hours=1)
    clock.advance(timedelta(hours=1))
    memory.maintain()
    assert left(memory) == []


@pytest.mark.parametrize("way", ["pop", "replace"])
def test_erasing_a_message_erases_what_is_derived_from_it(memory, way):
    (said,) = memory.messages.add("s", [{"text": NOTE}], user_id="ann", ids=["m"])
    derive_chain(memory, said)
    if way == "pop":
        assert memory.messages.pop("s", user_id="ann")[1].erased == ("fact", "land", "m")
    else:
        memory.messages.replace("s", [{"text": "Hello."}], user_id="ann")
    assert not {"fact", "land", "m"} & {*left(memory)}


@pytest.mark.parametrize("way", ["score", "cap"])
def test_pruning_an_origin_erases_what_is_derived_from_it(file, clock, way):
    with open_memory(file, clock=clock, policy=ERASING) as memory:
        add_with_score(memory, 30, text=NOTE, id="note", **LASTING)
        derive_chain(memory, "note")
        memory.hold("fact", user_id="ann")
        memory.release("fact", user_id="ann")
        for n in range(0 if way == "score" else 3):
            add_with_score(memory, 90, text=f"Bread {n} is baked.", id=f"bread{n}", **LASTING)
        clock.advance(timedelta(hours=2) if way == "score" else timedelta(minutes=5))
        report = memory.maintain()
        assert {*report.pruned["ann"]} >= {"note", "fact", "land"}
        assert not {"note", "fact", "land"} & {*left(memory)}
        pruned = memory.audit.events(user_id="ann", record_id="land", action="prune")
        assert [e.detail["evidence"]["by"] in ("note", "fact") for e in pruned] == [True]


def test_pruning_a_copy_keeps_the_record_that_it_was_merged_into(file, clock):
    with open_memory(file, clock=clock, policy=ERASING) as memory:
        for n in range(2):
            add_with_score(memory, 90, text="Tomatoes need sun.", id=f"t{n}", **LASTING)
            clock.advance(timedelta(seconds=1))
        memory.maintain()
        for n in range(2):
            add_with_score(memory, 90, text=f"Bread {n} is baked.", id=f"bread{n}", **LASTING)
        assert memory.maintain().pruned == {"ann": ["t0"]}
        assert memory.get("t1", user_id="ann").derived_from == ()


def test_pruning_an_origin_keeps_a_derived_record_on_hold(file, clock):
    with open_memory(file, clock=clock, policy=ERASING) as memory:
        add_with_score(memory, 30, text=NOTE, id="note", **LASTING)
        derive_chain(memory, "note")
        memory.hold("fact", user_id="ann")
        clock.advance(timedelta(hours=2))
        memory.maintain()
        assert left(memory) == ["fact"]
