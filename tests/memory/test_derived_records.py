"""Records derived from others are erased with any of them and outlive none."""

from datetime import timedelta

import pytest

from meve.errors import UnknownIdError, ValidationError
from tests.memories import archive

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
    assert [(r.id, r.derived_from) for r in memory.list(user_id="ann")] == [("new", ("old",)), ("old", ())]
