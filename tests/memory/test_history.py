"""History: maintenance closes or archives records, `restore` takes them back, and only erasure erases."""

import json
from datetime import timedelta

import pytest

from meve.errors import HoldError, UnknownIdError, ValidationError
from meve.memory import FactDecision, GovernedMemory, Policy, Turn, TurnRules, UpdateVerdict, record_turns
from meve.memory._recall.formatting import format_recall
from meve.testing.dict_memory_store import DictMemoryStore
from tests.memories import LASTING, add_fading_records, add_old_and_new, add_with_score, archive, open_memory

OLD, NEW = "The shop opens at 9 on weekdays.", "The shop opens at 10 on weekdays."
QUESTION = "When does the shop open on weekdays?"
LONG = timedelta(days=5_000)


@pytest.fixture(params=["sqlite", "dict"])
def memory(request, file, clock):
    """Return a memory over each store."""
    where = {"file": file} if request.param == "sqlite" else {"store": DictMemoryStore()}
    with GovernedMemory.open(clock=clock, **where) as opened:
        yield opened


def find(memory, query=QUESTION, **options):
    return [r.id for r in memory.search(query, user_id="alice", **options).records]


def test_superseded_record_is_read_on_request_or_as_of_an_earlier_time(memory, clock):
    begin = clock.now()
    add_old_and_new(memory, OLD, NEW)
    clock.advance(timedelta(days=1))
    report = memory.maintain()
    assert (report.superseded, report.replaced_by) == ({"alice": ["old"]}, {"alice": {"old": "new"}})
    assert find(memory) == ["new"]
    assert sorted(find(memory, include_superseded=True)) == ["new", "old"]
    assert find(memory, as_of=begin) == ["old"]
    assert find(memory, as_of=begin + timedelta(hours=1)) == ["new"]
    assert find(memory, as_of=begin - timedelta(seconds=1)) == []
    assert [r.id for r in memory.list(user_id="alice")] == ["new"]
    assert [r.id for r in memory.list(user_id="alice", include_superseded=True)] == ["old", "new"]
    assert OLD not in memory.prompt(QUESTION, user_id="alice").text
    assert OLD in format_recall(memory, memory.search(QUESTION, user_id="alice", as_of=begin))


def test_as_of_reads_what_was_archived_later(memory, clock):
    memory.add(OLD, id="old", **LASTING)
    before = clock.now()
    archive = Policy.from_dict({"limits": {"per_user": 1}})
    clock.advance(timedelta(hours=1))
    memory.add("Tomatoes need sun.", id="sun", **LASTING)
    with_cap = GovernedMemory.open(store=memory._runtime.store.backend, clock=clock, policy=archive)
    assert with_cap.maintain().archived == {"alice": ["old"]}
    assert find(memory) == ["sun"]
    assert find(memory, as_of=before) == ["old"]
    assert OLD in format_recall(memory, memory.search(QUESTION, user_id="alice", as_of=before))
    assert find(memory, include_superseded=True) == ["sun"]


def test_as_of_and_explain_read_what_was_archived_of_the_shared_space(file, clock):
    policy = Policy.from_dict({"limits": {"per_user": 1}, "classes": {"factual": {"share": True}}})
    with open_memory(file, clock=clock, policy=policy) as memory:
        for id, text in (("nine", "The office opens at nine."), ("floor", "The canteen is on floor two.")):
            memory.add_shared(text, id=id, policy_class="factual")
            clock.advance(timedelta(days=1))
        before = clock.now()
        assert memory.maintain().archived == {None: ["nine"]}
        assert "nine" in [r.id for r in memory.search("When does it open?", user_id="alice", as_of=before).records]
        explained = memory.explain("When does the office open?", user_id="alice", include_archived=True)
        assert [each.record.id for each in explained if each.archived] == ["nine"]


@pytest.mark.parametrize("odd", ["yesterday", 3, timedelta(days=1)])
def test_as_of_must_be_a_moment_with_a_time_zone_that_has_passed(memory, clock, odd):
    with pytest.raises(ValidationError, match="as_of must"):
        find(memory, as_of=odd)
    with pytest.raises(ValidationError, match="as_of must not be after now"):
        find(memory, as_of=clock.now() + timedelta(seconds=1))
    with pytest.raises(ValidationError, match="include_superseded must be True or False"):
        find(memory, include_superseded="yes")


def test_valid_from_says_since_when_a_memory_holds(memory, clock):
    may = clock.now()
    clock.advance(timedelta(days=30))
    record = memory.add(OLD, id="old", valid_from=may, **LASTING)
    assert (record.valid_from, record.created_at) == (may, clock.now())
    assert find(memory, as_of=may) == ["old"]
    with pytest.raises(ValidationError, match="valid_from must not be after now"):
        memory.add(NEW, valid_from=clock.now() + timedelta(days=1), **LASTING)


@pytest.mark.parametrize(("old", "new", "step"), [(OLD, NEW, "superseded"), ("I like tea.", "I like tea!", "merged")])
def test_closed_record_is_taken_back_and_stays(memory, clock, old, new, step):
    add_old_and_new(memory, old, new)
    assert getattr(memory.maintain(), step) == {"alice": ["old"]}
    restored = memory.restore("old", user_id="alice", reason="both hold")
    assert (restored.valid_to, restored.superseded_by, restored.flagged) == (None, None, "")
    assert restored == memory.get("old", user_id="alice")
    for _ in range(2):
        assert sorted(find(memory, old)) == ["new", "old"]
        assert getattr(memory.maintain(), step) == {}
    assert memory.delete("old", user_id="alice").erased == ("old",)
    assert find(memory, new) == ["new"]


@pytest.mark.parametrize(
    ("later", "replaces"),
    [
        ({"source": "chat_user"}, True),
        ({"source": "chat_assistant"}, False),
        ({"source": "doc"}, False),
        ({"source": "chat_user", "valid_from": -1}, False),
    ],
)
def test_only_a_later_statement_of_the_user_replaces_a_restored_record(memory, clock, later, replaces):
    """Restoring counts as said by the user, so that neither the old statement again nor a document closes it."""
    source = {"source": later["source"]}
    add_old_and_new(memory, OLD, NEW, **source)
    assert memory.maintain().superseded == {"alice": ["old"]}
    memory.restore("old", user_id="alice")
    since = {"valid_from": clock.now() - timedelta(minutes=1)} if "valid_from" in later else {}
    clock.advance(timedelta(days=1))
    memory.add(NEW, id="again", **{**LASTING, **source, **since})
    assert ("old" not in find(memory)) is replaces
    assert memory.maintain().superseded == ({"alice": ["old"]} if replaces else {})
    assert ("old" not in find(memory)) is replaces


def test_restore_keeps_two_records_that_a_recall_takes_for_a_contradiction(memory, clock):
    add_old_and_new(memory, OLD, NEW)
    assert find(memory) == ["new"]
    memory.restore("old", user_id="alice")
    assert sorted(find(memory)) == ["new", "old"]


def test_restore_of_what_holds_and_is_shown_changes_nothing(memory, clock):
    """Else it would be protected from maintenance, although nothing was taken back."""
    add_old_and_new(memory, OLD, NEW)
    sun = memory.add("Tomatoes need sun in May.", id="sun", **LASTING)
    logged = len(memory.audit.events())
    assert memory.restore("sun", user_id="alice") == sun
    assert memory.restore("new", user_id="alice").restored_at is None
    assert (memory.get("sun", user_id="alice"), len(memory.audit.events())) == (sun, logged)
    assert memory.restore("old", user_id="alice").restored_at == clock.now(), "a search hides it"
    add_with_score(memory, 20, text="Cats hate rain.", id="cats", flagged="contradicted by an answer")
    assert memory.restore("cats", user_id="alice").flagged == ""


def test_archived_record_is_taken_back_and_not_archived_again(file, clock):
    with GovernedMemory.open(file, clock=clock, policy=Policy.paper()) as memory:
        add_with_score(memory, 29, text=OLD, id="old", **LASTING)
        clock.advance(timedelta(days=60))
        assert memory.maintain().archived == {"alice": ["old"]}
        assert not memory.restore("old", user_id="alice").archived
        assert memory.maintain().archived == {}
        assert find(memory) == ["old"]


def test_summarised_record_is_taken_back(file, clock):
    with GovernedMemory.open(file, clock=clock, policy=Policy.paper()) as memory:
        add_fading_records(memory)
        memory.maintain()
        (summary,) = memory.list(user_id="alice")
        memory.restore("t2", user_id="alice")
        memory.maintain()
        assert sorted(r.id for r in memory.list(user_id="alice")) == [summary.id, "t2"]
        assert memory.delete("t2", user_id="alice").erased == (summary.id, "t2")
        assert [r.id for r in memory.list(user_id="alice")] == ["t0", "t1", "t3", "t4"]


@pytest.mark.parametrize("is_restored", [False, True])
def test_summary_that_holds_a_former_text_is_erased_and_its_other_parts_hold_again(file, clock, is_restored):
    with open_memory(file, clock=clock, policy=Policy.paper()) as memory:
        add_fading_records(memory)
        memory.add("Tomatoes want care.", user_id="alice", id="own", source="summary", derived_from=["t2"])
        memory.maintain()
        summary = next(r for r in memory.list(user_id="alice") if r.id.startswith("summary-"))
        if is_restored:
            memory.restore("t2", user_id="alice")
        memory.update("t2", user_id="alice", tags=["garden"])
        assert memory.get(summary.id, user_id="alice") == summary
        memory.update("t2", user_id="alice", text="Tomatoes want a roof.")
        assert sorted(r.id for r in memory.list(user_id="alice")) == ["own", "t0", "t1", "t2", "t3", "t4"]
        assert "warmth" not in str(memory.export(user_id="alice"))
        assert memory.audit.events(user_id="alice", record_id=summary.id)[-1].action == "delete"


def test_restore_needs_a_record_of_the_user_that_is_not_held(memory, clock):
    memory.add(OLD, id="old", **{**LASTING, "ttl": timedelta(days=1)})
    with pytest.raises(UnknownIdError, match="old"):
        memory.restore("old", user_id="bob")
    memory.hold("old", user_id="alice")
    with pytest.raises(HoldError, match="on hold"):
        memory.restore("old", user_id="alice")
    memory.release("old", user_id="alice")
    clock.advance(timedelta(days=1))
    with pytest.raises(UnknownIdError, match="old"):
        memory.restore("old", user_id="alice")


@pytest.mark.parametrize("call", ["release", "update"])
def test_call_without_anything_to_change_leaves_a_record_in_the_archive(file, clock, call):
    with open_memory(file, clock=clock) as memory:
        memory.add(OLD, id="old", **LASTING)
        archive(memory, "s:alice", "old")
        before, logged = memory.get("old", user_id="alice"), memory.audit.events(user_id="alice")
        getattr(memory, call)("old", user_id="alice")
        assert memory.get("old", user_id="alice") == before
        assert before.archived
        assert memory.audit.events(user_id="alice") == logged


def add_chain(memory, clock):
    """Add three records of which each replaces the one before, and a copy of the last."""
    add_old_and_new(memory, OLD, NEW)
    memory.maintain()
    for record_id in ("copy", "latest"):
        clock.advance(timedelta(hours=1))
        memory.add("The shop opens at 11 on weekdays.", id=record_id, **LASTING)
    report = memory.maintain()
    assert (report.superseded, report.merged) == ({"alice": ["new"]}, {"alice": ["copy"]})


def list_all(memory):
    return [r.id for r in memory.list(user_id="alice", include_archived=True, include_superseded=True)]


def test_deleting_a_record_erases_its_copies_and_names_what_it_replaced(memory, clock):
    """A judge's guess erases nothing: another statement stays closed, and can be restored or deleted."""
    add_chain(memory, clock)
    expected = memory.delete("latest", user_id="alice", dry_run=True)
    report = memory.delete("latest", user_id="alice")
    assert (report.erased, report.left_closed) == (("copy", "latest"), ("new", "old"))
    assert (expected.erased, expected.left_closed) == (report.erased, report.left_closed)
    for _ in range(2):
        assert (list_all(memory), find(memory)) == (["old", "new"], [])
        assert memory.maintain().restored == {}
    assert memory.audit.verify().ok
    memory.restore("new", user_id="alice")
    assert find(memory) == ["new"]
    report = memory.delete("new", user_id="alice")
    assert (report.erased, report.left_closed) == (("new",), ("old",))
    memory.delete("old", user_id="alice")
    assert list_all(memory) == []


def test_the_whole_history_of_a_record_is_erased_on_request(file, clock):
    with GovernedMemory.open(file, clock=clock) as memory:
        add_chain(memory, clock)
        report = memory.delete("latest", user_id="alice", include_superseded=True)
        assert (report.erased, report.left_closed) == (("copy", "latest", "new", "old"), ())
        assert list_all(memory) == []
        assert memory.export(user_id="alice")["history"] == []
    assert b"The shop opens" not in file.read_bytes()
    with GovernedMemory.open(clock=clock, file=file) as memory:
        memory.add(OLD, id="old", **LASTING)
        with pytest.raises(ValidationError, match="include_superseded must be True or False"):
            memory.delete("old", user_id="alice", include_superseded="all")


def test_forgetting_a_user_erases_the_whole_history(memory, clock):
    add_chain(memory, clock)
    report = memory.forget_user(user_id="alice")
    assert (report.erased, report.left_closed) == (("copy", "latest", "new", "old"), ())


def test_an_archived_record_stays_closed_when_its_replacement_is_erased(memory, clock):
    add_old_and_new(memory, OLD, NEW)
    memory.maintain()
    archive(memory, "s:alice", "old")
    assert memory.delete("new", user_id="alice").left_closed == ("old",)
    assert memory.maintain().restored == {}
    old = memory.get("old", user_id="alice")
    assert (old.is_closed, old.archived, old.superseded_by) == (True, True, None)


def test_what_a_judge_calls_the_same_in_other_words_is_no_copy(file, clock):
    class Same:
        def judge(self, older, newer):
            return UpdateVerdict(relation="same")

    with GovernedMemory.open(file, clock=clock, updates=Same()) as memory:
        add_old_and_new(memory, "I love tea in the garden.", "I love tea in the garden, always.")
        assert memory.maintain().merged == {"alice": ["old"]}
        report = memory.delete("new", user_id="alice")
        assert (report.erased, report.left_closed) == (("new",), ("old",))


def test_deleting_a_superseded_record_leaves_the_newer_one(memory, clock):
    add_old_and_new(memory, OLD, NEW)
    memory.maintain()
    assert memory.delete("old", user_id="alice").erased == ("old",)
    assert find(memory) == ["new"]


def test_closed_record_expires_at_its_own_time(memory, clock):
    memory.add(OLD, id="old", **{**LASTING, "ttl": timedelta(days=2)})
    clock.advance(timedelta(hours=1))
    memory.add(NEW, id="new", **LASTING)
    memory.maintain()
    clock.advance(timedelta(days=2))
    assert find(memory, include_superseded=True) == ["new"]
    assert memory.maintain().expired == {"alice": ["old"]}


@pytest.mark.parametrize("reused", [False, True])
def test_record_stays_closed_when_its_replacement_expired(memory, clock, reused):
    memory.add(OLD, id="old", **LASTING)
    clock.advance(timedelta(hours=1))
    memory.add(NEW, id="new", **LASTING)
    memory.maintain()
    memory.update("new", user_id="alice", ttl=timedelta(days=2))
    clock.advance(timedelta(days=2))
    if reused:
        memory.add("Tomatoes need sun.", id="new", **LASTING)
    else:
        dry, report = memory.maintain(dry_run=True), memory.maintain()
        assert (report.expired, report.restored, report.left_closed) == ({"alice": ["new"]}, {}, {"alice": ["old"]})
        assert report.counts() == dry.counts()
    memory.maintain()
    assert "old" not in find(memory)
    assert memory.get("old", user_id="alice").superseded_by is None
    memory.restore("old", user_id="alice")
    assert "old" in find(memory)


@pytest.mark.parametrize("reused", [False, True])
def test_copies_expire_with_the_record_that_they_were_merged_into(memory, clock, reused):
    add_old_and_new(memory, OLD, OLD)
    assert memory.maintain().merged == {"alice": ["old"]}
    memory.update("new", user_id="alice", ttl=timedelta(days=1))
    clock.advance(timedelta(days=1))
    if reused:
        memory.add("Tomatoes need sun.", id="new", **LASTING)
        assert list_all(memory) == ["new"]
    else:
        assert sorted(memory.maintain().expired["alice"]) == ["new", "old"]
        assert list_all(memory) == []


def test_forgetting_a_session_leaves_closed_what_it_replaced_in_another(memory, clock):
    memory.add(OLD, id="old", session_id="s1", **LASTING)
    clock.advance(timedelta(hours=1))
    memory.add(NEW, id="new", session_id="s2", **LASTING)
    memory.maintain()
    report = memory.forget_session("s2", user_id="alice")
    assert (report.erased, report.left_closed) == (("new",), ("old",))
    memory.maintain()
    assert (find(memory), list_all(memory)) == ([], ["old"])


def test_forgetting_a_session_keeps_the_copy_of_another_session(memory, clock):
    memory.add(OLD, id="old", session_id="s1", **LASTING)
    clock.advance(timedelta(hours=1))
    memory.add(OLD, id="new", session_id="s2", **LASTING)
    memory.maintain()
    assert memory.forget_session("s2", user_id="alice").erased == ("new",)
    assert find(memory) == ["old"]


@pytest.mark.parametrize(
    "short",
    [
        {"ttl": timedelta(days=1)},
        {"ttl": timedelta(days=9)},
        {"policy_class": "ephemeral"},
        {"policy_class": "private"},
    ],
)
def test_record_with_an_end_closes_none_that_lives_longer_and_is_found_first_while_it_lives(memory, clock, short):
    memory.add(OLD, id="old", user_id="alice", policy_class=short.get("policy_class"), ttl=LONG)
    clock.advance(timedelta(hours=1))
    memory.add(NEW, id="new", user_id="alice", **short)
    for _ in range(2):
        assert find(memory, include_private=True) == ["new"]
        assert memory.maintain().superseded == {}
    clock.advance(timedelta(days=10))
    assert find(memory, include_private=True) == ["old"]
    memory.maintain()
    assert list_all(memory) == ["old"]


def test_record_closes_one_that_ends_with_it_or_before(memory, clock):
    ends = clock.now() + timedelta(days=9)
    memory.add(OLD, id="old", user_id="alice", expires_at=ends)
    clock.advance(timedelta(hours=1))
    memory.add(NEW, id="new", user_id="alice", expires_at=ends)
    assert memory.maintain().superseded == {"alice": ["old"]}


def test_new_text_reopens_a_closed_record(memory, clock):
    add_old_and_new(memory, OLD, NEW)
    memory.maintain()
    record = memory.update("old", user_id="alice", text="The bakery sells rye bread.")
    assert (record.valid_from, record.valid_to, record.superseded_by) == (clock.now(), None, None)


def test_export_holds_the_history_apart(memory, clock):
    add_old_and_new(memory, OLD, NEW)
    memory.maintain()
    data = json.loads(json.dumps(memory.export(user_id="alice")))
    assert [r["id"] for r in data["records"]] == ["new"]
    (old,) = data["history"]
    assert (old["id"], old["superseded_by"], old["valid_to"]) == ("old", "new", data["records"][0]["valid_from"])
    (each,) = [e for e in memory.explain(OLD, user_id="alice", include_superseded=True) if e.record.id == "old"]
    assert each.why.endswith("; replaced by new (another number than new)")
    assert each.replacement.text == NEW
    assert [e.record.id for e in memory.explain(OLD, user_id="alice", include_archived=True)] == ["new"]
    assert [e.replacement for e in memory.explain(OLD, user_id="alice")] == [None]


def test_audit_log_names_rule_evidence_and_inverse(memory, clock):
    add_old_and_new(memory, OLD, NEW)
    memory.add("I like tea.", id="tea", **LASTING)
    memory.add("I like tea.", id="tee", **LASTING)
    memory.maintain()
    (superseded,) = memory.audit.events(action="supersede")
    assert superseded.detail["rule"] == "contradiction"
    assert superseded.detail["evidence"] == {"by": "new", "difference": "number"}
    (merged,) = memory.audit.events(action="merge")
    assert merged.detail["rule"] == "merging.similarity"
    assert merged.detail["evidence"] == {"by": "tee", "cosine": 1.0}
    assert {superseded.detail["inverse"], merged.detail["inverse"]} == {"restore"}
    memory.restore("tea", user_id="alice", reason="two cups")
    (restored,) = memory.audit.events(action="restore")
    assert (restored.reason, restored.detail["was"]) == ("two cups", {"archived": False, "superseded_by": "tee"})


def test_history_of_one_user_is_not_read_by_another(memory, clock):
    begin = clock.now()
    add_old_and_new(memory, OLD, NEW)
    memory.maintain()
    assert memory.search(QUESTION, user_id="bob", include_superseded=True).records == ()
    assert memory.search(QUESTION, user_id="bob", as_of=begin).records == ()


def test_deleting_a_record_deletes_the_versions_that_a_caller_replaced(memory):
    first = memory.add("My dog is called Rex.", user_id="alice")
    second = memory.supersede(first.id, "My dog is called Max.", user_id="alice")
    third = memory.supersede(second.id, "My dog is called Ben.", user_id="alice")
    report = memory.delete(third.id, user_id="alice")
    assert set(report.erased) == {first.id, second.id, third.id}
    assert report.left_closed == ()


def test_deleting_an_earlier_version_keeps_the_later_one(memory):
    first = memory.add("My dog is called Rex.", user_id="alice")
    second = memory.supersede(first.id, "My dog is called Max.", user_id="alice")
    assert memory.delete(first.id, user_id="alice").erased == (first.id,)
    assert memory.get(second.id, user_id="alice").text == "My dog is called Max."


def test_a_flagged_earlier_version_is_deleted_with_the_later_one(memory):
    add_with_score(memory, 50, flagged="contradicted", text="My dog is called Rex.", id="rex")
    later = memory.supersede("rex", "My dog is called Max.", user_id="alice")
    assert set(memory.delete(later.id, user_id="alice").erased) == {"rex", later.id}


def test_a_memory_told_late_held_until_the_next_one(memory, clock):
    now = clock.now()

    def tell(city, days):
        memory.add(f"I live in {city}.", user_id="alice", id=city, valid_from=now - timedelta(days=days))

    tell("Berlin", 50)
    tell("Hamburg", 10)
    memory.maintain()
    tell("Paris", 80)
    memory.maintain()
    for days, city in ((60, "Paris"), (40, "Berlin"), (5, "Hamburg")):
        recall = memory.search("Where do I live?", user_id="alice", as_of=now - timedelta(days=days))
        assert [record.id for record in recall.records] == [city]


@pytest.mark.parametrize("source", ["chat_assistant", "doc"])
def test_what_the_user_said_is_not_merged_into_the_words_of_others(memory, clock, source):
    """A copy that lives longer would hide it from searches for what the user said, and end its own life."""
    memory.add(OLD, user_id="alice", id="own", ttl=timedelta(days=2))
    clock.advance(timedelta(minutes=1))
    memory.add(OLD, user_id="alice", id="copy", source=source, policy_class="factual", ttl=timedelta(days=9))
    assert memory.maintain().merged == {}
    assert find(memory, sources=["chat_user"]) == ["own"]


def test_a_statement_that_a_judge_closed_stays_closed_after_an_import_without_the_newer_one(memory, clock):
    add_old_and_new(memory, OLD, NEW)
    memory.maintain()
    exported = memory.export(user_id="alice")
    exported["records"] = []
    with GovernedMemory.open(store=DictMemoryStore(), clock=clock) as other:
        assert other.import_(exported, user_id="alice").added == ["old"]
        assert other.maintain().restored == {}
        assert find(other) == []
        assert other.restore("old", user_id="alice").is_closed is False


def test_an_answer_that_contradicts_a_memory_widens_no_erasure(memory):
    """What an extractor closed stays in the history when the newer memory is deleted, flagged or not."""
    memory.add("I live in Berlin.", user_id="alice", id="old")
    update = FactDecision(action="update", text="I live in Berlin, in Mitte.", id="old", reason="said with more")
    turn = Turn(id="t", speaker="user", text="I live in Berlin, in Mitte.")
    rules = TurnRules(extractor=OneDecision(update))
    (new,) = record_turns(memory, [turn], user_id="alice", rules=rules).added
    recall = memory.search("Where do I live?", user_id="alice")
    assert memory.reflect(recall, answer="You don't live in Berlin.").verdicts[new.id].outcome == "contradicted"
    report = memory.delete(new.id, user_id="alice")
    assert (report.erased, report.left_closed) == ((new.id,), ("old",))


def test_a_record_whose_copy_expired_is_derived_from_nothing(memory, clock):
    """Else it could no longer be pinned, live longer, or be imported, since nobody would know what it came from."""
    memory.add(OLD, user_id="alice", id="own")
    memory.add(OLD, user_id="alice", id="copy", source="doc", policy_class="factual", ttl=timedelta(days=3))
    assert memory.maintain().merged == {"alice": ["copy"]}
    exported = memory.export(user_id="alice")
    clock.advance(timedelta(days=4))
    assert memory.maintain().expired == {"alice": ["copy"]}
    assert memory.get("own", user_id="alice").derived_from == ()
    assert memory.update("own", user_id="alice", pinned=True).pinned
    assert memory.audit.verify().ok
    exported["records"][0]["pinned"] = True
    with GovernedMemory.open(store=DictMemoryStore(), clock=clock) as other:
        report = other.import_(exported, user_id="alice")
        assert (report.added, report.expired, report.rejected) == (["own"], ["copy"], [])
        assert other.get("own", user_id="alice").is_standing


class OneDecision:
    """An extractor that always decides the same."""

    def __init__(self, decision):
        self.decision = decision

    def extract(self, context):
        return [self.decision]


@pytest.mark.parametrize("way", ["supersede", "derive", "extract"])
def test_what_is_written_after_a_merge_does_not_end_with_the_copy(memory, clock, way):
    memory.add(OLD, user_id="alice", id="copy", ttl=timedelta(days=3))
    memory.add(OLD, user_id="alice", id="own")
    assert memory.maintain().merged == {"alice": ["copy"]}
    if way == "supersede":
        memory.supersede("own", NEW, user_id="alice", id="new")
    elif way == "derive":
        memory.add(NEW, user_id="alice", id="new", derived_from=["own"])
    else:
        text = f"{OLD} It is in Lyon."
        rules = TurnRules(extractor=OneDecision(FactDecision(action="update", text=text, id="own", reason="more")))
        record_turns(memory, [Turn(id="t", speaker="user", text=text)], user_id="alice", rules=rules)
    (new,) = (r for r in memory.list(user_id="alice") if r.id != "own")
    assert new.expires_at is None
    clock.advance(timedelta(days=4))
    memory.maintain()
    assert memory.get(new.id, user_id="alice").text == new.text


def test_a_summary_does_not_end_with_a_copy_of_its_part(file, clock):
    policy = Policy.from_dict({"merging": {"summarise_below": 100, "min_related": 2, "related": 0.1}})
    with GovernedMemory.open(file, clock=clock, policy=policy) as memory:
        memory.add("Tomatoes want sun.", user_id="alice", id="copy", ttl=timedelta(days=30))
        for text in ("Tomatoes want sun.", "Tomatoes want water."):
            memory.add(text, user_id="alice", id=text[-4:-1])
        assert memory.maintain().merged == {"alice": ["copy"]}
        clock.advance(timedelta(days=10))
        assert sorted(memory.maintain().summarised["alice"]) == ["ter", "sun"][::-1]
        clock.advance(timedelta(days=25))
        report = memory.maintain()
        assert (report.expired, report.restored) == ({"alice": ["copy"]}, {})


def test_export_after_a_copy_expired_comes_back_whole(memory, clock):
    memory.add(OLD, user_id="alice", id="copy", ttl=timedelta(days=3))
    memory.add(OLD, user_id="alice", id="own", pinned=True)
    memory.maintain()
    clock.advance(timedelta(days=4))  # and no maintenance since
    with GovernedMemory.open(store=DictMemoryStore(), clock=clock) as other:
        report = other.import_(memory.export(user_id="alice"), user_id="alice")
        assert (report.added, report.rejected) == (["own"], [])
