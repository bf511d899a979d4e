"""What maintenance takes away, merges and puts aside; and what it never touches."""

from datetime import timedelta
from threading import Thread

import pytest

from meve.components.embedders import resolve_embedder
from meve.errors import ConfigurationError
from meve.memory import GovernedMemory, Policy
from meve.memory._maintenance.maintenance import TRIES
from meve.memory._maintenance.summaries import ExtractiveSummariser
from meve.memory._recall.scoring import decay_reflection
from tests.memories import reflected

LASTING = {"user_id": "alice", "source": "doc", "policy_class": "factual", "ttl": timedelta(days=5_000)}

RELATED = [f"Tomatoes want {what} in the garden." for what in ("sun", "water", "warmth", "compost", "shelter")]
OTHER = "The night train to Lisbon was late."


def ids(memory):
    return sorted(r.id for r in memory.list(user_id="alice"))


def test_scores_decay_after_a_fortnight_by_half_in_ninety_days_and_to_twenty_at_most(memory, clock):
    made = memory.add("Tomatoes need sun.", id="t", **LASTING)
    for days, expected in ((0, 50), (14, 50), (104, 25), (1_000, 20)):
        assert decay_reflection(made, memory.policy, made.created_at + timedelta(days=days)) == pytest.approx(expected)


def test_a_recall_begins_the_idle_time_anew(memory, clock):
    memory.add("Tomatoes need sun.", id="t", **LASTING)
    clock.advance(timedelta(days=13))
    memory.search("What do tomatoes need?", user_id="alice")
    clock.advance(timedelta(days=13))
    record = memory.get("t", user_id="alice")
    assert decay_reflection(record, memory.policy, clock.now()) == 50


def test_what_is_recalled_again_and_again_does_not_fade_in_a_memory_that_stays_open(memory, clock):
    """A recall changes no record that readers hold; that it was idle must not be told by theirs."""
    memory.add("Tomatoes need sun.", id="t", **LASTING)
    first = memory.search("What do tomatoes need?", user_id="alice").passages[0].score
    for _ in range(9):
        clock.advance(timedelta(days=13))
        (found,) = memory.search("What do tomatoes need?", user_id="alice").passages
        assert found.score == pytest.approx(first)
    clock.advance(timedelta(days=104))
    faded = memory.search("What do tomatoes need?", user_id="alice").passages[0].score
    assert faded == pytest.approx(first - 0.2 * 25 / 100, abs=1e-3)


def test_a_low_score_is_pruned_after_a_week_and_not_before(memory, clock):
    reflected(memory, 10, text="Tomatoes need sun.", id="low", **LASTING)
    reflected(memory, 20, text="Bread is baked.", id="enough", **LASTING)
    reflected(memory, 0, text="Water is wet.", id="canon", **{**LASTING, "policy_class": "canonical"})
    assert memory.maintain().counts()["pruned"] == 0
    clock.advance(timedelta(days=7))
    assert memory.maintain().pruned == {"alice": ["low"]}
    assert ids(memory) == ["canon", "enough"]
    (event,) = memory.audit.events(user_id="alice", action="prune")
    assert (event.record_id, event.detail["score"]) == ("low", 10)


def test_the_same_twice_becomes_one_with_the_best_of_both(memory, clock):
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
def test_another_value_is_a_conflict_and_the_newer_one_wins(memory, clock, old, new):
    memory.add(old, id="old", **LASTING)
    clock.advance(timedelta(hours=1))
    memory.add(new, id="new", **LASTING)
    assert memory.maintain().superseded == {"alice": ["old"]}
    assert ids(memory) == ["new", "old"]
    assert memory.get("old", user_id="alice").superseded_by == "new"
    assert [r.id for r in memory.search(new, user_id="alice").records] == ["new"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The basil needs 5 hours of light.", "The fennel needs 7 hours of light."),
        ("The bus to Oslo leaves at 9:45.", "The bus to Bergen leaves at 7:45."),
        ("The pump runs without trouble.", "The pump runs."),
    ],
)
def test_what_holds_for_different_subjects_is_no_conflict(memory, clock, one, other):
    memory.add(one, id="one", **LASTING)
    clock.advance(timedelta(hours=1))
    memory.add(other, id="other", **LASTING)
    done = memory.maintain()
    assert done.counts()["superseded"] == 0
    recall = memory.search(one, user_id="alice")
    assert memory.reflect(recall, answer=other).verdicts["one"].outcome != "contradicted"


def test_what_is_never_pruned_yields_to_its_like_alone(memory, clock):
    """A turn that says otherwise doesn't hide what is canonical; another canonical memory does."""
    canonical = {"user_id": "alice", "source": "doc", "policy_class": "canonical"}
    memory.add("The shop opens at 9 on weekdays.", id="canon", **canonical)
    clock.advance(timedelta(hours=1))
    memory.add("The shop opens at 11 on weekdays.", id="turn", **LASTING)
    assert memory.maintain().counts()["superseded"] == 0
    memory.add("The shop opens at 10 on weekdays.", id="newer", **canonical)
    assert "canon" in memory.maintain().superseded["alice"]


def test_of_two_in_conflict_the_one_that_an_answer_contradicted_loses(memory, clock):
    """Though it is the newer one: a false fact comes late, as a rule."""
    memory.add("The shop opens at 9 on weekdays.", id="right", **LASTING)
    clock.advance(timedelta(hours=1))
    memory.add("The shop opens at 11 on weekdays.", id="false", **LASTING)
    recall = memory.search("When does the shop open on weekdays?", user_id="alice")
    done = memory.reflect(recall, answer="The shop opens at 9 on weekdays.")
    assert {i: judged.outcome for i, judged in done.verdicts.items()} == {"false": "contradicted"}
    assert memory.maintain().superseded == {"alice": ["false"]}


def test_memories_of_other_users_and_classes_are_never_merged(memory):
    memory.add("Tomatoes need a lot of sun.", id="a", **LASTING)
    memory.add("Tomatoes need a lot of sun.", id="b", **{**LASTING, "user_id": "bob"})
    memory.add("Tomatoes need a lot of sun.", id="c", **{**LASTING, "policy_class": "intent_bound"})
    assert memory.maintain().counts()["merged"] == 0


def test_related_ones_of_low_score_become_one_summary(memory, clock):
    facts = [
        "Tomatoes want sun in the garden.",
        "Tomatoes want water in the garden.",
        "Tomatoes want warmth in the garden.",
        "Tomatoes want compost in the garden.",
    ]
    for n, text in enumerate(facts):
        reflected(memory, 25, text=text, id=f"t{n}", **LASTING)
    reflected(memory, 25, text="A carbonara needs pecorino.", id="k", **LASTING)
    clock.advance(timedelta(days=8))
    assert memory.maintain().summarised == {"alice": ["t0", "t1", "t2", "t3"]}
    kept = {r.id: r for r in memory.list(user_id="alice")}
    (summary,) = [r for r in kept.values() if r.source == "summary"]
    assert set(kept) == {"k", summary.id}
    assert "Tomatoes want" in summary.text
    assert summary.derived_from == ("t0", "t1", "t2", "t3")
    assert memory.delete("t2", user_id="alice").erased == (summary.id,)


def test_what_is_idle_and_of_low_score_is_archived_and_comes_back_by_its_id(memory, clock):
    reflected(memory, 29, text="Tomatoes need sun.", id="t", **LASTING)
    clock.advance(timedelta(days=60))
    assert memory.maintain().archived == {"alice": ["t"]}
    assert memory.search("What do tomatoes need?", user_id="alice").records == ()
    assert [r.id for r in memory.list(user_id="alice", include_archived=True)] == ["t"]
    assert memory.get("t", user_id="alice").text == "Tomatoes need sun."
    memory.update("t", user_id="alice", tags=["again"])
    assert [r.id for r in memory.search("What do tomatoes need?", user_id="alice").records] == ["t"]
    assert [e.action for e in memory.audit.events(record_id="t")][:4] == ["add", "archive", "restore", "update"]


def test_the_cap_takes_the_lowest_scores_first(file, clock):
    policy = Policy.from_dict({"limits": {"per_user": 3}})
    with GovernedMemory.open(file, clock=clock, policy=policy) as memory:
        for n, (text, score) in enumerate(
            [("Sun.", 90), ("Bread.", 40), ("Water.", 60), ("Iron.", 30), ("Cloud.", 80)]
        ):
            reflected(memory, score, text=text, id=f"r{n}", **LASTING)
        memory.hold("r3", user_id="alice")
        assert memory.maintain().pruned == {"alice": ["r1", "r2"]}
        assert ids(memory) == ["r0", "r3", "r4"]


def test_others_write_while_a_round_is_planned_and_it_reckons_with_what_they_wrote(file, clock):
    """The summariser is slow, and somebody changes one of those that it summarises."""
    planned = []

    class Slow(ExtractiveSummariser):
        def summarise(self, texts):
            planned.append(list(texts))
            if len(planned) == 1:
                writer = Thread(target=memory.update, args=("t0",), kwargs={"user_id": "alice", "text": OTHER})
                writer.start()
                writer.join(timeout=20)
                assert not writer.is_alive()
            return super().summarise(texts)

    with GovernedMemory.open(file, clock=clock, summariser=Slow(resolve_embedder(None).embed_passages)) as memory:
        for n, text in enumerate(RELATED):
            reflected(memory, 25, text=text, id=f"t{n}", **LASTING)
        clock.advance(timedelta(days=8))
        done = memory.maintain()
        assert len(planned) == 2
        assert OTHER not in str(memory.get("t0", user_id="alice").derived_from)
        assert memory.get("t0", user_id="alice").text == OTHER
        assert "t0" not in done.summarised["alice"]
        assert memory.audit.verify().ok


def test_where_others_never_stop_writing_a_round_makes_them_wait(file, clock):
    class Restless(ExtractiveSummariser):
        tries = 0

        def summarise(self, texts):
            self.tries += 1
            if self.tries <= TRIES:
                memory.add(f"Bread is baked, {self.tries}.", **LASTING)
            return super().summarise(texts)

    with GovernedMemory.open(file, clock=clock, summariser=Restless(resolve_embedder(None).embed_passages)) as memory:
        for n, text in enumerate(RELATED):
            reflected(memory, 25, text=text, id=f"t{n}", **LASTING)
        clock.advance(timedelta(days=8))
        assert memory.maintain().counts()["summarised"] == len(RELATED)


def test_rounds_in_the_background_until_it_is_closed(file, clock):
    import time

    with GovernedMemory.open(file, clock=clock) as memory:
        memory.add("Tomatoes need sun.", user_id="alice", ttl=timedelta(seconds=1))
        clock.advance(timedelta(seconds=1))
        running = memory.maintain_every(0.01)
        until = time.monotonic() + 20
        while not memory.audit.events(action="expire") and time.monotonic() < until:
            time.sleep(0.01)
        assert [e.action for e in memory.audit.events()] == ["add", "expire"]
    assert running.failed is None
    assert not running._thread.is_alive()
    with pytest.raises(ConfigurationError):
        memory.maintain_every(0)
