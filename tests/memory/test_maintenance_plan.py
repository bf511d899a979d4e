"""What maintenance must not do: lengthen a life, touch what is on hold, launder what was contradicted, stop."""

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from meve.errors import ModelError
from meve.memory import GovernedMemory, Policy
from meve.memory._maintenance.plan import NEIGHBOURS, MaintenancePlan
from meve.memory._maintenance.summaries import ExtractiveSummariser
from meve.testing.fakes import WordCounter, WordEmbedder

FACT = {"user_id": "alice", "source": "doc", "policy_class": "factual"}
LASTING = {**FACT, "ttl": timedelta(days=5_000)}
WANTS = ("sun", "water", "warmth", "compost", "shelter")


def put(memory, score=25.0, flagged="", **record):
    """A record with a score of its own."""
    made = memory.add(**record)
    with memory._runtime.store.writing() as transaction:
        stored = transaction.find("s:alice", made.id)
        changed = replace(stored.record, reflection=score, flagged=flagged)
        transaction.replace("s:alice", replace(stored, record=changed))
    return made


def fading(memory, **more):
    """Five related memories of low score, a week old."""
    for n, what in enumerate(WANTS):
        put(memory, text=f"Tomatoes want {what} in the garden.", id=f"t{n}", **LASTING, **more)
    memory.clock.advance(timedelta(days=8))


def everything(memory):
    return {r.id: r for r in memory.list(user_id="alice", include_archived=True)}


@pytest.mark.parametrize(("early", "late"), [("old", "new"), ("new", "old")])
def test_of_the_same_twice_the_one_that_lives_longer_stays_and_keeps_its_own_end(memory, clock, early, late):
    """Neither does a text outlive its end, nor is a life cut short that was promised."""
    ends = {early: clock.now() + timedelta(days=10), late: clock.now() + timedelta(days=20)}
    for name in ("old", "new"):
        memory.add(f"Tomatoes need sun{'.' if name == 'old' else '!'}", id=name, expires_at=ends[name], **FACT)
        clock.advance(timedelta(hours=1))
    text = memory.get(late, user_id="alice").text
    assert memory.maintain().merged == {"alice": [early]}
    (left,) = memory.list(user_id="alice")
    assert (left.id, left.text, left.expires_at, left.derived_from) == (late, text, ends[late], (early,))
    assert memory.update(late, user_id="alice", ttl=timedelta(days=90)).expires_at == ends[late]
    assert memory.delete(early, user_id="alice").erased == (late,)


def test_no_tag_outlives_the_memory_that_it_was_given_to(memory, clock):
    memory.add("Tomatoes need sun.", id="early", tags=["told by rosa"], ttl=timedelta(days=10), **FACT)
    memory.add("Tomatoes need sun!", id="late", tags=["garden"], ttl=timedelta(days=20), **FACT)
    memory.maintain()
    clock.advance(timedelta(days=10))
    assert [r.tags for r in memory.list(user_id="alice")] == [("garden",)]


def test_what_is_on_hold_is_not_changed_by_a_merge_either(memory, clock):
    memory.add("Tomatoes need sun.", id="a", tags=["x"], **LASTING)
    clock.advance(timedelta(hours=1))
    memory.add("Tomatoes need sun!", id="b", tags=["x"], **LASTING)
    memory.hold("b", user_id="alice")
    before = memory.get("b", user_id="alice")
    memory.maintain()
    assert memory.get("b", user_id="alice") == before


def test_a_summary_ends_with_the_first_of_what_it_was_made_of(file, clock):
    """Where others never end, too; no change of it gives it a longer life."""
    with GovernedMemory.open(file, clock=clock, policy=Policy.from_dict({"classes": {"factual": {"ttl": None}}})) as m:
        end = clock.now() + timedelta(days=20)
        for n, what in enumerate(WANTS):
            life = {"expires_at": end} if n == 2 else {}
            put(m, text=f"Tomatoes want {what} in the garden.", id=f"t{n}", **FACT, **life)
        clock.advance(timedelta(days=8))
        assert m.maintain().counts()["summarised"] == 5
        (summary,) = m.list(user_id="alice")
        assert summary.expires_at == end
        for longer in (
            {"ttl": timedelta(days=13)}, {"expires_at": end + timedelta(seconds=1)}, {"policy_class": "canonical"},
        ):  # fmt: skip
            assert m.update(summary.id, user_id="alice", **longer).expires_at == end
        assert m.update(summary.id, user_id="alice", ttl=timedelta(days=1)).expires_at < end


def test_what_an_answer_contradicted_is_not_whitewashed(memory):
    """Neither by a summary, which has a fresh score, nor by a copy of it."""
    fading(memory, flagged="contradicted by an answer")
    put(memory, score=60, text="Tomatoes want sun in the garden.", id="copy", **LASTING)
    memory.maintain()
    there = everything(memory)
    assert not any(r.source == "summary" for r in there.values())
    assert there["t0"].flagged
    assert there["t0"].reflection == 25


def test_what_was_said_of_another_text_goes_with_it(memory, clock):
    """One that lost against a newer one, and says something else now, is recalled again."""
    memory.add("The shop opens at 9 on weekdays.", id="old", **LASTING)
    clock.advance(timedelta(hours=1))
    memory.add("The shop opens at 10 on weekdays.", id="new", **LASTING)
    assert memory.maintain().superseded == {"alice": ["old"]}
    made = memory.update("old", user_id="alice", text="The bakery sells rye bread.")
    assert (made.superseded_by, made.flagged) == (None, "")
    assert [r.id for r in memory.search("What does the bakery sell?", user_id="alice").records] == ["old"]


def test_the_same_ids_can_be_summarised_again(file, clock):
    """They are free once they are gone."""
    policy = Policy.from_dict({"merging": {"similarity": 1}})
    with GovernedMemory.open(file, clock=clock, policy=policy) as memory:
        for _ in range(2):
            fading(memory)
            assert memory.maintain().counts()["summarised"] == 5
        assert len(memory.list(user_id="alice")) == 2


def test_what_all_share_is_not_archived_by_a_score_that_nobody_moves(file, clock):
    """Each user has a score of their own of it."""
    shared = {"classes": {"factual": {"share": True, "ttl": None}}}
    with GovernedMemory.open(file, clock=clock, policy=Policy.from_dict(shared)) as memory:
        memory.add_shared("The office opens at nine.", policy_class="factual", id="office")
        for _ in range(30):
            clock.advance(timedelta(days=10))
            memory.reflect(memory.search("When does the office open?", user_id="alice"), answer="It opens at nine.")
            memory.maintain()
        assert [r.id for r in memory.search("When does the office open?", user_id="alice").records] == ["office"]


def test_a_part_that_fails_keeps_nothing_in_the_file_that_is_over(file, clock):
    """Of no user; and it is said."""

    class Broken(ExtractiveSummariser):
        def summarise(self, texts):
            raise RuntimeError("out of order")

    with GovernedMemory.open(file, clock=clock, summariser=Broken(lambda _: None)) as memory:
        fading(memory)
        for user in ("alice", "zoe"):
            memory.add("Bread.", user_id=user, id="over", ttl=timedelta(seconds=1))
        clock.advance(timedelta(seconds=1))
        with pytest.raises(ModelError, match="out of order"):
            memory.maintain(dry_run=True)
        with pytest.raises(ModelError, match="out of order"):
            memory.maintain()
        assert {e.user_id for e in memory.audit.events(action="expire")} == {"alice", "zoe"}
        assert everything(memory).keys() == {f"t{n}" for n in range(5)}


def test_thousands_alike_are_not_compared_all_with_all(file, clock):
    with GovernedMemory.open(file, clock=clock, embedder=WordEmbedder(), tokens=WordCounter()) as memory:
        runtime = memory._runtime
        model = runtime.stored(memory.add("tomatoes need sun", **LASTING))
        with runtime.store.writing() as transaction:
            for n in range(1_200):
                text = "thanks a lot" if n % 2 else f"tomato {n} needs sun"
                record = replace(model.record, id=f"r{n:04}", text=text)
                transaction.insert("s:alice", replace(runtime.stored(record), record=record))
        planned = MaintenancePlan(runtime, "s:alice")
        assert len(planned.report.merged["alice"]) == 599
        assert len(planned.nearest_pairs(planned.records, 0.9)) <= NEIGHBOURS * 700
        assert memory.maintain().counts() == planned.report.counts()


@pytest.mark.parametrize("seed", range(6))
def test_a_dry_run_tells_exactly_what_the_round_does(file, clock, seed):
    """Over random memories to which each of its steps happens."""
    rng = random.Random(seed)
    policy = Policy.from_dict({"limits": {"per_user": 25}})
    with GovernedMemory.open(file, clock=clock, policy=policy) as memory:
        for n in range(60):
            what, score = rng.choice(WANTS), rng.choice([5, 22, 28, 50, 80])
            text = rng.choice([
                f"Tomatoes want {what} in the garden.", f"The {what} shop opens at {rng.randint(7, 11)} on weekdays.",
            ])  # fmt: skip
            put(memory, score, text=text, id=f"m{n}", **FACT, ttl=timedelta(days=rng.choice([5, 70, 400])))
            if rng.random() < 0.1:
                memory.hold(f"m{n}", user_id="alice")
            clock.advance(timedelta(days=rng.choice([0, 0, 1, 2])))
        for wait in (0, 8, 65):
            clock.advance(timedelta(days=wait))
            before, head = everything(memory), memory.audit.head()
            dry = memory.maintain(dry_run=True)
            assert (everything(memory), memory.audit.head()) == (before, head)
            assert memory.maintain() == dry
