"""Maintenance: decay, pruning, merging, conflicts, summaries, archiving and concurrency."""

from datetime import timedelta
from threading import Event, Thread

import pytest

from meve.components.embedders import resolve_embedder
from meve.errors import ConfigurationError
from meve.memory import GovernedMemory, Policy
from meve.memory._maintenance.maintenance import TRIES
from meve.memory._maintenance.summaries import ExtractiveSummariser
from meve.memory._recall.scoring import decay_reflection
from tests.memories import LASTING, add_fading_records, add_old_and_new, add_with_score

OTHER = "The night train to Lisbon was late."


def list_ids(memory):
    return sorted(r.id for r in memory.list(user_id="alice"))


def test_score_halves_in_90_days_after_14_idle_days_down_to_20(memory, clock):
    fact = memory.add("Tomatoes need sun.", id="t", **LASTING)
    for days, expected in ((0, 50), (14, 50), (104, 25), (1_000, 20)):
        assert decay_reflection(fact, memory.policy, fact.created_at + timedelta(days=days)) == pytest.approx(expected)


def test_recall_restarts_the_idle_time(memory, clock):
    memory.add("Tomatoes need sun.", id="t", **LASTING)
    clock.advance(timedelta(days=13))
    memory.search("What do tomatoes need?", user_id="alice")
    clock.advance(timedelta(days=13))
    record = memory.get("t", user_id="alice")
    assert decay_reflection(record, memory.policy, clock.now()) == 50


def test_repeated_recalls_keep_the_score_while_the_memory_is_open(memory, clock):
    memory.add("Tomatoes need sun.", id="t", **LASTING)
    first = memory.search("What do tomatoes need?", user_id="alice").passages[0].score
    for _ in range(9):
        clock.advance(timedelta(days=13))
        (passage,) = memory.search("What do tomatoes need?", user_id="alice").passages
        assert passage.score == pytest.approx(first)
    clock.advance(timedelta(days=104))
    faded = memory.search("What do tomatoes need?", user_id="alice").passages[0].score
    assert faded == pytest.approx(first - 0.2 * 25 / 100, abs=1e-3)


def test_low_score_is_pruned_after_a_week_by_the_published_policy(paper_memory, clock):
    memory = paper_memory
    add_with_score(memory, 10, text="Tomatoes need sun.", id="low", **LASTING)
    add_with_score(memory, 20, text="Bread is baked.", id="enough", **LASTING)
    add_with_score(memory, 0, text="Water is wet.", id="canon", **{**LASTING, "policy_class": "canonical"})
    assert memory.maintain().counts()["pruned"] == 0
    clock.advance(timedelta(days=7))
    assert memory.maintain().pruned == {"alice": ["low"]}
    assert list_ids(memory) == ["canon", "enough"]
    (event,) = memory.audit.events(user_id="alice", action="prune")
    assert (event.record_id, event.detail["rule"], event.detail["evidence"]) == ("low", "pruning.below", {"score": 10})
    assert event.detail["inverse"] == ""


def test_duplicates_are_merged_with_the_tags_of_both(memory, clock):
    same = {"user_id": "alice", "source": "doc", "expires_at": clock.now() + timedelta(days=90)}
    memory.add("Tomatoes need a lot of sun.", id="a", tags=["x"], **same)
    clock.advance(timedelta(hours=1))
    memory.add("Tomatoes need a lot of sun!", id="b", tags=["y"], **same)
    assert memory.maintain().merged == {"alice": ["a"]}
    (left,) = memory.list(user_id="alice")
    assert (left.id, left.tags, left.derived_from) == ("b", ("x", "y"), ("a",))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The shop on the corner opens at 9 in the morning.", "The shop on the corner opens at 10 in the morning."),
        ("The weekly team meeting is on Friday.", "The weekly team meeting is on Monday."),
        ("The weekly team meeting is held on site.", "The weekly team meeting is not held on site."),
    ],
)
def test_newer_value_supersedes_the_older(static_memory, old, new):
    memory = static_memory
    add_old_and_new(memory, old, new)
    assert memory.maintain().superseded == {"alice": ["old"]}
    assert list_ids(memory) == ["new"]
    old, latest = memory.get("old", user_id="alice"), memory.get("new", user_id="alice")
    assert (old.superseded_by, old.valid_to) == ("new", latest.valid_from)
    assert [r.id for r in memory.search(new, user_id="alice").records] == ["new"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The basil needs 5 hours of light.", "The fennel needs 7 hours of light."),
        ("The bus to Oslo leaves at 9:45.", "The bus to Bergen leaves at 7:45."),
        ("The pump runs without trouble.", "The pump runs."),
    ],
)
def test_statements_about_different_subjects_do_not_conflict(memory, old, new):
    add_old_and_new(memory, old, new)
    assert memory.maintain().counts()["superseded"] == 0
    recall = memory.search(old, user_id="alice")
    assert memory.reflect(recall, answer=new).verdicts["old"].outcome != "contradicted"


def test_canonical_record_is_superseded_only_by_canonical_record(memory, clock):
    canonical = {"user_id": "alice", "source": "doc", "policy_class": "canonical"}
    memory.add("The shop opens at 9 on weekdays.", id="canon", **canonical)
    clock.advance(timedelta(hours=1))
    memory.add("The shop opens at 11 on weekdays.", id="turn", **LASTING)
    assert memory.maintain().counts()["superseded"] == 0
    memory.add("The shop opens at 10 on weekdays.", id="newer", **canonical)
    assert "canon" in memory.maintain().superseded["alice"]


def reflect_old_value(memory):
    """Add a record `old` and one of a newer value, `new`, which an answer then contradicts."""
    add_old_and_new(memory, "The shop opens at 9 on weekdays.", "The shop opens at 11 on weekdays.")
    recall = memory.search("When does the shop open on weekdays?", user_id="alice")
    reflection = memory.reflect(recall, answer="The shop opens at 9 on weekdays.")
    assert {i: verdict.outcome for i, verdict in reflection.verdicts.items()} == {"new": "contradicted"}


def test_newer_word_prevails_whatever_an_answer_said(memory):
    reflect_old_value(memory)
    for closed in ({"alice": ["old"]}, {}):
        assert [r.id for r in memory.search("When does the shop open on weekdays?", user_id="alice").records] == ["new"]
        assert memory.maintain().superseded == closed
    assert memory.get("new", user_id="alice").flagged == "contradicted by an answer"


def test_under_the_published_policy_a_contradicted_record_is_hidden_but_closes_nothing_and_stays(paper_memory):
    memory = paper_memory
    reflect_old_value(memory)
    assert memory.maintain().superseded == {}
    assert list_ids(memory) == ["new", "old"]
    assert [r.id for r in memory.search("When does the shop open on weekdays?", user_id="alice").records] == ["old"]


def test_events_told_on_several_days_are_not_merged(memory, clock):
    """Who says on two days that he went swimming did so twice, most likely; twice on a day may be a repetition."""
    for day in range(2):
        for n in range(2):
            memory.add("I went swimming.", id=f"{day}{n}", **LASTING)
            memory.add("I am a swimmer.", id=f"f{day}{n}", **LASTING)
        clock.advance(timedelta(days=1))
    memory.maintain()
    left = list_ids(memory)
    assert (len(left), sum(key.startswith("f") for key in left)) == (3, 1)


def test_memories_of_other_users_and_classes_are_never_merged(memory):
    memory.add("Tomatoes need a lot of sun.", id="a", **LASTING)
    memory.add("Tomatoes need a lot of sun.", id="b", **{**LASTING, "user_id": "bob"})
    memory.add("Tomatoes need a lot of sun.", id="c", **{**LASTING, "policy_class": "intent_bound"})
    assert memory.maintain().counts()["merged"] == 0


def test_memory_of_a_class_on_request_hides_no_other(file, clock):
    policy = Policy.from_dict({"classes": {"intent_bound": {"on_request": True}}})
    with GovernedMemory.open(file, clock=clock, policy=policy) as memory:
        memory.add("I live in Berlin.", id="old", **LASTING)
        clock.advance(timedelta(hours=1))
        memory.add("I live in Hamburg.", id="new", **{**LASTING, "policy_class": "intent_bound"})
        assert memory.maintain().superseded == {}
        assert [r.id for r in memory.search("Where do I live?", user_id="alice").records] == ["old"]


def test_related_records_of_low_score_are_summarised(paper_memory):
    memory = paper_memory
    add_with_score(memory, 25, text="A carbonara needs pecorino.", id="k", **LASTING)
    add_fading_records(memory, count=4)
    assert memory.maintain().summarised == {"alice": ["t0", "t1", "t2", "t3"]}
    records = {r.id: r for r in memory.list(user_id="alice")}
    (summary,) = [r for r in records.values() if r.source == "summary"]
    assert set(records) == {"k", summary.id}
    assert "Tomatoes want" in summary.text
    assert summary.derived_from == ("t0", "t1", "t2", "t3")
    assert memory.get("t2", user_id="alice").superseded_by == summary.id
    assert memory.delete("t2", user_id="alice").erased == (summary.id, "t2")


def test_summary_is_of_one_agent_and_keeps_the_metadata(file, clock):
    policy = Policy.from_dict({"merging": {"summarise_below": 30, "min_related": 2}})
    with GovernedMemory.open(file, clock=clock, policy=policy) as memory:
        add_fading_records(memory)
        for n in range(5):
            memory.update(f"t{n}", user_id="alice", metadata={"agent_id": "cook" if n % 2 else "vet", "floor": 1})
        assert memory.maintain().counts()["summarised"] == 5
        for agent, ids in (("vet", ("t0", "t2", "t4")), ("cook", ("t1", "t3"))):
            (summary,) = memory.search("tomatoes", user_id="alice", agent_id=agent, where={"floor": 1}).records
            assert (summary.derived_from, summary.metadata) == (ids, {"agent_id": agent, "floor": 1})


def test_three_related_records_are_not_summarised(memory):
    add_fading_records(memory, count=3)
    assert memory.maintain().summarised == {}
    assert list_ids(memory) == ["t0", "t1", "t2"]


def test_idle_record_of_low_score_is_archived_and_restored_by_update(paper_memory, clock):
    memory = paper_memory
    add_with_score(memory, 29, text="Tomatoes need sun.", id="t", **LASTING)
    clock.advance(timedelta(days=60))
    assert memory.maintain().archived == {"alice": ["t"]}
    assert memory.search("What do tomatoes need?", user_id="alice").records == ()
    assert [r.id for r in memory.list(user_id="alice", include_archived=True)] == ["t"]
    assert memory.get("t", user_id="alice").text == "Tomatoes need sun."
    memory.update("t", user_id="alice", tags=["again"])
    assert [r.id for r in memory.search("What do tomatoes need?", user_id="alice").records] == ["t"]
    assert [e.action for e in memory.audit.events(record_id="t")][:4] == ["add", "archive", "restore", "update"]


@pytest.mark.parametrize("erase", [False, True])
def test_cap_archives_or_erases_the_lowest_scores_first(file, clock, erase):
    policy = Policy.from_dict({"limits": {"per_user": 3}, "pruning": {"erase": erase}})
    with GovernedMemory.open(file, clock=clock, policy=policy) as memory:
        scores = {"Sun.": 90, "Bread.": 40, "Water.": 60, "Iron.": 30, "Cloud.": 80}
        for n, (text, score) in enumerate(scores.items()):
            add_with_score(memory, score, text=text, id=f"r{n}", **LASTING)
        memory.hold("r3", user_id="alice")
        report = memory.maintain()
        assert (report.pruned if erase else report.archived) == {"alice": ["r1", "r2"]}
        assert not (report.archived if erase else report.pruned)
        actions = [event.action for event in memory.audit.events(action=("prune", "archive"))]
        assert actions == ["prune" if erase else "archive"] * 2
        assert list_ids(memory) == ["r0", "r3", "r4"]
        archived = [r.id for r in memory.list(user_id="alice", include_archived=True) if r.archived]
        assert archived == ([] if erase else ["r1", "r2"])


def test_write_during_planning_is_allowed_and_plan_is_repeated(file, clock):
    summarised = []

    class Slow(ExtractiveSummariser):
        def summarise(self, texts):
            summarised.append(list(texts))
            if len(summarised) == 1:
                writer = Thread(target=memory.update, args=("t0",), kwargs={"user_id": "alice", "text": OTHER})
                writer.start()
                writer.join(timeout=20)
                assert not writer.is_alive()
            return super().summarise(texts)

    summariser = Slow(resolve_embedder(None).embed_passages)
    with GovernedMemory.open(file, clock=clock, policy=Policy.paper(), summariser=summariser) as memory:
        add_fading_records(memory)
        report = memory.maintain()
        assert len(summarised) == 2
        assert OTHER not in str(memory.get("t0", user_id="alice").derived_from)
        assert memory.get("t0", user_id="alice").text == OTHER
        assert "t0" not in report.summarised["alice"]
        assert memory.audit.verify().ok


def test_maintenance_locks_out_writers_after_repeated_changes(file, clock):
    class Restless(ExtractiveSummariser):
        tries = 0

        def summarise(self, texts):
            self.tries += 1
            if self.tries <= TRIES:
                memory.add(f"Bread is baked, {self.tries}.", **LASTING)
            return super().summarise(texts)

    summariser = Restless(resolve_embedder(None).embed_passages)
    with GovernedMemory.open(file, clock=clock, policy=Policy.paper(), summariser=summariser) as memory:
        add_fading_records(memory)
        assert memory.maintain().counts()["summarised"] == 5


def test_background_maintenance_stops_when_the_memory_is_closed(file, clock):
    import time

    with GovernedMemory.open(file, clock=clock) as memory:
        memory.add("Tomatoes need sun.", user_id="alice", ttl=timedelta(seconds=1))
        clock.advance(timedelta(seconds=1))
        background = memory.maintain_every(0.01)
        deadline = time.monotonic() + 20
        while not memory.audit.events(action="expire") and time.monotonic() < deadline:
            time.sleep(0.01)
        assert [e.action for e in memory.audit.events()] == ["add", "expire"]
    assert background.failed is None
    assert not background._thread.is_alive()
    with pytest.raises(ConfigurationError):
        memory.maintain_every(0)


def test_background_maintenance_that_fails_is_logged_by_its_type_and_runs_again(file, clock, caplog, monkeypatch):
    failing, done = iter([ValueError("what somebody told")]), Event()

    def maintain(**_):
        for error in failing:
            raise error
        done.set()

    with GovernedMemory.open(file, clock=clock) as memory:
        monkeypatch.setattr(memory, "maintain", maintain)
        background = memory.maintain_every(0.01, at_once=True)
        assert done.wait(20)
    assert background.failed is None
    assert "maintenance failed (ValueError)" in caplog.text
    assert "told" not in caplog.text
