"""Limits of maintenance: expiry, holds, contradicted records, failures and load."""

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from meve.errors import DuplicateIdError, ModelError
from meve.memory import GovernedMemory, Policy
from meve.memory._maintenance.plan import NEIGHBOURS, MaintenancePlan
from meve.memory._maintenance.summaries import ExtractiveSummariser
from tests.memories import LASTING, add_fading_records, add_old_and_new, add_with_score, open_memory

FACT = {"user_id": "alice", "source": "doc", "policy_class": "factual"}
WANTS = ("sun", "water", "warmth", "compost", "shelter")


def list_all(memory):
    return {r.id: r for r in memory.list(user_id="alice", include_archived=True)}


@pytest.mark.parametrize(("early", "late"), [("old", "new"), ("new", "old")])
def test_merge_keeps_the_duplicate_that_expires_later(memory, clock, early, late):
    ends = {early: clock.now() + timedelta(days=10), late: clock.now() + timedelta(days=20)}
    for name in ("old", "new"):
        memory.add(f"Tomatoes need sun{'.' if name == 'old' else '!'}", id=name, expires_at=ends[name], **FACT)
        clock.advance(timedelta(hours=1))
    text = memory.get(late, user_id="alice").text
    assert memory.maintain().merged == {"alice": [early]}
    (left,) = memory.list(user_id="alice")
    assert (left.id, left.text, left.expires_at, left.derived_from) == (late, text, ends[late], (early,))
    assert memory.update(late, user_id="alice", ttl=timedelta(days=90)).expires_at == ends[late]
    assert memory.delete(early, user_id="alice").erased == tuple(sorted([early, late]))


def test_merge_drops_tags_of_the_duplicate_that_expires_earlier(memory, clock):
    memory.add("Tomatoes need sun.", id="early", tags=["told by rosa"], ttl=timedelta(days=10), **FACT)
    memory.add("Tomatoes need sun!", id="late", tags=["garden"], ttl=timedelta(days=20), **FACT)
    memory.maintain()
    clock.advance(timedelta(days=10))
    assert [r.tags for r in memory.list(user_id="alice")] == [("garden",)]


def test_merge_leaves_held_record_unchanged(memory):
    add_old_and_new(memory, "Tomatoes need sun.", "Tomatoes need sun!", tags=["x"])
    memory.hold("new", user_id="alice")
    before = memory.get("new", user_id="alice")
    memory.maintain()
    assert memory.get("new", user_id="alice") == before


def test_summary_expires_with_its_first_origin(file, clock):
    """An update can't extend the summary's expiry either."""
    policy = Policy.from_dict({"classes": {"factual": {"ttl": None}}, "merging": {"summarise_below": 30}})
    with GovernedMemory.open(file, clock=clock, policy=policy) as m:
        end = clock.now() + timedelta(days=20)
        for n, want in enumerate(WANTS):
            expiry = {"expires_at": end + timedelta(days=n - 2)} if n >= 2 else {}
            add_with_score(m, 25, text=f"Tomatoes want {want} in the garden.", id=f"t{n}", **FACT, **expiry)
        clock.advance(timedelta(days=8))
        assert m.maintain().counts()["summarised"] == 5
        (summary,) = m.list(user_id="alice")
        assert summary.expires_at == end
        for longer in (
            {"ttl": timedelta(days=13)}, {"expires_at": end + timedelta(seconds=1)}, {"policy_class": "canonical"},
        ):  # fmt: skip
            assert m.update(summary.id, user_id="alice", **longer).expires_at == end
        assert m.update(summary.id, user_id="alice", ttl=timedelta(days=1)).expires_at < end


def test_contradicted_record_is_neither_summarised_nor_merged(paper_memory):
    memory = paper_memory
    add_fading_records(memory, flagged="contradicted by an answer")
    add_with_score(memory, 60, text="Tomatoes want sun in the garden.", id="copy", **LASTING)
    memory.maintain()
    records = list_all(memory)
    assert not any(r.source == "summary" for r in records.values())
    assert records["t0"].flagged
    assert records["t0"].reflection == 25


def test_update_of_superseded_record_clears_its_flags(static_memory):
    memory = static_memory
    add_old_and_new(memory, "The shop opens at 9 on weekdays.", "The shop opens at 10 on weekdays.")
    assert memory.maintain().superseded == {"alice": ["old"]}
    updated = memory.update("old", user_id="alice", text="The bakery sells rye bread.")
    assert (updated.superseded_by, updated.flagged) == (None, "")
    assert [r.id for r in memory.search("What does the bakery sell?", user_id="alice").records] == ["old", "new"]


def test_ids_of_summarised_records_stay_taken(paper_memory):
    add_fading_records(paper_memory)
    assert paper_memory.maintain().counts()["summarised"] == 5
    with pytest.raises(DuplicateIdError, match="t0"):
        add_fading_records(paper_memory)


def test_shared_record_in_use_is_not_archived(file, clock):
    """Each user scores a shared record separately."""
    shared = {"classes": {"factual": {"share": True, "ttl": None}}}
    with GovernedMemory.open(file, clock=clock, policy=Policy.from_dict(shared)) as memory:
        memory.add_shared("The office opens at nine.", policy_class="factual", id="office")
        for _ in range(30):
            clock.advance(timedelta(days=10))
            memory.reflect(memory.search("When does the office open?", user_id="alice"), answer="It opens at nine.")
            memory.maintain()
        assert [r.id for r in memory.search("When does the office open?", user_id="alice").records] == ["office"]


def test_failing_summariser_raises_after_expired_records_are_deleted(file, clock):

    class Broken(ExtractiveSummariser):
        def summarise(self, texts):
            raise RuntimeError("out of order")

    summariser = Broken(lambda _: None)
    with GovernedMemory.open(file, clock=clock, policy=Policy.paper(), summariser=summariser) as memory:
        add_fading_records(memory)
        for user in ("alice", "zoe"):
            memory.add("Bread.", user_id=user, id="over", ttl=timedelta(seconds=1))
        clock.advance(timedelta(seconds=1))
        with pytest.raises(ModelError, match="out of order"):
            memory.maintain(dry_run=True)
        with pytest.raises(ModelError, match="out of order"):
            memory.maintain()
        assert {e.user_id for e in memory.audit.events(action="expire")} == {"alice", "zoe"}
        assert list_all(memory).keys() == {f"t{n}" for n in range(5)}


def test_comparisons_of_many_similar_records_are_limited(file, clock):
    with open_memory(file, clock=clock) as memory:
        runtime = memory._runtime
        model = runtime.stored(memory.add("tomatoes need sun", **LASTING))
        with runtime.store.writing() as transaction:
            for n in range(1_200):
                text = "thanks a lot" if n % 2 else f"tomato {n} needs sun"
                record = replace(model.record, id=f"r{n:04}", text=text)
                transaction.insert("s:alice", replace(runtime.stored(record), record=record))
        plan = MaintenancePlan(runtime, "s:alice")
        assert len(plan.report.merged["alice"]) == 599
        current = [record_id for record_id, s in plan.records.items() if not s.record.is_closed]
        assert len(plan.nearest_pairs(current, 0.9)) <= NEIGHBOURS * 700
        assert memory.maintain().counts() == plan.report.counts()


@pytest.mark.parametrize("seed", range(6))
def test_dry_run_report_equals_the_run(file, clock, seed):
    rng = random.Random(seed)
    policy = Policy.from_dict({**Policy.paper().model_dump(), "limits": {"per_user": 25}})
    with GovernedMemory.open(file, clock=clock, policy=policy) as memory:
        for n in range(60):
            what, score = rng.choice(WANTS), rng.choice([5, 22, 28, 50, 80])
            text = rng.choice([
                f"Tomatoes want {what} in the garden.", f"The {what} shop opens at {rng.randint(7, 11)} on weekdays.",
            ])  # fmt: skip
            add_with_score(memory, score, text=text, id=f"m{n}", **FACT, ttl=timedelta(days=rng.choice([5, 70, 400])))
            if rng.random() < 0.1:
                memory.hold(f"m{n}", user_id="alice")
            clock.advance(timedelta(days=rng.choice([0, 0, 1, 2])))
        for wait in (0, 8, 65):
            clock.advance(timedelta(days=wait))
            before, head = list_all(memory), memory.audit.head()
            dry = memory.maintain(dry_run=True)
            assert (list_all(memory), memory.audit.head()) == (before, head)
            assert memory.maintain() == dry
