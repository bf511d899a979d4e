"""No read and no write reaches another user's records, whatever the ids look like."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meve.errors import PassageError, PolicyError, UnknownIdError, ValidationError
from meve.memory import GovernedMemory
from meve.memory.records import SHARED, user_key, user_of

SECRET = "The height of the shelf is 4711 mm."
ODD_USERS = [
    "alice'; DROP TABLE memories; --", "../../etc/passwd", "%", "_", "a*", '"', "Ålice", "alice ", "ALICE", "s:alice",
    0, -1, 10**30,
]  # fmt: skip
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=40)


def read_all(memory, user):
    """Yield what each read method returns to the user."""
    yield [r.text for r in memory.search("What height has the shelf?", user_id=user, include_private=True).records]
    yield [r.text for r in memory.list(user_id=user, include_archived=True, include_messages=True)]
    yield [r["text"] for r in memory.export(user_id=user)["records"]]
    yield [e.record.text for e in memory.explain("the height of the shelf", user_id=user)]
    yield [r.text for r in memory.prompt("the height of the shelf?", user_id=user).recall.records]
    yield [e.record_id for e in memory.audit.events(user_id=user) if e.action == "add"]


@pytest.mark.parametrize("other", ["bob", *ODD_USERS])
def test_other_user_reads_and_changes_nothing(memory, other):
    memory.add(SECRET, user_id="alice", id="code")
    assert list(read_all(memory, other)) == [[], [], [], [], [], []]
    for call in (
        lambda: memory.get("code", user_id=other),
        lambda: memory.update("code", user_id=other, text="x"),
        lambda: memory.delete("code", user_id=other),
        lambda: memory.hold("code", user_id=other),
    ):
        with pytest.raises(UnknownIdError, match="no memory 'code' of this user"):
            call()
    assert memory.forget_user(user_id=other).erased == ()
    assert memory.get("code", user_id="alice").text == SECRET


@pytest.mark.parametrize("user", ["alice", *ODD_USERS])
def test_any_string_or_int_is_a_distinct_user(memory, user):
    memory.add(SECRET, user_id=user, id="code")
    assert memory.get("code", user_id=user).user_id == user
    assert all(SECRET in texts or texts == ["code"] for texts in read_all(memory, user))


def test_int_and_string_user_ids_are_distinct(memory):
    memory.add("mine", user_id=1, id="x")
    memory.add("yours", user_id="1", id="x")
    assert memory.get("x", user_id=1).text == "mine"
    assert memory.get("x", user_id="1").text == "yours"


@pytest.mark.parametrize("nobody", [None, "", "  ", True, 1.5, b"alice", ["alice"]])
def test_invalid_user_id_raises(memory, nobody):
    for call in (
        lambda: memory.search("safe", user_id=nobody),
        lambda: memory.add("text", user_id=nobody),
        lambda: memory.list(user_id=nobody),
        lambda: memory.get("code", user_id=nobody),
        lambda: memory.export(user_id=nobody),
        lambda: memory.forget_user(user_id=nobody),
        lambda: memory.delete("code", user_id=nobody),
    ):
        with pytest.raises(ValidationError, match="user_id"):
            call()


@given(st.one_of(st.text(min_size=1).filter(str.strip), st.integers()))
def test_user_key_round_trips(user):
    try:
        key = user_key(user)
    except PassageError:  # a NUL, or half of a surrogate pair
        return
    assert key != SHARED
    assert (type(user_of(key)), user_of(key)) == (type(user), user)


def test_shared_record_is_recalled_by_all_and_scored_per_user(memory):
    memory.add_shared("The office opens at 9.", id="office")
    recall = memory.search("When does the office open?", user_id="alice")
    assert [r.id for r in recall.records] == ["office"]
    memory.reflect(recall, answer="The office opens at 9.")
    mine, yours = (memory.search("When does the office open?", user_id=u).passages[0].score for u in ("alice", "bob"))
    assert mine == pytest.approx(yours + 0.2 * 0.1, abs=1e-5)
    assert memory.list(user_id="bob") == []
    assert memory.delete_shared("office").erased == ("office",)
    assert memory.search("When does the office open?", user_id="bob").records == ()


def test_sharing_an_unshareable_class_raises(memory):
    with pytest.raises(PolicyError, match="memories of the class private may not be shared: the policy lets canonical"):
        memory.add_shared(SECRET, policy_class="private")


def test_own_record_hides_shared_record_with_its_id(memory):
    memory.add_shared("The office opens at 9.", id="office")
    memory.add("My office opens at 10.", user_id="alice", id="office")
    assert [r.text for r in memory.search("When does the office open?", user_id="alice").records] == [
        "My office opens at 10."
    ]


def test_private_record_is_recalled_only_on_request(memory):
    memory.add(SECRET, user_id="alice", policy_class="private", id="code")
    assert memory.search("the height of the shelf", user_id="alice").records == ()
    recall = memory.search("the height of the shelf", user_id="alice", include_private=True)
    assert [r.id for r in recall.records] == ["code"]


def test_private_record_is_in_what_shows_and_exports_the_data_of_its_owner(memory):
    memory.add(SECRET, user_id="alice", policy_class="private", id="code")
    assert SECRET not in memory.prompt("the height of the shelf", user_id="alice").text
    assert memory.get("code", user_id="alice").text == SECRET
    assert [r.id for r in memory.list(user_id="alice")] == ["code"]
    assert [each.record.id for each in memory.explain("the height of the shelf", user_id="alice")] == ["code"]
    assert [r["id"] for r in memory.export(user_id="alice")["records"]] == ["code"]


def test_metadata_cannot_change_the_owner(memory):
    record = memory.add("text", user_id="alice", metadata={"user_id": "bob", "id": "y"}, id="x")
    assert (record.user_id, record.id) == ("alice", "x")
    assert memory.update("x", user_id="alice", metadata={"user_id": "bob"}).user_id == "alice"


@settings(max_examples=30, deadline=None)
@given(text=TEXTS.filter(str.strip))
def test_any_text_round_trips(tmp_path_factory, text):
    """Every text field is tried, with SQL, path and pattern characters."""
    with GovernedMemory.open(tmp_path_factory.mktemp("m") / "memory.db") as memory:
        record = memory.add(text, user_id=text, id=text, session_id=text, tags=[text], metadata={text: text})
        assert memory.get(text, user_id=text) == record
        assert memory.search(text, user_id=text, session_id=text, tags=[text]).query == text
        assert [e.record_id for e in memory.audit.events(user_id=text, action="add")] == [text]
        assert memory.delete(text, user_id=text).erased == (text,)


def test_explain_shows_a_shared_records_reason_but_no_use_by_others(memory):
    memory.add_shared("Tomatoes need sun.", id="s", reason="from the handbook")
    recall = memory.search("What do tomatoes need?", user_id="alice")
    memory.reflect(recall, answer="Tomatoes need sun.")
    (alice,) = memory.explain("tomatoes", user_id="alice")
    (bob,) = memory.explain("tomatoes", user_id="bob")
    assert "from the handbook" in alice.why
    assert "from the handbook" in bob.why
    assert [e.action for e in alice.events] == ["add", "retrieve", "use"]
    assert [e.action for e in bob.events] == ["add"]
    assert (alice.reflection, bob.reflection) == (60, 50)
    by_id = memory.explain_record("s", user_id="alice")
    assert (by_id.why, by_id.reflection, by_id.score) == (alice.why, 60, None)
    assert [e.action for e in memory.explain_record("s", user_id="bob").events] == ["add"]
    memory.add("Alice likes tea.", user_id="alice", id="tea")
    with pytest.raises(UnknownIdError):
        memory.explain_record("tea", user_id="bob")
